"""Where the records of a text table end.

A record is a line, or several where a value in quotes has line breaks.  The rules are
those of pyarrow and of Python's csv module: a quote opens a value only where the value
begins, two quotes within it stand for one, and a record ends with a line feed, a
carriage return or both.  pyarrow does not say at which byte its records end, and reads
a file only from the first byte on; with known places threads can parse pieces side by
side, and a pass can begin anywhere.
"""

from __future__ import annotations

import re

_BREAK = re.compile(rb"\r\n|\r|\n")


class RecordEnds:
    """Where the records of a text table end."""

    def __init__(self, delimiter: str) -> None:
        sign = re.escape(delimiter.encode())
        # A value in quotes, to its end or to that of the text.  No other quote has a
        # delimiter or a line break before it that is not itself within quotes.
        self._quoted = re.compile(
            rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n" + sign + rb']))"(?:[^"]++|"")*+"?'
        )

    def last_end(self, text: bytes) -> int:
        """Return where the last whole record ends; 0 if none does.

        The text starts with a record.
        """
        stop = len(text)
        for start, end in [*reversed(self._quotes(text)), (0, 0)]:
            # A carriage return at the very end may be the first half of a break.
            feed = text.rfind(b"\n", end, stop)
            back = text.rfind(b"\r", end, min(stop, len(text) - 1))
            if feed >= 0 or back >= 0:
                return max(feed, back) + 1
            stop = start
        return 0

    def first_end(self, text: bytes) -> int:
        """Return where the first record ends."""
        done = 0
        for start, end in [*self._quotes(text), (len(text), len(text))]:
            found = _BREAK.search(text, done, start)
            if found:
                return found.end()
            done = end
        return len(text)

    def _quotes(self, text: bytes) -> list[tuple[int, int]]:
        if b'"' not in text:
            return []
        return [found.span() for found in self._quoted.finditer(text)]


def skip_lines(text: bytes, n_lines: int) -> int:
    """Return where the line after this many lines begins."""
    place = 0
    for _ in range(n_lines):
        found = _BREAK.search(text, place)
        if found is None:
            return len(text)
        place = found.end()
    return place
