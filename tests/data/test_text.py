"""Text tables as they come: other separators, and the words true and false."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sketchmeans import Dialect, SketchedKMeans, TableClusterer, open_rows
from sketchmeans.data.sources import column_types

VALUES = np.array([[1.5, 2.0, -3.0], [4.0, 5.25, 6.0], [0.0, 1.0, 2.0]])


def written(path, sign, names=("a", "b", "c")):
    lines = [names] if names else []
    lines += [[str(value) for value in row] for row in VALUES]
    path.write_text("".join(sign.join(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("suffix", "sign"),
    [("csv", ","), ("csv", ";"), ("csv", "\t"), ("tsv", "|"), ("tsv", "\t")],
)
def test_the_first_lines_tell_what_separates_values(sign, suffix, tmp_path):
    path = written(tmp_path / f"x.{suffix}", sign)
    source = open_rows(path)
    assert source.feature_names == ("a", "b", "c")
    assert_array_equal(source.read(0, 3), VALUES)
    assert column_types(path) == {"a": None, "b": None, "c": None}
    path = written(tmp_path / f"y.{suffix}", sign, None)
    assert open_rows(path).feature_names is None
    assert_array_equal(open_rows(path).read(0, 3), VALUES)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a;b,c;d\n1;2;3\n", ("a", "b,c", "d")),  # a comma within a name
        ('a;"b;b"\n1;2\n', ("a", "b;b")),
        ("a,b;c\n1,2\n", ("a", "b;c")),  # what the suffix says comes first
        ("weight; kg\n1\n", ("weight; kg",)),  # one column, as the second line shows
        ("a;b\r\n1;2\r\n", ("a", "b")),
        ("\ufeffa;b\n1;2", ("a", "b")),
    ],
)
def test_a_sign_within_a_name_separates_nothing(text, names, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    assert open_rows(path).feature_names == names


def test_what_is_not_clear_is_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b|c\n1;2|3\n")
    with pytest.raises(ValueError, match=r"could be separated by ';' or '\|': write"):
        open_rows(path)
    path.write_text("a;b\n1;2.5\n1;2,5\n")
    with pytest.raises(ValueError, match="'2,5' is not a number: decimals should"):
        open_rows(path, dialect=Dialect(decimal="."))


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false")])
def test_true_and_false_are_one_and_zero(words, tmp_path):
    path = tmp_path / "x.csv"
    yes, no = words
    path.write_text(f"a,is b,c\n1,{yes},x\n2,{no},y\n3,,z\n")
    assert column_types(path) == {"a": None, "is b": None, "c": "string"}
    source = open_rows(path, ["a", "is b"], missing="nan")
    assert_array_equal(source.read(0, 3), [[1, 1], [2, 0], [3, np.nan]])
    path.write_text(f"a,b\n1,{yes}\n2,{no}\n")
    assert_array_equal(open_rows(path).read(0, 2), [[1.0, 1.0], [2.0, 0.0]])
    labels = open_rows(path, ["a"], label_column="b").labels()
    assert list(labels) == [yes, no]


def test_a_word_further_down_that_is_neither(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,True\n" * 200_000 + "1,maybe\n")
    text = "row 200000, column 'b': 'maybe' is neither true nor false"
    with pytest.raises(ValueError, match=re.escape(text)):
        open_rows(path)


@pytest.mark.parametrize("late", ["0.5", '"$1,200.50"'])
def test_whole_numbers_that_are_others_further_down(tmp_path, late):
    path = tmp_path / "rows.csv"
    whole = "".join(f"{i % 17},{i % 9},{i % 5}\n" for i in range(200_000))
    path.write_text(f"a,b,c\n{whole}1,{late},2\n")  # more than one piece
    model = TableClusterer(SketchedKMeans(2, random_state=0)).fit(path)
    assert model.kinds_["b"] == "numeric"
    assert len(model.labels_) == 200_001


def test_labels_of_more_digits_than_numbers_have_stay_apart(tmp_path):
    path = tmp_path / "rows.csv"
    labels = ["99999999999999999991", "99999999999999999992"] * 10
    lines = [f"{i},{label}" for i, label in enumerate(labels)]
    path.write_text("\n".join(["a,label", *lines]) + "\n")
    found = open_rows(path, ["a"], label_column="label").labels()
    assert found.tolist() == labels
