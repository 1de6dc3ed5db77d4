"""Where the columns of a text table are: separator, lines above the names, names."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice, pairwise

from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.data.sources.files import FileState, split_text
from sketchmeans.data.sources.numbers import is_number
from sketchmeans.data.sources.text import RecordEnds, skip_lines
from sketchmeans.data.sources.trim import find_end, has_units, join_names

#: What may separate values.
_SEPARATORS = (",", ";", "\t", "|")
#: Records that are inspected, how many of them may be above the names, and how many
#: characters of one in an error.
_SAMPLE_ROWS, _MOST_TITLES, _SHOWN = 40, 20, 60


@dataclass(frozen=True)
class Layout:
    """How a file is written, and the names of its columns.

    `has_names` says whether the file has names, or they are made up; the rows start
    after `n_bytes` and end at byte `stop`.  Columns that are `aside` have no name in
    the file, and no values or the numbers of the rows.
    """

    dialect: Dialect
    names: list[str]
    has_names: bool
    n_bytes: int
    stop: int
    aside: frozenset[str] = frozenset()

    @property
    def sep(self) -> str:
        """What separates values."""
        return self.dialect.sep or ","

    @property
    def features(self) -> list[str]:
        """The columns that may be features."""
        return [name for name in self.names if name not in self.aside]


@dataclass(frozen=True)
class _Sample:
    """The first records, none of them empty, and the lines before each.

    The rows end at byte `stop`; lines below them begin as `left_out` says.
    """

    rows: list[list[str]]
    lines: list[int]
    data: bytes
    stop: int
    left_out: list[str]

    def skip(self, n_rows: int) -> _Sample:
        return replace(self, rows=self.rows[n_rows:], lines=self.lines[n_rows:])


def find_layout(state: FileState, dialect: Dialect) -> Layout:
    """Return what the first records of a file in UTF-8 say, where the user does not."""
    sep = _find_separator(state, dialect) if dialect.sep is None else dialect.sep
    sample = _read_sample(state, sep, dialect)
    cells = [cell.strip() for cell in sample.rows[0]]
    skip_rows, trim = sample.lines[0], dialect.trims
    dialect = replace(dialect, sep=sep, skip_rows=skip_rows, trim=trim)
    below = sample.rows[1:]
    has_names = dialect.header
    if has_names is None:
        has_names = _has_names(state.path, cells, below, dialect.no_values)
    left_out = [repr(text) for text in sample.left_out]
    dialect = replace(dialect, header=has_names, left_out=tuple(left_out))
    start = skip_lines(sample.data, sample.lines[0])
    if not has_names:
        names = [f"column {j}" for j in range(len(cells))]
        return Layout(dialect, names, False, start, sample.stop)
    start += RecordEnds(sep).first_end(sample.data[start:])
    is_unit = has_units(cells, below) if below and trim else None
    if is_unit is not None:
        start = skip_lines(sample.data, sample.lines[1])
        start += RecordEnds(sep).first_end(sample.data[start:])
        if is_unit:
            dialect = replace(dialect, left_out=("units", *left_out))
        else:
            cells = join_names(cells, [cell.strip() for cell in below[0]])
        below = below[1:]
    names = _name_columns(cells)
    aside = [
        name
        for j, (name, cell) in enumerate(zip(names, cells, strict=True))
        if not cell and _says_nothing([row[j].strip() for row in below if len(row) > j])
    ]
    return Layout(dialect, names, True, start, sample.stop, frozenset(aside))


def _name_columns(cells: list[str]) -> list[str]:
    """Return names that differ: numbers follow those that occur again.

    Examples
    --------
    >>> _name_columns(["a", "", "a", "a"])
    ['a', 'column 1', 'a (2)', 'a (3)']
    """
    names: list[str] = []
    for j, cell in enumerate(cells):
        name = first = cell or f"column {j}"
        count = 2
        while name in names or (count > 2 and name in cells):
            name, count = f"{first} ({count})", count + 1
        names.append(name)
    return names


def _says_nothing(cells: list[str]) -> bool:
    """Say whether a column without a name is empty, or numbers the rows."""
    if not any(cells):
        return bool(cells)
    return len(cells) > 1 and all(cells) and _counts_up(cells)


# --- separators and lines above the names ---------------------------------------------


def _find_separator(state: FileState, dialect: Dialect) -> str:
    """Return what separates the values of a file.

    What the suffix says, or any other sign, if the first two records have as many of
    it.  Of several the one that all records have as many of, and that leaves most
    numbers whole.
    """
    is_tabs = state.path.lower().split(".csv")[-1].endswith((".tsv", ".tab"))
    usual = "\t" if is_tabs else ","
    scores: dict[str, tuple[bool, float]] = {}
    for sep in (usual, *(sign for sign in _SEPARATORS if sign != usual)):
        try:
            rows = _read_sample(state, sep, dialect).rows
        except ValueError:
            continue
        if len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows[:2]):
            same = all(len(row) == len(rows[0]) for row in rows)
            cells = [cell for row in rows[1:] for cell in row]
            share = sum(map(is_number, cells)) / max(len(cells), 1)
            scores[sep] = same, share
    if not scores:
        return usual
    best = max(scores.values())
    found = [sep for sep, score in scores.items() if score == best]
    if usual in found or len(found) == 1:
        return usual if usual in found else found[0]
    raise ValueError(
        f"{state.path} could be separated by {' or '.join(map(repr, found))}: "
        f"write it with {usual!r}, or say which with sep=."
    )


def _read_sample(state: FileState, sep: str, dialect: Dialect) -> _Sample:
    """Return the first records, from the names on."""
    stop, left_out = find_end(state, sep) if dialect.trims else (state.size, [])
    _, data = next(split_text(state, RecordEnds(sep).last_end, 0, stop), (0, b""))
    skip, place = dialect.skip_rows, 0
    if skip is not None:
        place = skip_lines(data, skip)
    # What is not text further down is reported by the parser, with its row.
    text = data[place:].decode("utf-8-sig", errors="surrogateescape")
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(StringIO(text, newline=""), delimiter=sep)
    line = skip or 0
    try:
        for row in islice(reader, _SAMPLE_ROWS + _MOST_TITLES):
            if any(cell.strip() for cell in row) or (row and rows):
                rows.append(row)
                lines.append(line)
            line = (skip or 0) + reader.line_num
        "".join(rows[0] if rows else ()).encode()
    except (csv.Error, UnicodeEncodeError):
        raise ValueError(
            f"{state.path} cannot be read as text: its first line is not in UTF-8, or "
            "has values that are too long."
        ) from None
    if not rows:
        raise ValueError(f"{state.path} has no names and no rows in its first lines.")
    sample = _Sample(rows, lines, data, stop, left_out)
    return sample if skip is not None else sample.skip(_count_titles(rows))


def _count_titles(rows: list[list[str]]) -> int:
    """Return the number of records above the names, if they are plainly no names.

    They have at most half as many values as there are names, the first of them in the
    first cell; the names are all words, and all records below are as wide.  The last of
    them may name groups of columns.
    """
    for k, row in enumerate(rows[: min(_MOST_TITLES, len(rows) - 1)]):
        width = len(row)
        is_whole = width > 1 and _n_filled(row) >= max(width - 1, 2)
        if is_whole and all(len(other) == width for other in rows[k:]):
            if k and _is_groups(rows[k - 1], width):
                k -= 1
            narrow = all(_is_title(other, width) for other in rows[:k])
            words = not any(is_number(cell) for cell in row)
            return k if narrow and words else 0
    return 0


def _is_title(row: list[str], width: int) -> bool:
    n_filled = _n_filled(row)
    return n_filled == 0 or (bool(row[0].strip()) and n_filled <= width // 2)


def _is_groups(row: list[str], width: int) -> bool:
    """Say whether a record has the names of groups of columns, above the first each."""
    return len(row) == width and not row[0].strip() and 0 < _n_filled(row) < width - 1


def _n_filled(row: list[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


# --- names ----------------------------------------------------------------------------


def _has_names(
    path: str, first: list[str], others: list[list[str]], no_values: Sequence[str]
) -> bool:
    """Say whether the first record holds names and not values, if that is clear.

    Text without a number is names; numbers and codes of missing values are values.
    Numbers may still be names if they count up and those below do not: 0, 1, 2 or
    years.  Text next to numbers is names only if they count up and some of the text
    stands above numbers.
    """
    values = [c for c in first if is_number(c) or c.lower() in ("true", "false")]
    texts = [
        j
        for j, cell in enumerate(first)
        if cell not in values and cell not in no_values
    ]
    if texts and not values:
        return True
    counts_up = _counts_up(first)
    if texts:
        above = (len(row) > j and is_number(row[j]) for row in others for j in texts)
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
    texts = [cell.strip() for cell in cells if is_number(cell)]
    if len(texts) < 2 or not all(text.isdecimal() for text in texts):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(texts)}
    # Any two numbers have equal steps.
    return steps == {1} if len(texts) == 2 else len(steps) == 1 and min(steps) > 0
