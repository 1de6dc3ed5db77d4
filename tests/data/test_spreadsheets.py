"""Sheets of .xlsx and .ods files."""

import datetime as dt
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

from sketchmeans import open_rows
from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import open_records, spreadsheet

FRAME = pd.DataFrame(
    {
        "name": ["Ada", "Bea, née X", 'C "D"'],
        "amount": [1234.5, None, -3.0],
        "count": [1, 2, 30],
        "flag": [True, False, True],
        "day": [dt.date(2024, 5, 1), dt.date(2024, 5, 2), None],
    }
)


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
def test_a_sheet_is_a_table(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    FRAME.to_excel(str(path), index=False)  # the suffix of a Path is not looked at
    table = as_table(path)
    found = table.records().read(0, 3).to_pydict()
    assert found["name"] == FRAME["name"].tolist()
    assert found["amount"] == [1234.5, None, -3.0]
    assert found["count"] == [1, 2, 30]
    assert found["flag"] == ["true", "false", "true"]
    assert [day and day[:10] for day in found["day"]] == [
        "2024-05-01",
        "2024-05-02",
        None,
    ]
    rows = table.open(["count", "flag"])
    np.testing.assert_array_equal(rows.read(0, 3), [[1, 1], [2, 0], [30, 1]])
    assert rows.path == str(path)


def test_sheets_are_chosen_by_name_or_number(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "empty"
    sheet = book.create_sheet("June sales")
    for row in (["Report"], [], ["a", "b"], [1, "1.234,5"], [2, "7,5"]):
        sheet.append(row)
    other = book.create_sheet("other")
    for row in (["c", "d"], [5, 6]):
        other.append(row)
    path = tmp_path / "t.xlsx"
    book.save(path)
    # The first that is a table; titles and numbers that are text as in a text table.
    assert open_records(path).read(0, 2).to_pydict() == {
        "a": [1, 2],
        "b": [1234.5, 7.5],
    }
    for name in ("other", 2):
        assert open_rows(path, sheet=name).feature_names == ("c", "d")
    for wrong in ("May", 3, -1, True):
        with pytest.raises(
            ValueError, match=r"should be a sheet of .*'June sales', 'ot"
        ):
            open_rows(path, sheet=wrong)
    with pytest.raises(ValueError, match=r"has no rows|has no names|is empty"):
        open_rows(path, sheet="empty")


def test_a_sheet_of_notes_is_not_the_table(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["Report of May"])
    path = tmp_path / "t.xlsx"
    book.save(path)
    with pytest.raises(ValueError, match="has no rows"):  # there is no other
        open_records(path)
    sheet = book.create_sheet("rows")
    for row in (["a", "b"], [1, 2]):
        sheet.append(row)
    book.save(path)
    assert open_rows(path).feature_names == ("a", "b")


def test_files_that_are_no_spreadsheets(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"name,amount\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.xlsx cannot be read as a spreadsheet"):
        open_rows(tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(ValueError, match=r"t\.ods cannot be read as a spreadsheet"):
        open_rows(tmp_path / "t.ods")
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(ValueError, match=r"sheet='a' should be None for .*no sheets"):
        open_rows(tmp_path / "x.npy", sheet="a")


def test_a_bomb_does_not_go_off(tmp_path, monkeypatch):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setattr(spreadsheet, "_MOST_BYTES", 1_000)
    with pytest.raises(MemoryError, match=r"t\.xlsx unpacks to more than .* as \.csv"):
        open_rows(tmp_path / "t.xlsx")


def test_a_sheet_that_changes_is_noticed(tmp_path):
    path = tmp_path / "t.xlsx"
    FRAME[["count"]].to_excel(path, index=False)
    source = open_rows(path)
    FRAME[["count"]].head(2).to_excel(path, index=False)
    source.release()
    with pytest.raises(ValueError, match=r"t\.xlsx has changed since it was opened"):
        source.read(0, 1)


def test_what_to_install_is_said(tmp_path, monkeypatch):
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.delitem(sys.modules, "sketchmeans.data.sources.spreadsheet")
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ImportError, match=r"pip install sketchmeans\[excel\]"):
        open_rows(tmp_path / "t.xlsx")


def test_a_cell_far_from_all_others_does_not_take_all_memory(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(ValueError, match="has values up to cell XFD1048576, far from"):
        open_rows(tmp_path / "far.xlsx")


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
def test_damaged_parts_are_refused_before_they_are_read(tmp_path, suffix):
    path = tmp_path / f"book.{suffix}"
    part = "xl/worksheets/sheet1.xml" if suffix == "xlsx" else "content.xml"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(part, "<a><b></a>")  # the reader might not return
    with pytest.raises(ValueError, match="as a spreadsheet: mismatched tag"):
        open_rows(path)
