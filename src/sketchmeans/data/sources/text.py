"""Text files, in pieces of whole records that can be read by themselves.

A record of a table is a line, or several where a value in quotes has line breaks.  The
rules are those of pyarrow and of Python's csv module: a quote opens a value only where
the value begins, two quotes within it stand for one, and a record ends with a line
feed, a carriage return or both.  pyarrow tells nobody at which byte its records end,
and reads a file from the first byte on only; with known places threads can parse pieces
side by side, and a pass can begin anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sketchmeans.data.sources.files import FileState, OpenFile

#: Bytes of text in a piece: enough that a parser's start does not count.
PIECE_BYTES = 2**20
#: Most bytes of a record: 2 million columns, say, or a quote that is never closed.
RECORD_BYTES = 16 * 2**20

_BREAK = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Piece:
    """Whole records of a file, and the rows that they hold; the first by its number."""

    state: FileState
    offset: int
    size: int
    first: int
    n_rows: int

    @property
    def path(self) -> str:
        """The file."""
        return self.state.path

    def text(self) -> bytes:
        """Return the records."""
        data = np.empty(self.size, np.uint8)
        OpenFile(self.state).fill(data, self.offset)
        self.state.check()
        return data.tobytes()


def pieces_of(
    state: FileState, last_end: Callable[[bytes], int], offset: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the text of pieces.

    Parameters
    ----------
    state : FileState
    last_end : callable
        Returns where the last whole record of a text ends; 0 if none does.
    offset : int
        Where the first record starts.

    Raises
    ------
    ValueError
        If a record has more than `RECORD_BYTES`, or the file changes.
    """
    with open(state.path, "rb") as file:
        file.seek(offset)
        text = b""
        while more := file.read(PIECE_BYTES):
            text += more
            end = last_end(text)
            if end:
                yield offset, text[:end]
                text, offset = text[end:], offset + end
            elif len(text) > RECORD_BYTES:
                raise ValueError(
                    f"{state.path} cannot be read as text: what starts at byte "
                    f"{offset:,} has no end within {RECORD_BYTES:,} bytes. A line is "
                    "too long, or a quote is not closed."
                )
    state.check()
    if text:
        yield offset, text


def last_line_end(text: bytes) -> int:
    """Return where the last whole line ends."""
    return text.rfind(b"\n") + 1


class Records:
    """Where the records of a text table end, for values separated by one sign."""

    def __init__(self, delimiter: str) -> None:
        sign = re.escape(delimiter.encode())
        # A value in quotes, to its end or to that of the text.  No other quote has a
        # sign or a line break before it that is not itself within quotes.
        self._quoted = re.compile(
            rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n" + sign + rb']))"(?:[^"]++|"")*+"?'
        )

    def last_end(self, text: bytes) -> int:
        """Return where the last whole record ends; 0 if none does.

        The text starts with a record.
        """
        stop = len(text)
        for start, end in [*reversed(self._spans(text)), (0, 0)]:
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
        for start, end in [*self._spans(text), (len(text), len(text))]:
            found = _BREAK.search(text, done, start)
            if found:
                return found.end()
            done = end
        return len(text)

    def _spans(self, text: bytes) -> list[tuple[int, int]]:
        if b'"' not in text:
            return []
        return [found.span() for found in self._quoted.finditer(text)]
