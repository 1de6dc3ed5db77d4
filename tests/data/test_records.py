"""Text tables whose values have line breaks: the records are those of the parser."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from sketchmeans import open_rows
from sketchmeans.data.sources import files
from sketchmeans.data.sources.text import RecordEnds
from tests.pairs import every_value

#: Values that look like ends of records and like quotes, and are neither.
NASTY = st.text(st.sampled_from('ab",;\n\r \u00e9'), max_size=12)
BREAKS = st.sampled_from(["\n", "\r\n", "\r"])


def read_back(path, piece_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PIECE_BYTES", piece_bytes)
        source = open_rows(path, ["number"], label_column="words", header=True)
        rows = source.read(0, len(source))
        last = source.take(np.array([len(source) - 1]))
        return rows[:, 0], last[0, 0], source.labels()


@settings(max_examples=50, deadline=None)
@given(
    words=st.lists(NASTY, min_size=1, max_size=30),
    end=BREAKS,
    piece_bytes=st.integers(1, 60),
)
def test_rows_are_those_of_the_csv_module(tmp_path_factory, words, end, piece_bytes):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        # All words in quotes: the csv module does not see that a lone "\r" needs them.
        rows = [[i, f"w{word}"] for i, word in enumerate(words)]
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([["number", "words"], *rows])
    with open(path, newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file))[1:]
    numbers, last, labels = read_back(path, piece_bytes)
    np.testing.assert_array_equal(numbers, [float(row[0]) for row in expected])
    assert last == len(words) - 1
    assert labels.tolist() == [row[1] for row in expected]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from(['"', ",", "\n", "\r", "\r\n", "a", '"a"', '""']), min_size=1
    ),
)
def test_every_cut_is_between_records(parts):
    # Any text, well formed or not: what pyarrow reads in two parts is what it reads.
    data = ("x," + "".join(parts) + "\n").encode()
    ends = RecordEnds(",")

    def parsed(piece):
        options = arrow_csv.ParseOptions(
            newlines_in_values=True,
            invalid_row_handler=lambda row: "skip",
            ignore_empty_lines=True,
        )
        names = arrow_csv.ReadOptions(column_names=["a", "b"], use_threads=False)
        kinds = arrow_csv.ConvertOptions(strings_can_be_null=False)
        kinds.column_types = {"a": "string", "b": "string"}
        if not piece.strip():
            return []
        return arrow_csv.read_csv(io.BytesIO(piece), names, options, kinds).to_pylist()

    whole = parsed(data)
    for size in range(1, len(data)):
        end = ends.last_end(data[:size])
        assert parsed(data[:end]) + parsed(data[end:]) == whole


def test_a_table_of_several_pieces_with_breaks_at_their_edges(tmp_path):
    path = tmp_path / "rows.csv"
    comment = "x\n" * 40
    lines = ["id,value,comment"] + [f'{i},{i / 8},"{comment}"' for i in range(20_000)]
    path.write_text("\n".join(lines) + "\n")
    assert path.stat().st_size > 1.5 * files.PIECE_BYTES
    source = open_rows(path, ["id", "value"])
    ids = np.arange(20_000)
    np.testing.assert_array_equal(
        source.read(0, len(source)), np.stack([ids, ids / 8], axis=1)
    )


def test_names_may_have_line_breaks(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('"a\nb",c\n1,2\n3,4\n')
    source = open_rows(path)
    assert source.feature_names == ("a\nb", "c")
    np.testing.assert_array_equal(source.read(0, 2), [[1.0, 2.0], [3.0, 4.0]])


@every_value
@pytest.mark.parametrize("start", ["1", 'a,b\n1,"2'])
@pytest.mark.parametrize("suffix", ["csv", "svmlight"])
def test_a_record_without_an_end(start, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(files, "_RECORD_BYTES", 10_000)
    path = tmp_path / f"rows.{suffix}"
    path.write_text((start if suffix == "csv" else "") + " " * 20_000)
    with pytest.raises(ValueError, match=r"rows\.\w+ .*has no end within 10,000 bytes"):
        open_rows(path, header=True) if suffix == "csv" else open_rows(path)
