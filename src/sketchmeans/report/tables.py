"""Tables that a reader can download: CSV in a link."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: A spreadsheet takes text that starts like this for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Download:
    """A file within a link.

    Attributes
    ----------
    name : str
        Name of the file.
    uri : str
    """

    name: str
    uri: str


def csv_download(
    name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Download:
    """Return a table as a CSV file in a link.

    Text that a spreadsheet would take for a formula gets an apostrophe in front.

    Examples
    --------
    >>> found = csv_download("sizes.csv", ["cluster", "rows"], [[0, 12], [1, 7]])
    >>> found.uri[:21]
    'data:text/csv;charset'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([_cell(value) for value in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    # A name may hold half of a surrogate pair, which no file can.
    text = buffer.getvalue().encode(errors="replace")
    data = base64.b64encode(text).decode()
    return Download(name, f"data:text/csv;charset=utf-8;base64,{data}")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.7g}" if value == value else ""
    return value
