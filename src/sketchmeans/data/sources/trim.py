"""Lines of a text table that are no rows: units below the names, totals, notes."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence

from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.numbers import is_number

#: What the first value of a line of totals or means says, in small letters.
_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|report|column|gesamt|end|zwischen)[ -]?)?"
    r"(?:totals?|totaux|totales?|totali|totaal|sums?|summen?|somme|suma|soma|average|"
    r"avg\.?|mean|durchschnitt|mittelwert|moyenne|media|promedio|média|gemiddelde|"
    r"gesamt|insgesamt)"
    r"(?: (?:général|générale|general|generale|geral|gesamt))?[\s:.*]*"
)
#: How a note below a table begins that has no empty line above it.
_NOTE = ("(", "*", "#")
#: Bytes at the end that are looked at, and most records that are left out there.
_TAIL_BYTES, _MOST_RECORDS = 2**16, 10
#: Share of the values of a column that are numbers.
_NUMBERS = 0.8


def is_total(cells: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Say whether a record sums up the others: no other has its word at that place.

    Examples
    --------
    >>> is_total(["Total", "", "12"], [["a", "x", "5"], ["b", "y", "7"]])
    True
    >>> is_total(["Total", "", "12"], [["Total", "x", "5"], ["b", "y", "7"]])
    False
    """
    place = next((j for j, cell in enumerate(cells) if cell.strip()), len(cells))
    if place == len(cells) or not any(map(is_number, cells[place + 1 :])):
        return False
    word = cells[place].strip().casefold()
    before = {row[place].strip().casefold() for row in others if len(row) > place}
    return _TOTAL.fullmatch(word) is not None and word not in before


def find_end(state: FileState, sep: str) -> tuple[int, list[str]]:
    """Return where the rows of a text end, and how the lines below them begin.

    Left out are lines of totals, lines of separators alone, and notes: a single value
    after an empty line, where rows have more.
    """
    start = max(state.size - _TAIL_BYTES, 0)
    with open(state.place, "rb") as file:
        file.seek(start)
        tail = file.read(state.size - start)
    lines = tail.splitlines(keepends=True)
    if start:  # which may be within a line
        start += len(lines.pop(0))
    texts = [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]
    rows = [next(csv.reader([text], delimiter=sep), []) for text in texts]
    width = max(map(len, rows), default=0)
    stop = len(rows)
    found: list[str] = []
    notes: list[tuple[int, str]] = []
    for number in reversed(range(max(len(rows) - _MOST_RECORDS, 1), len(rows))):
        filled = [cell for cell in rows[number] if cell.strip()]
        if width < 2 or texts[number].count('"') % 2:  # a line break within quotes
            break
        if not filled:
            stop, found, notes = number, [*(n for _, n in notes), *found], []
        elif is_total(rows[number], rows[max(number - 100, 1) : number]):
            stop, found = number, [filled[0], *(n for _, n in notes), *found]
            notes = []
        elif len(filled) == 1 and len(rows[number]) < width:
            notes.insert(0, (number, filled[0]))
            if filled[0].startswith(_NOTE):
                stop, found = number, [*(n for _, n in notes), *found]
                notes = []
        else:
            break
    return start + sum(map(len, lines[:stop])), found


def has_units(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool | None:
    """Say whether the record below names is of units; None if it is another row.

    False if it has the second half of the names, below those of groups of columns.  It
    has words where most columns have numbers.

    Examples
    --------
    >>> numbers = [["a", "1.5", "20"], ["b", "2.5", "30"]]
    >>> has_units(["id", "size", "age"], [["", "mm", "days"], *numbers])
    True
    >>> has_units(["", "sales", ""], [["shop", "May", "June"], *numbers])
    False
    """
    second, *below = rows
    width = len(names)
    if len(second) != width or len(below) < 2 or any(map(is_number, second)):
        return None
    columns = [[row[j] for row in below if len(row) == width] for j in range(width)]
    numbers = [j for j, cells in enumerate(columns) if _are_numbers(cells)]
    words = [j for j in range(width) if j not in numbers]
    named = sum(bool(second[j].strip()) for j in numbers)
    if named < 2 or 2 * named < len(numbers):
        return None
    if _has_gaps(names) or len(set(names)) < width:
        return False
    # A row whose numbers are missing has words in the other columns.
    is_unit = 2 * sum(bool(second[j].strip()) for j in words) <= len(words)
    return True if is_unit else None


def join_names(groups: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return names with those of groups, each of which stands above its first column.

    Examples
    --------
    >>> join_names(["", "sales", "", "sent"], ["shop", "May", "June", "May"])
    ['shop', 'sales May', 'sales June', 'sent May']
    """
    joined, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        joined.append(f"{group} {name}".strip())
    return joined


def _are_numbers(cells: Collection[str]) -> bool:
    present = [cell for cell in cells if cell.strip()]
    return sum(map(is_number, present)) >= max(_NUMBERS * len(present), 1)


def _has_gaps(names: Sequence[str]) -> bool:
    return not all(name.strip() for name in names[1:])
