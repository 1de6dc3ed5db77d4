"""What the first records of a text table say: what separates values, and names."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from itertools import islice, pairwise

from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.text import Records, pieces_of

#: What stands for a value that is not there.
NO_VALUES = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "?"]
#: What may separate values.
_SIGNS = (",", ";", "\t", "|")
#: Records that are looked at.
_SAMPLE_ROWS = 20
#: Most characters of a line in an error.
_SHOWN = 60


@dataclass(frozen=True)
class Heading:
    """How the values of a file are separated, and the names of its columns.

    Attributes
    ----------
    delimiter : str
    names : list of str
        Made up where the file has none.
    is_given : bool
        Whether the file has names.
    n_bytes : int
        Where the rows start.
    """

    delimiter: str
    names: list[str]
    is_given: bool
    n_bytes: int


def read_heading(state: FileState, header: bool | None) -> Heading:
    """Return what the first records say.

    Parameters
    ----------
    state : FileState
    header : bool or None
        Whether the first record holds names; None to find out.
    """
    delimiter = _delimiter(state)
    rows, n_bytes = _first_rows(state, delimiter)
    cells = [cell.strip() for cell in rows[0]]
    is_given = _has_names(state.path, cells, rows[1:]) if header is None else header
    if is_given:
        return Heading(delimiter, cells, True, n_bytes)
    return Heading(delimiter, [f"column {j}" for j in range(len(cells))], False, 0)


def _has_names(path: str, first: list[str], others: list[list[str]]) -> bool:
    """Say whether the first record holds names and not values, if that is clear.

    Text without a number is names; numbers and what stands for missing values are
    values.  Numbers may still be names if they count up and those below do not: 0, 1, 2
    or years.  Text beside numbers is names only if they count up and some of the text
    stands above numbers.
    """
    numbers = [cell for cell in first if is_number(cell) or _is_truth(cell)]
    texts = [
        j
        for j, cell in enumerate(first)
        if cell not in numbers and cell not in NO_VALUES
    ]
    if texts and not numbers:
        return True
    counts_up = _counts_up(first)
    if texts:
        above = any(len(row) > j and is_number(row[j]) for row in others for j in texts)
        if counts_up and above:
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
    texts = [cell.strip() for cell in cells if is_number(cell)]
    if len(texts) < 2 or not all(text.isdecimal() for text in texts):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(texts)}
    # Any two numbers have equal steps.
    return steps == {1} if len(texts) == 2 else len(steps) == 1 and min(steps) > 0


def is_number(text: str) -> bool:
    """Say whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_truth(text: str) -> bool:
    return text.lower() in ("true", "false")


def _delimiter(state: FileState) -> str:
    """Return what separates the values of a file.

    What the suffix says, if the first two records have as many of it; else the one
    other sign of which they have as many, and some.
    """
    usual = "\t" if state.path.lower().endswith(".tsv") else ","

    def separates(sign: str) -> bool:
        try:
            rows, _ = _first_rows(state, sign)
        except ValueError:
            return False
        widths = {len(row) for row in rows[:2]}
        return len(widths) == 1 and min(widths) > 1

    if separates(usual):
        return usual
    others = [sign for sign in _SIGNS if sign != usual and separates(sign)]
    if len(others) > 1:
        raise ValueError(
            f"{state.path} could be separated by {' or '.join(map(repr, others))}: "
            f"write it with {usual!r}."
        )
    return others[0] if others else usual


def _first_rows(state: FileState, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the cells of the first records, and where the second one starts."""
    records = Records(delimiter)
    _, data = next(pieces_of(state, records.last_end), (0, b""))
    # What is no text further down is told by the parser, with its row.
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
