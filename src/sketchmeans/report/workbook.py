"""The content of a report as a workbook of Excel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from sketchmeans.diagnostics import Segments
from sketchmeans.numerics.escape import escape_line
from sketchmeans.report.drawing import format_cell
from sketchmeans.report.words import describe_agreement

if TYPE_CHECKING:
    from sketchmeans.report.write import Report

#: Widest column, and the longest text that a cell takes.
_WIDEST, _MOST_TEXT = 60, 32_000
#: What is written of a fact.
_FACT = ("column", "level", "value", "overall", "strength")
#: Characters that no workbook can hold, beside those that are spelled out.
_BEYOND_XML = re.compile("[\ufffe\uffff]")


def check_workbooks() -> None:
    """Raise if the library that writes workbooks is not there."""
    if find_spec("openpyxl") is None:
        raise ImportError(
            "A report as .xlsx needs openpyxl, which is not installed: "
            "pip install sketchmeans[excel]",
            name="openpyxl",
        )


def write_workbook(file: IO[bytes], report: Report) -> None:
    """Write segments, facts, details and what is technical, each to a sheet."""
    from openpyxl import Workbook  # type: ignore[import-untyped]

    book = Workbook()
    book.remove(book.active)
    _add_sheet(book, "Segments", *_list_segments(report))
    _add_sheet(book, "Facts", *_list_all_facts(report.segments))
    _add_sheet(book, "Details", *_list_details(report))
    technical = {"Title": report.title, **report.technical}
    technical |= {"Cost": f"{report.summary.cost:.6g}", "Note": report.segments.note}
    if len(report.details) > 1:
        technical["Spread explained"] = f"{max(report.row_map.explained, 0.0):.1%}"
    if report.summary.agreement is not None:
        technical["Known classes"] = describe_agreement(report.summary.agreement)
    if report.certificate is not None:
        technical["Certificate"] = report.certificate.interval
    _add_sheet(book, "Technical", ["what", "value"], technical.items())
    book.save(file)


def _list_segments(report: Report) -> tuple[list[str], list[list[Any]]]:
    found = report.segments
    n_facts = max((len(segment.facts) for segment in found.segments), default=0)
    header = ["label", "segment", "rows", "share"]
    header += [f"fact {i + 1}" for i in range(n_facts)]
    header += ["stability", "how sure", f"typical ({found.id_column or 'rows'})"]
    header += ["spread", "margin"]
    if report.summary.agreement is not None:
        header.append("classes")
    rows = []
    for segment in found.by_size():
        facts = [fact.text for fact in segment.facts]
        sure, detail = segment.verdict, report.details[segment.label]
        rows.append(
            [segment.label, segment.name, segment.size, segment.share]
            + facts
            + [""] * (n_facts - len(facts))
            + [segment.stability if sure else None, sure[0] if sure else ""]
            + [", ".join(segment.typical), *map(detail.get, header[n_facts + 7 :])]
        )
    return header, rows


def _list_details(report: Report) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [segment.label, segment.name, *feature.values()]
        for segment in report.segments.by_size()
        for feature in report.details[segment.label]["features"]
    ]
    values = ["feature", "difference (standard deviations)", "mean", "mean of all"]
    return ["label", "segment", *values], rows


def _list_all_facts(found: Segments) -> tuple[list[str], list[list[Any]]]:
    header = ["label", "segment", *_FACT]
    rows = [
        [segment.label, segment.name, *(getattr(fact, name) for name in _FACT)]
        for segment in found.by_size()
        for fact in segment.facts
    ]
    return header, rows


def _add_sheet(
    book: Any, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    from openpyxl.styles import Alignment, Font  # type: ignore[import-untyped]
    from openpyxl.utils import get_column_letter  # type: ignore[import-untyped]

    sheet = book.create_sheet(title)
    for values in (header, *rows):
        sheet.append([_to_cell(value) for value in values])
    for column, cells in enumerate(sheet.columns, start=1):
        width = max(len(str(cell.value or "")) for cell in cells)
        letter = get_column_letter(column)
        sheet.column_dimensions[letter].width = min(width + 2, _WIDEST)
        for cell in cells:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            is_share = cells[0].value == "share" and cell.row > 1
            cell.number_format = "0.0%" if is_share else cell.number_format
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    sheet.freeze_panes = "A2"


def _to_cell(value: Any) -> Any:
    """Return a value that is no formula, and that a workbook can hold."""
    if isinstance(value, str):
        text = _BEYOND_XML.sub("�", escape_line(value)[:_MOST_TEXT])
        return format_cell(text)
    return value
