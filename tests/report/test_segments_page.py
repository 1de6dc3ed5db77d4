"""Who the segments are: on the first screen, in a workbook and as JSON."""

import html
import os
import re

import numpy as np
import openpyxl
import pytest

import sketchmeans
from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.cluster.segment_names import rename_segments
from sketchmeans.datasets import make_customers
from sketchmeans.report import write_report
from tests.commands import refused, said

EVIL = "=HYPERLINK(1)<script>&\u202e"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A table with hostile names and values, its model, and its report."""
    folder = tmp_path_factory.mktemp("shop")
    table, _ = make_customers(600, random_state=0)
    table["customer_id"] = [f"{EVIL}{i}" for i in range(600)]
    table["plan"] = table["plan"].replace("business", EVIL)
    table = table.rename(columns={"revenue": f"{EVIL} revenue"})
    table.to_csv(folder / "shop.csv", index=False)
    model = TableClusterer(NystromKMeans(4, n_landmarks=60, random_state=0))
    model.fit(folder / "shop.csv")
    rename_segments(model, {0: "=Heavy <b>buyers</b>"})
    sketchmeans.save(model, folder / "shop.skm")
    report = write_report(
        model,
        folder / "shop.csv",
        folder / "shop.html",
        xlsx=folder / "shop.xlsx",
        certificate=None,
    )
    return folder, model, report


def test_segments_come_first_and_technical_facts_last(shop):
    folder, _, report = shop
    text = (folder / "shop.html").read_text(encoding="utf-8")
    first, rest = text.split('<section id="overview">')
    technical = rest.split('<section id="technical">')[1]
    plain = first.split("<main>")[1].replace("<wbr>", "").replace("\xa0", " ")
    for segment in report.segments.segments:
        assert f"{segment.size:,} rows" in plain
        for fact in segment.facts:
            assert fact.text.split(":")[-1] in plain  # "all" and its value
    assert "=Heavy &lt;b&gt;buyers&lt;/b&gt;" in plain
    assert "another sample" in plain
    for word in ("landmark", "RBF", "Nyström", "Cost over iterations"):
        assert word not in first
        assert word in technical
    assert "<script" not in text
    assert "\u202e" not in text


def test_levels_are_shown_as_their_category(shop):
    text = (shop[0] / "shop.html").read_text(encoding="utf-8")
    details = text.split('id="clusters"')[1].split('id="technical"')[0]
    details = details.replace("<wbr>", "")
    found = re.findall(r"<td>plan: \w+</td>.*?<td>\S+%</td><td>\S+%</td>", details)
    assert found, "a share, and not a mean of zeros and ones"
    assert "plan=" not in details
    assert "skewed amounts are averaged on a logarithmic scale" in details
    assert "Means" in shop[2].technical


def test_a_workbook_has_the_same_and_no_formulas(shop):
    folder, _, report = shop
    book = openpyxl.load_workbook(folder / "shop.xlsx")
    assert book.sheetnames == ["Segments", "Facts", "Details", "Technical"]
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "f"
                assert not str(cell.value).startswith(("=", "@", "+"))
    rows = list(book["Segments"].values)
    largest = report.segments.by_size()[0]
    assert rows[0][:4] == ("label", "segment", "rows", "share")
    assert rows[1][0] == largest.label
    assert rows[1][2:4] == (largest.size, pytest.approx(largest.share))
    assert rows[1][4] == largest.facts[0].text
    assert {row[1] for row in rows[1:]} >= {"'=Heavy <b>buyers</b>"}
    details = report.details[largest.label]
    assert rows[1][-2:] == pytest.approx((details["spread"], details["margin"]))
    text = (folder / "shop.html").read_text(encoding="utf-8")
    for label, _, feature, difference, *_ in list(book["Details"].values)[1:]:
        shown = feature.removeprefix("'").replace("=", ": ", 1).rpartition(" ")[2]
        card = text.split(f'id="cluster-{label}"')[1].split("</article>")[0]
        assert shown in html.unescape(card.replace("<wbr>", ""))
        assert f"{difference:+.2f}".replace("-", "−") in card
    assert len(list(book["Facts"].values)) == 1 + sum(
        len(segment.facts) for segment in report.segments.segments
    )


def test_a_workbook_alone(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SketchedKMeans(2, random_state=0).fit(X)
    found = write_report(model, X, tmp_path / "only.XLSX", certificate=None)
    assert os.listdir(tmp_path) == ["only.XLSX"]
    assert found.path.endswith("only.XLSX")


def test_what_cannot_be_written_is_refused_before_the_work(shop, tmp_path, monkeypatch):
    folder, model, _ = shop
    given = model, folder / "shop.csv", tmp_path / "r.html"
    with pytest.raises(ValueError, match=r"xlsx='/no/such/r.xlsx' should be the path"):
        write_report(*given, xlsx="/no/such/r.xlsx")
    with pytest.raises(ValueError, match=r"xlsx='b.xlsx' should be None"):
        write_report(*given[:2], tmp_path / "a.xlsx", xlsx="b.xlsx")
    with pytest.raises(ValueError, match="id_column='who' should be a column of X"):
        write_report(*given, id_column="who")
    X = np.random.default_rng(0).normal(size=(40, 2))
    plain = SketchedKMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="id_column='who' should be None: X holds"):
        write_report(plain, X, tmp_path / "r.html", id_column="who")
    monkeypatch.setattr("sketchmeans.report.workbook.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install sketchmeans\[excel\]"):
        write_report(*given, xlsx=tmp_path / "r.xlsx")
    assert not os.listdir(tmp_path)


def test_a_workbook_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SketchedKMeans(2, random_state=0).fit(X)

    def fails(file, report):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr("sketchmeans.report.write.write_workbook", fails)
    with pytest.raises(OSError, match="no space"):
        write_report(model, X, tmp_path / "r.xlsx", certificate=None)
    assert not os.listdir(tmp_path)


# --- the command ----------------------------------------------------------------------


def test_report_prints_the_content_as_json(shop, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.report.write._PROOF_SECONDS", 0.1)
    monkeypatch.setattr("sketchmeans.report.write.render_page", lambda found: "new")
    folder, _, report = shop
    files = tmp_path / "r.html", tmp_path / "r.xlsx"
    found = said(
        capsys,
        *("report", folder / "shop.skm", folder / "shop.csv", "--json"),
        *("-o", files[0], "--xlsx", files[1], "--id", "email"),
    ).json
    assert found["files"] == [str(file) for file in files]
    assert all(file.stat().st_size for file in files)
    assert found["title"] == "Segments of shop.csv"
    assert found["id_column"] == "email"
    for own, segment in zip(found["segments"], report.segments.segments, strict=True):
        assert own["name"] == segment.name
        assert own["size"] == segment.size
        assert own["facts"][0]["text"] == segment.facts[0].text
        assert 0.0 < own["stability"] <= 1.0
        assert "@example.com" in own["typical"][0]
        assert own["spread"] == report.summary.costs[segment.label]
        assert own["features"] == report.details[segment.label]["features"]
    assert found["explained"] == report.row_map.explained
    assert "Kernel" in found["technical"]
    assert found["certificate"]["ratio"] >= 1.0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-o", "r.pdf"], 2, "--out r.pdf should end in .html or .xlsx"),
        (["--xlsx", "r.csv"], 2, "--xlsx r.csv should end in .xlsx"),
        (["--xlsx", "no/r.xlsx"], 2, "there is no folder no"),
        (["-o", "r.xlsx", "--xlsx", "r.xlsx"], 2, "is also the file of --out"),
        (["-o", "r.xlsx", "--xlsx", "s.xlsx"], 2, "--xlsx s.xlsx has no meaning"),
        (["--id", "who"], 2, "--id who should be a column of"),
    ],
)
def test_report_refuses(shop, capsys, tmp_path, monkeypatch, options, code, message):
    folder, _, _ = shop
    monkeypatch.chdir(tmp_path)
    found = said(capsys, "report", folder / "shop.skm", folder / "shop.csv", *options)
    refused(found, code, message)
    assert not os.listdir(tmp_path)


def test_a_fit_names_its_segments(shop, capsys, tmp_path):
    folder, _, _ = shop
    model, book = tmp_path / "m.skm", tmp_path / "r.xlsx"
    files = ["-o", model, "-o", book]
    out = said(capsys, "fit", folder / "shop.csv", "-k", 2, *files).out
    names = sketchmeans.load(model).segment_names_
    assert len(set(names)) == 2
    assert not any(name.startswith("Segment") for name in names)
    assert all(name in out for name in names)
    shown = [row[1] for row in openpyxl.load_workbook(book)["Segments"].values]
    assert set(shown[1:]) == set(names)
    found = said(capsys, "info", model, "--json").json
    assert found["segment_names"] == list(names)
