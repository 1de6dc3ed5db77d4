"""Text tables as people write them: how they are written is found, kept and said."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchmeans import NystromKMeans, TableClusterer, load, open_rows, save
from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import Dialect, files, find_dialect, open_records
from sketchmeans.data.sources.numbers import parse_numbers


def write(folder, text, encoding="utf-8", name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


GERMAN = (
    "Kunde;Umsatz;Anteil;Größe\n"
    "Jörg;1.234,50 €;12 %;1,78\n"
    "Änne;99,00 €;3,5 %;1,65\n"
    "Zoë;-;100 %;1,9\n"
)
VALUES = {
    "Kunde": ["Jörg", "Änne", "Zoë"],
    "Umsatz": [1234.5, 99.0, None],
    "Anteil": [12.0, 3.5, 100.0],
    "Größe": [1.78, 1.65, 1.9],
}


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
def test_a_german_table_is_read_as_it_is_meant(tmp_path, encoding, found):
    path = write(tmp_path, GERMAN, encoding)
    table = as_table(path)
    assert table.records().read(0, 3).to_pydict() == VALUES
    described = table.dialect.describe()
    assert described == f"separated by semicolons, decimal comma, in {found}"
    rows = table.open(["Umsatz", "Größe"])
    np.testing.assert_array_equal(
        rows.read(0, 3), [[1234.5, 1.78], [99.0, 1.65], [np.nan, 1.9]]
    )


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("1.234,50 €", ",", 1234.5),
        ("€ 1.234", ",", 1234.0),
        ("1.234.567", ",", 1234567.0),
        ("$1,200", ".", 1200.0),
        ("-$1,200.50", ".", -1200.5),
        ("$-1,200", ".", -1200.0),
        ("(1,200)", ".", -1200.0),
        ("1,200-", ".", -1200.0),
        ("CHF 1'234.50", ".", 1234.5),
        ("1 234,5 kr", ",", 1234.5),
        ("1\u00a0234", ".", 1234.0),
        ("\u221212 %", ".", -12.0),
        ("5.500,-", ",", 5500.0),
        ("5,-- €", ",", 5.0),
        ("CHF 120.\u2014", ".", 120.0),
        ("< 0,3", ",", 0.3),
        (">=90", ".", 90.0),
        (".5", ".", 0.5),
        ("1e3", ".", 1000.0),
        ("12,34", ".", None),
        ("1.23", ",", None),
        ("1,2345", ".", None),
        ("12 kg", ".", None),
        ("1-2", ".", None),
        ("192.168.1.1", ",", None),
    ],
)
def test_numbers_as_people_write_them(text, decimal, number):
    values, wrong = parse_numbers(pa.array([text, None]), decimal)
    assert values.to_pylist() == [number, None]
    assert wrong.to_pylist() == [number is None, False]


@given(st.floats(-1e12, 1e12), st.sampled_from([".", ","]))
def test_written_numbers_come_back(value, decimal):
    text = f"{value:,.4f}"
    if decimal == ",":
        text = text.translate(str.maketrans(",.", ".,"))
    values, _ = parse_numbers(pa.array([text]), decimal)
    assert values[0].as_py() == float(f"{value:.4f}")


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("a;b\n1,5;x\n", ","),
        ("a;b\n1.5;x\n", "."),
        ("a;b\n1,234;x\n", ","),  # a semicolon leaves commas to decimals
        ("a\tb\n1,234\tx\n", "."),
        ('a,b\n"1,234",x\n', "."),
        ('a,b\n"1,5",x\n', ","),
        ("a;b\n1.234.567;x\n", ","),
        ("a;b;c\n1.234;2,5;x\n", ","),
        ("a;b;c\n1,234;2.5;x\n", "."),
        ("a;b\n1.234;x\n", "."),
        ("a;b\nv1,5;x\n", "."),  # no number
    ],
)
def test_the_decimal_mark_is_found(tmp_path, text, decimal):
    assert find_dialect(write(tmp_path, text)).decimal == decimal


def test_a_number_may_be_dressed_far_down(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 200)
    lines = [f"{i};{i}" for i in range(300)]
    path = write(tmp_path, "\n".join(["a;b", *lines, "1.234.567 €;7"]), name="t.csv")
    told = Dialect(decimal=",")
    for source in (open_rows(path, dialect=told), as_table(path, dialect=told)):
        rows = source if hasattr(source, "read") else source.open(None)
        assert rows.take(np.array([300]))[0].tolist() == [1234567.0, 7.0]
    assert open_records(path, dialect=told).take([300]).to_pylist()[0]["a"] == 1234567


TITLED = {
    "lines": "Sales report\ncreated 2024-05-01\n\nname,amount,share\nA,1,2\nB,3,4\n",
    "padded": "Sales;;\n;;\nname;amount;share\nA;1;2\nB;3;4\n",
    "pairs": "Created:,2024,,\nname,amount,share,x\nA,1,2,0\nB,3,4,0\n",
    "blank": "\n\nname,amount,share\nA,1,2\nB,3,4\n",
}


@pytest.mark.parametrize("kind", TITLED)
def test_lines_above_the_names_are_found(tmp_path, kind):
    path = write(tmp_path, TITLED[kind])
    records = open_records(path, ["name", "share"])
    assert records.read(0, 2).to_pydict() == {"name": ["A", "B"], "share": [2, 4]}
    above = TITLED[kind].partition("name")[0]
    assert find_dialect(path).skip_rows == above.count("\n")


def test_lines_that_may_be_rows_are_not_skipped(tmp_path):
    path = write(tmp_path, "1,,\n1,2,3\n4,5,6\n")
    assert find_dialect(path).skip_rows == 0
    assert len(open_rows(path, missing="nan")) == 3


def test_what_is_said_is_believed(tmp_path):
    path = write(tmp_path, "one;two\n# x\na:b\n1,5:k.A.\n2,5:7\n")
    told = Dialect(sep=":", decimal=",", skip_rows=2, na=["k.A."], encoding="utf-8")
    table = as_table(path, dialect=told)
    assert table.records().read(0, 2).to_pydict() == {"a": [1.5, 2.5], "b": [None, 7]}
    assert table.dialect == Dialect(":", ",", "utf-8", True, 2, ("k.A.",), True)
    rows = open_rows(path, dialect=told, missing="nan").read(0, 2)
    np.testing.assert_array_equal(rows, [[1.5, np.nan], [2.5, 7.0]])
    assert "missing values are also 'k.A.'" in table.dialect.describe()
    assert Dialect.from_dict(table.dialect.to_dict()) == table.dialect


def test_the_next_file_is_read_in_the_same_way(tmp_path):
    fitted = as_table(write(tmp_path, "a;b\n1,5;x\n2,5;y\n", name="may.csv"))
    # Alone, 1.234 would be taken for a number between 1 and 2.
    june = as_table(write(tmp_path, "a;b\n1.234;x\n900;y\n", name="june.csv"))
    assert june.open(["a"]).read(0, 2)[:, 0].tolist() == [1.234, 900.0]
    alike = june.read_like(fitted.dialect)
    assert alike.open(["a"]).read(0, 2)[:, 0].tolist() == [1234.0, 900.0]
    said = as_table(tmp_path / "june.csv", dialect=Dialect(decimal="."))
    assert said.read_like(fitted.dialect).dialect.decimal == "."
    late = as_table(write(tmp_path, "a;b\n1,5;\xe9\n", "cp1252", "july.csv"))
    assert late.read_like(fitted.dialect).dialect.encoding == "cp1252"


def test_the_files_of_a_folder_are_read_as_the_first(tmp_path):
    write(tmp_path, "a;b\n1,5;2\n", name="1.csv")
    write(tmp_path, "a;b\n1.234;2\n", name="2.csv")
    assert open_rows(tmp_path).read(0, 2)[:, 0].tolist() == [1.5, 1234.0]
    assert as_table(tmp_path).records().read(0, 2)["a"].to_pylist() == [1.5, 1234.0]


def test_names_that_are_missing_or_occur_twice(tmp_path):
    path = write(tmp_path, 'x,"a, b",x,,x (2)\n1,2,3,4,5\n2,3,4,9,7\n')
    assert list(as_table(path).types) == ["x", "a, b", "x (3)", "column 3", "x (2)"]
    # What pandas and trailing separators leave: numbers of rows, and nothing.
    path = write(tmp_path, ",a,b,\n0,1,2,\n1,3,4,\n2,5,6,\n")
    assert list(as_table(path).types) == ["a", "b"]
    assert open_rows(path).read(0, 1).tolist() == [[1.0, 2.0]]
    assert as_table(path).records().schema.names == ["a", "b"]


def test_commas_in_names_do_not_separate(tmp_path):
    path = write(tmp_path, "Umsatz, EUR;Kosten, EUR\n1,5;2,5\n3,5;4,5\n")
    assert open_rows(path).read(0, 2).tolist() == [[1.5, 2.5], [3.5, 4.5]]


def test_another_encoding_far_down_is_found(tmp_path):
    lines = "".join(f"{i};abc{i}\n" for i in range(120_000))
    path = write(tmp_path, ("a;b\n" + lines + "7;Köln\n").encode("cp1252"))
    last = open_records(path).take([120_000]).to_pylist()
    assert last == [{"a": 7, "b": "Köln"}]
    with pytest.raises(ValueError, match="is not in UTF-8; say encoding='cp1252'"):
        open_records(path, dialect=Dialect(encoding="utf-8"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sep": "::"}, "sep='::' should be one character"),
        ({"sep": '"'}, "should be one character"),
        ({"decimal": "x"}, r"decimal='x' should be '\.' or ','"),
        ({"encoding": "klingon"}, "encoding='klingon' should be one that Python knows"),
        ({"encoding": "hex"}, "encoding='hex' should be"),
        ({"skip_rows": -1}, "skip_rows=-1 should be an integer >= 0"),
        ({"skip_rows": True}, "skip_rows=True should be"),
        ({"header": "yes"}, "header='yes' should be True, False or None"),
        ({"na": "x"}, "na='x' should be a list of strings"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**given)
    with pytest.raises(ValueError, match=r"A dialect has no \['quote'\]"):
        Dialect.from_dict({"quote": "'"})


def test_errors_name_the_way_out(tmp_path):
    path = write(tmp_path, "a,b\n1,x\n" + "2,y\n" * 5 + '"3,5",z\n')
    with pytest.raises(ValueError, match=r"'3,5' is not a number: decimals should"):
        open_rows(path, ["a"], dialect=Dialect(decimal="."))
    path = write(tmp_path, "a,b\n1,\x81\n".encode("latin-1"))
    with pytest.raises(ValueError, match="is not in encoding='cp1252': byte 6"):
        open_rows(path, ["a"], dialect=Dialect(encoding="cp1252"))
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(
        ValueError, match=r"sep=';' should be None for .*x\.npy: .*text"
    ):
        open_rows(tmp_path / "x.npy", dialect=Dialect(sep=";"))
    with pytest.raises(ValueError, match="has no names and no rows"):
        open_rows(path, dialect=Dialect(skip_rows=9))


def test_a_model_keeps_how_its_file_was_written(tmp_path):
    lines = [f"{i % 7},5;{900 * (i % 2)}" for i in range(40)]
    may = write(tmp_path, "\n".join(["a;b", *lines]), name="may.csv")
    june = write(tmp_path, "a;b\n1.234;900\n", name="june.csv")
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(may)
    assert Dialect.from_dict(model.dialect_) == find_dialect(may)
    save(model, tmp_path / "m.skm")
    loaded = load(tmp_path / "m.skm")
    assert loaded.dialect_ == model.dialect_
    expected = pd.DataFrame({"a": [1234.0], "b": [900.0]})
    np.testing.assert_array_equal(loaded.transform(june), model.transform(expected))
    assert TableClusterer(NystromKMeans(1)).fit(expected).dialect_ is None


def test_words_among_numbers_are_missing_values(tmp_path):
    numbers = [f"{i},5" if i % 9 else "k.A." for i in range(1, 60)]
    path = write(
        tmp_path, "\n".join(["a;b", *(f"{x};{i}" for i, x in enumerate(numbers))])
    )
    table = as_table(path)
    assert table.dialect.na == ("k.A.",)
    assert np.isnan(table.open(None).read(0, 59)[:, 0]).sum() == 6
    words = write(tmp_path, "a,b\n" + "1,few\n2,many\n3,few\n" * 20)
    assert not as_table(words).dialect.na


def test_blanks_among_numbers_are_missing_values(tmp_path):
    lines = [f"{' ' if i % 20 == 0 else i / 4},{i}" for i in range(100)]
    table = as_table(write(tmp_path, "\n".join(["a,b", *lines])))
    assert table.dialect.na == (" ",)
    assert np.isnan(table.open(None).read(0, 100)[:, 0]).sum() == 5


@pytest.mark.parametrize("decimal", [None, "."])
def test_a_column_may_have_a_decimal_mark_of_its_own(tmp_path, decimal):
    lines = [f"{i},5{i % 10} €;{i}.25;{i}.75" for i in range(40)]
    path = write(tmp_path, "\n".join(["fee;b;c", *lines]))
    table = as_table(path, dialect=Dialect(decimal=decimal))
    assert table.dialect.decimal == "."
    np.testing.assert_allclose(
        table.open(None).read(0, 2), [[0.5, 0.25, 0.75], [1.51, 1.25, 1.75]]
    )


ROWS = "".join(f"shop {i};{'NSW'[i % 3]};{i},5;{i * i}\n" for i in range(30))
AROUND = {  # above the rows, below them, names, what is left out
    "total": ("shop;area;sold;sent\n", "Summe;;435,0;8555\n", "'Summe'"),
    "both": (
        "shop;area;sold;sent\n",
        ";;;\n;Total:;435,0;\nMean;;1;2\n",
        "'Total:' and 'Mean'",
    ),
    "empty": ("shop;area;sold;sent\n", ";;;\n;;;\n\n", ""),
    "note": ("shop;area;sold;sent\n", "\n(30 rows affected)\n", "'(30 rows affected)'"),
    "source": ("Sales\n\nshop;area;sold;sent\n", "\nSource: us\n", "'Source: us'"),
    "units": ("shop;area;sold;sent\n;;EUR;kg\n", "", "units"),
    "groups": (";;in May;\nshop;area;sold;sent\n", "", ""),
    "levels": ("in May;in May;in May;by us\nshop;area;sold;sent\n", "", ""),
}


@pytest.mark.parametrize("kind", AROUND)
def test_lines_that_are_no_rows_are_left_out(tmp_path, monkeypatch, kind):
    above, below, left_out = AROUND[kind]
    table = as_table(write(tmp_path, above + ROWS + below))
    records = table.records()
    assert len(records) == 30
    assert table.open([records.schema.names[2]]).read(29, 30).tolist() == [[29.5]]
    said = {"groups": ["in May sold", "in May sent"], "levels": ["in May sold"]}
    assert set(said.get(kind, ["shop", "sold"])) <= set(records.schema.names)
    words = f"without the lines of {left_out}"
    assert (words in table.dialect.describe()) == bool(left_out)
    # Another file need not have them, and these need not be read as the first.
    plain = as_table(write(tmp_path, "shop;area;sold;sent\n" + ROWS, name="u.csv"))
    assert plain.read_like(table.dialect).dialect.left_out == ()
    assert len(plain.read_like(table.dialect).records()) == 30
    monkeypatch.setattr(files, "PIECE_BYTES", 300)
    assert len(as_table(tmp_path / "t.csv").records()) == 30


def test_rows_that_look_like_totals_stay(tmp_path):
    for last in ("Total;N;1,5;2", "sum of all;N;1,5;2", "Sum;;;"):
        rows = ROWS.replace("shop 20", "Total")
        path = write(tmp_path, f"shop;area;sold;sent\n{rows}{last}\n")
        assert len(as_table(path).records()) == 31
    path = write(tmp_path, 'shop;note\n1;"a\nTotal;5"\n')  # within quotes
    assert as_table(path).records().read(0, 1)["note"].to_pylist() == ["a\nTotal;5"]
    path = write(tmp_path, "shop;area;sold;sent\n" + ROWS + "Total;;435;1\n")
    told = Dialect(trim=False)
    assert len(as_table(path, dialect=told).records()) == 31
    with pytest.raises(ValueError, match="trim='no' should be True, False or None"):
        Dialect(trim="no")
    cut_off = write(tmp_path, "shop;area;sold;sent\n" + ROWS + "shop 3")
    with pytest.raises(ValueError, match="it has 1 values, and 4 were expected"):
        as_table(cut_off).records()
