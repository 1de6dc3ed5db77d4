"""Text from data, made safe to show in a terminal, on a page or in a picture."""

from __future__ import annotations

import re

#: Characters that act on a terminal or a page instead of being shown: control codes,
#: marks that turn the direction of writing, line separators, and lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2066-\u206f\ud800-\udfff]"
)


def escape_control(text: str) -> str:
    r"""Return a text with its control characters spelled out; line breaks stay.

    Examples
    --------
    >>> print(escape_control("\x1b[31mred\x07"))
    \x1b[31mred\x07
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_line(text: str) -> str:
    r"""Return a text on one line: control characters and line breaks are spelled out.

    Examples
    --------
    >>> print(escape_line("a\nb"))
    a\nb
    """
    return escape_control(text).replace("\n", "\\n")


def escape_json(text: str) -> str:
    """Return JSON of the same meaning without control characters in its strings."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
