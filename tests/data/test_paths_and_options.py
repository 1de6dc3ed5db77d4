"""What a path stands for, and what users can say about files: no row gets lost."""

import os

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import NystromKMeans, TableClusterer, load, open_rows, save
from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import column_types

ROWS = np.random.default_rng(0).normal(size=(40, 3)) + np.repeat([[0.0], [9.0]], 20, 0)


# --- folders and patterns -------------------------------------------------------------


def write_tree(folder):
    """Leave rows 0 to 3 in sub-folders, some of them deep, beside files of a writer."""
    for number, place in enumerate(["a.npy", "b/a.npy", "b/c/d/a.npy", "z/a.npy"]):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.full((1, 2), float(number)))
    (folder / "_temporary").mkdir()
    np.save(folder / "_temporary" / "a.npy", np.full((1, 2), 99.0))
    (folder / "b" / "_SUCCESS").write_text("")
    return folder


def first_values(path):
    source = open_rows(path)
    return source.read(0, len(source))[:, 0].tolist()


def test_folders_and_patterns_stand_for_all_their_files(tmp_path):
    write_tree(tmp_path)
    assert first_values(tmp_path) == [0.0, 1.0, 2.0, 3.0]
    assert first_values(tmp_path / "**" / "a.npy") == [99.0, 0.0, 1.0, 2.0, 3.0]
    assert first_values(tmp_path / "b") == [1.0, 2.0]
    assert first_values(tmp_path / "[bz]") == [1.0, 2.0, 3.0]
    assert first_values(tmp_path / "*" / "*.npy") == [99.0, 1.0, 3.0]
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_rows(tmp_path / "**" / "*.csv")


def test_folders_that_are_values_of_a_column(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        np.save(tmp_path / f"year={year}" / "a.npy", ROWS)
    with pytest.raises(ValueError, match=r"'year=202.', whose names are values of"):
        open_rows(tmp_path)
    assert open_rows(tmp_path / "**" / "*.npy").shape == (80, 3)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_lose_no_rows_and_add_none(tmp_path):
    tree = write_tree(tmp_path / "tree")
    (tmp_path / "more").mkdir()
    np.save(tmp_path / "more" / "a.npy", np.full((1, 2), 7.0))
    os.symlink(tmp_path / "more", tree / "y")
    assert first_values(tree) == [0.0, 1.0, 2.0, 7.0, 3.0]
    os.symlink(tree / "a.npy", tree / "again.npy")
    with pytest.raises(ValueError, match="holds the same file twice"):
        open_rows(tree)
    os.unlink(tree / "again.npy")
    os.symlink(tree, tree / "b" / "loop")
    with pytest.raises(ValueError, match="is a link to one that it is in"):
        open_rows(tree)


# --- headers --------------------------------------------------------------------------


def said(text, path, **options):
    path.write_text(text)
    source = open_rows(path, missing="nan", **options)
    return source.feature_names, source.read(0, len(source)).tolist()


def test_a_header_is_found_where_it_is_clear(tmp_path):
    for text, names in {
        "a,b,c\n1,2,3\n": ("a", "b", "c"),
        "town,2019,2020\n1,2,3\n4,9,5\n": ("town", "2019", "2020"),
        ",a,b\n0,2,3\n": ("column 0", "a", "b"),
        "5.1,?,3\n1,2,3\n": None,
        "5.1,NA,\n1,2,3\n": None,
        "nan,2,7\n1,2,3\n": None,
        "1,2,3\n4,5,6\n": None,  # both count up
        "1,5,3\n4,5,9\n": None,
        "3,2,1\n4,5,9\n": None,
        "7,9\n4,5\n": None,
        "true,1.5\nfalse,2\n": None,
    }.items():
        found, rows = said(text, tmp_path / "rows.csv")
        assert found == names, text
        assert len(rows) == text.count("\n") - (names is not None)


def test_what_may_be_names_or_a_row_has_to_be_said(tmp_path):
    path = tmp_path / "rows.csv"
    for text in (
        "2019,2020,2021\n5.1,2,3\n",
        "0,1,2\n5.1,2,3\n",
        ",0,1\n0,5,3\n",
        "Ada,31,2\nBob,25,7\n",
        "5.1,n/k,3\n1,2,3\n",
        "id,2019\n1,2\n",
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match="may be the names of the columns or a ro"):
            open_rows(path)
        with pytest.raises(ValueError, match="header=True or header=False"):
            column_types(path)
        n_columns = text.splitlines()[0].count(",") + 1
        assert len(column_types(path, header=True)) == n_columns
        unnamed = column_types(path, header=False)  # None: numbers alone
        assert unnamed is None or next(iter(unnamed)) == "column 0"


def test_a_header_is_what_the_user_says(tmp_path):
    path = tmp_path / "rows.csv"
    text = "2019,2020,2021\n5.1,2,3\n"
    assert said(text, path, header=True) == (("2019", "2020", "2021"), [[5.1, 2, 3]])
    assert said(text, path, header=False) == (None, [[2019, 2020, 2021], [5.1, 2, 3]])
    with pytest.raises(ValueError, match="header='yes' should be True, False or None"):
        open_rows(path, header="yes")
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(ValueError, match=r"header=True should be None for .*rows\.npy"):
        open_rows(tmp_path / "rows.npy", header=True)
    table = as_table(path, header=False)
    assert table.types is None
    assert len(table.open(None)) == 2


# --- the base of svmlight -------------------------------------------------------------


def write_svmlight(path, rows, base):
    lines = [
        "1 " + " ".join(f"{j + base}:{value!r}" for j, value in enumerate(row) if value)
        for row in rows.tolist()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_model_reads_as_its_fit_did(tmp_path):
    fitted = write_svmlight(tmp_path / "fit.svm", ROWS, 0)
    new = ROWS.copy()
    new[:, 0] = 0.0  # no feature 0 in sight: by itself it looks like one from 1
    path = write_svmlight(tmp_path / "new.svm", new, 0)
    assert open_rows(path).shape == (40, 2)
    assert open_rows(path, zero_based=True).shape == (40, 3)
    expected = NystromKMeans(2, random_state=0).fit(sparse.csr_array(ROWS))
    labels = expected.predict(sparse.csr_array(new))
    for model in (
        NystromKMeans(2, random_state=0),
        TableClusterer(NystromKMeans(2, random_state=0), scale="none"),
    ):
        model.fit(fitted)
        assert model.zero_based_ is True
        np.testing.assert_array_equal(model.predict(path), labels)
        save(model, tmp_path / "model.skm")
        loaded = load(tmp_path / "model.skm")
        np.testing.assert_array_equal(loaded.predict(path), labels)
        np.testing.assert_array_equal(loaded.predict(open_rows(path)), labels)
        model.fit(ROWS)
        assert not hasattr(model, "zero_based_")


def test_a_base_that_contradicts_is_an_error(tmp_path):
    one = write_svmlight(tmp_path / "one.svm", ROWS, 1)
    zero = write_svmlight(tmp_path / "zero.svm", ROWS, 0)
    with pytest.raises(ValueError, match="has a feature 0, and zero_based=False says"):
        open_rows(zero, zero_based=False)
    model = NystromKMeans(2, random_state=0).fit(one)
    assert model.zero_based_ is False
    with pytest.raises(ValueError, match="has a feature 0, and those of the fit were"):
        model.predict(zero)
    said = open_rows(zero, zero_based=True)
    np.testing.assert_array_equal(model.predict(said), model.labels_)
    # One of the files decides for all.
    source = open_rows(tmp_path / "*.svm")
    assert (source.shape, source.zero_based) == ((80, 4), True)
