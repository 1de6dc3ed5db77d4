"""Text from data, made safe to show: in a terminal, on a page, in a picture."""

from __future__ import annotations

import re

#: What would act on a terminal or a page instead of being shown: control codes, marks
#: that turn the direction of writing, separators of lines, and halves of surrogate
#: pairs.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2066-\u206f\ud800-\udfff]"
)


def harmless(text: str) -> str:
    r"""Return a text whose control codes are spelled out; lines stay.

    Examples
    --------
    >>> print(harmless("\x1b[31mred\x07"))
    \x1b[31mred\x07
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    r"""Return a harmless text without breaks.

    Examples
    --------
    >>> print(one_line("a\nb"))
    a\nb
    """
    return harmless(text).replace("\n", "\\n")


def harmless_json(text: str) -> str:
    """Return JSON whose strings have no control codes; it means the same."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
