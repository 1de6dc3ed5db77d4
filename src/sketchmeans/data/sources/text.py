"""Text files, in pieces of whole records that can be read by themselves.

A record of a table is a line, or several where a value in quotes has line breaks.  The
rules are those of pyarrow and of Python's csv module: a quote opens a value only where
the value begins, two quotes within it stand for one, and a record ends with a line
feed, a carriage return or both.  pyarrow does not tell at which byte its records end,
and reads a file only from the first byte on; with known places threads can parse pieces
side by side, and a pass can begin anywhere.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import islice, pairwise

import numpy as np

from sketchmeans.data.sources.files import FileState, OpenFile

#: Bytes of text in a piece: enough that a parser's start does not count.
PIECE_BYTES = 2**20
#: Most bytes of a record: 2 million columns, say, or a quote that is never closed.
RECORD_BYTES = 16 * 2**20
#: What stands for a value that is not there.
NO_VALUES = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "?"]
#: What may separate values.
_DELIMITERS = (",", ";", "\t", "|")
#: Records that are looked at for a header, and most characters of one in an error.
_SAMPLE_ROWS, _SHOWN = 20, 60

_BREAK = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Piece:
    """Whole records of a file, and the rows that they hold; the first by its number."""

    state: FileState
    offset: int
    size: int
    first: int
    n_rows: int

    def text(self) -> bytes:
        """Return the records."""
        data = np.empty(self.size, np.uint8)
        OpenFile(self.state).fill(data, self.offset)
        self.state.check()
        return data.tobytes()


def split_text(
    state: FileState, last_end: Callable[[bytes], int], offset: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the text of pieces of whole records, from `offset` on.

    `last_end` returns where the last whole record of a text ends; 0 if none does.
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


@dataclass(frozen=True)
class Header:
    """How the values of a file are separated, and the names of its columns.

    `has_names` says whether the file has names, or they are made up; the rows start
    after `n_bytes`.
    """

    delimiter: str
    names: list[str]
    has_names: bool
    n_bytes: int


def read_header(state: FileState, header: bool | None) -> Header:
    """Return what the first records say; `header` is whether the first holds names."""
    delimiter = _find_delimiter(state)
    rows, n_bytes = _first_rows(state, delimiter)
    cells = [cell.strip() for cell in rows[0]]
    if _has_names(state.path, cells, rows[1:]) if header is None else header:
        return Header(delimiter, cells, True, n_bytes)
    return Header(delimiter, [f"column {j}" for j in range(len(cells))], False, 0)


def _find_delimiter(state: FileState) -> str:
    """Return what separates the values of a file.

    What the suffix says, if the first two records have as many of it; else the one
    other delimiter of which they have as many, and some.
    """
    usual = "\t" if state.path.lower().endswith(".tsv") else ","

    def separates(delimiter: str) -> bool:
        try:
            rows, _ = _first_rows(state, delimiter)
        except ValueError:
            return False
        widths = {len(row) for row in rows[:2]}
        return len(widths) == 1 and min(widths) > 1

    if separates(usual):
        return usual
    others = [sign for sign in _DELIMITERS if sign != usual and separates(sign)]
    if len(others) > 1:
        raise ValueError(
            f"{state.path} could be separated by {' or '.join(map(repr, others))}: "
            f"write it with {usual!r}."
        )
    return others[0] if others else usual


def _first_rows(state: FileState, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the cells of the first records, and where the second one starts."""
    records = Records(delimiter)
    _, data = next(split_text(state, records.last_end), (0, b""))
    # What is not text further down is reported by the parser, with its row.
    text = data.decode("utf-8-sig", errors="surrogateescape")
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        rows = list(islice(filter(None, reader), _SAMPLE_ROWS))
        first = next(csv.reader(StringIO(text, newline=""), delimiter=delimiter), [])
        "".join(first).encode()
    except (csv.Error, UnicodeEncodeError):
        raise ValueError(
            f"{state.path} cannot be read as text: its first line is not in UTF-8, or "
            "has values that are too long."
        ) from None
    if not first:
        raise ValueError(
            f"{state.path} starts with an empty line; it should have names."
        )
    return rows, records.first_end(data)


def _has_names(path: str, first: list[str], others: list[list[str]]) -> bool:
    """Say whether the first record holds names and not values, if that is clear.

    Text without a number is names; numbers and codes of missing values are values.
    Numbers may still be names if they count up and those below do not: 0, 1, 2 or
    years.  Text beside numbers is names only if they count up and some of the text
    stands above numbers.
    """
    values = [c for c in first if _is_number(c) or c.lower() in ("true", "false")]
    texts = [
        j
        for j, cell in enumerate(first)
        if cell not in values and cell not in NO_VALUES
    ]
    if texts and not values:
        return True
    counts_up = _counts_up(first)
    if texts:
        above = (len(row) > j and _is_number(row[j]) for row in others for j in texts)
        if counts_up and any(above):
            return True
    elif not (counts_up and others) or any(_counts_up(row) for row in others):
        return False
    line = ",".join(first)
    shown = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    raise ValueError(
        f"{path} starts with {shown!r}, which may be the names of the columns or a "
        "row: say which with header=True or header=False."
    )


def _counts_up(cells: list[str]) -> bool:
    """Say whether the numbers among cells are whole and go up in equal steps."""
    texts = [cell.strip() for cell in cells if _is_number(cell)]
    if len(texts) < 2 or not all(text.isdecimal() for text in texts):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(texts)}
    # Any two numbers have equal steps.
    return steps == {1} if len(texts) == 2 else len(steps) == 1 and min(steps) > 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
