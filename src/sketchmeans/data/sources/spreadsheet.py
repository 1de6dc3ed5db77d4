"""Sheets of spreadsheets: copied to text, and read as that is.

So lines above the names, missing values and numbers that were typed as text are found
in the same way, and the rows are streamed from the copy.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.parsers import expat

from python_calamine import CalamineError, CalamineWorkbook

from sketchmeans.data.sources import delimited
from sketchmeans.data.sources.base import ReadOptions, Source
from sketchmeans.data.sources.copies import copy_once
from sketchmeans.data.sources.derived import show_names
from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.data.sources.files import FileState
from sketchmeans.numerics.memory import format_bytes

#: Maximum size of a sheet when it is unpacked: a million rows of a hundred numbers.
_MOST_BYTES = 2**31
#: A reference to a cell in a sheet of Excel, and the bytes that it may have.
_CELL, _CELL_BYTES = re.compile(rb' r="([A-Z]{1,6})(\d{1,30})"'), 42
#: Space for this many cells takes little memory; where there is more, at least one cell
#: in this many should have a value.
_FEW_CELLS, _SPARSE = 2**21, 64
#: Rows that are turned to text together.
_PART_ROWS = 1_000


def open_spreadsheet(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of a sheet."""
    return delimited.open_delimited(as_text(state, options), options)


def spreadsheet_schema(state: FileState, options: ReadOptions) -> Any:
    """Return the names of all columns, and their types."""
    return delimited.delimited_schema(as_text(state, options), options)


def spreadsheet_dialect(state: FileState, options: ReadOptions) -> Dialect:
    """Return how the sheet is written as text."""
    return delimited.delimited_dialect(as_text(state, options), options)


def as_text(state: FileState, options: ReadOptions) -> FileState:
    """Return the state of a copy of a sheet as text, with commas."""
    sheet = options.sheet
    return copy_once(("sheet", sheet), state, "sheet.csv", _write_parts(state, sheet))


def find_sheet(state: FileState) -> tuple[str, list[str]]:
    """Return the sheet that is read where none is named, and the names of all."""
    with open(state.place, "rb") as file:
        book = CalamineWorkbook.from_filelike(file)
        return _choose_sheet(state, book, None).name, book.sheet_names


def _write_parts(state: FileState, sheet: str | int | None) -> Iterator[bytes]:
    _check_size(state)
    try:
        with open(state.place, "rb") as file:
            book = CalamineWorkbook.from_filelike(file)  # by content, not by suffix
            rows = _choose_sheet(state, book, sheet).to_python(skip_empty_area=False)
    except (CalamineError, OSError) as error:
        raise state.error("cannot be read as a spreadsheet", error) from None
    for start in range(0, len(rows), _PART_ROWS):
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        part = rows[start : start + _PART_ROWS]
        writer.writerows([_to_text(cell) for cell in row] for row in part)
        yield text.getvalue().encode("utf-8", "replace")


def _choose_sheet(state: FileState, book: Any, sheet: str | int | None) -> Any:
    """Return a sheet by name or number, or the first that is a table.

    A table has two columns and two rows; where none has, it is the first with values.
    """
    names = book.sheet_names
    if type(sheet) is int and 0 <= sheet < len(names):
        return book.get_sheet_by_index(sheet)
    if isinstance(sheet, str) and sheet in names:
        return book.get_sheet_by_name(sheet)
    if sheet is not None:
        raise ValueError(
            f"sheet={sheet!r} should be a sheet of {state.path}: {show_names(names)}, "
            f"or a number from 0 to {len(names) - 1}."
        )
    filled = None
    for name in names:
        found = book.get_sheet_by_name(name)
        if min(found.height, found.width) > 1:
            return found
        if filled is None and found.height:
            filled = found
    if filled is None:
        raise ValueError(f"{state.path} has no sheet with values.")
    return filled


def _check_size(state: FileState) -> None:
    """Raise if a sheet is larger than its file has a right to be."""
    try:
        with zipfile.ZipFile(state.place) as archive:
            total = 0
            for info in archive.infolist():
                check = _PartCheck(state, info.filename)
                with archive.open(info) as file:  # sizes that are declared may be wrong
                    while part := file.read(2**20):
                        check.feed(part)
                        total += len(part)
                        if total > _MOST_BYTES:
                            raise MemoryError(
                                f"{state.path} unpacks to more than "
                                f"{format_bytes(_MOST_BYTES)}: save the sheet as .csv, "
                                "which is read piece by piece."
                            )
                check.close()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise state.error("cannot be read as a spreadsheet", error) from None
    except Exception as error:  # zlib.error, RuntimeError (a password), lzma.LZMAError
        if isinstance(error, MemoryError):
            raise
        raise state.error("cannot be read as a spreadsheet", error) from None


class _PartCheck:
    """Looks at a part of a workbook before the reader does, which may not return.

    XML should be well-formed.  The reader allocates all cells up to the last one,
    so that one value far from all others would take all memory.
    """

    def __init__(self, state: FileState, name: str) -> None:
        self._state, self._tail = state, b""
        self._parser = expat.ParserCreate() if name.endswith(".xml") else None
        self._is_sheet = "/worksheets/" in name and self._parser is not None
        self._n_cells = self._last_row = 0
        self._last_column = b""

    def feed(self, part: bytes) -> None:
        if self._parser is not None:
            self._parser.Parse(part, False)
        if self._is_sheet:
            places = _CELL.findall(self._tail + part)
            self._tail = part[-_CELL_BYTES:]
            self._n_cells += len(places)
            for column, row in places:
                self._last_row = max(self._last_row, int(row))
                if (len(column), column) > (len(self._last_column), self._last_column):
                    self._last_column = column

    def close(self) -> None:
        if self._parser is not None:
            self._parser.Parse(b"", True)
        width = 0
        for letter in self._last_column:
            width = 26 * width + letter - ord("A") + 1
        area = width * self._last_row
        if area > max(_FEW_CELLS, _SPARSE * self._n_cells):
            last = f"{self._last_column.decode()}{self._last_row}"
            raise ValueError(
                f"{self._state.path} has values up to cell {last}, far from most of "
                f"its {self._n_cells:,}: delete those, or save the sheet as .csv."
            )


def _to_text(cell: Any) -> str:
    """Return a cell as text: whole numbers without a fraction, dates as in ISO 8601.

    Examples
    --------
    >>> import datetime
    >>> [_to_text(cell) for cell in (3.0, 0.5, True, datetime.date(2024, 5, 1))]
    ['3', '0.5', 'true', '2024-05-01']
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return repr(cell.total_seconds())
    return str(cell)
