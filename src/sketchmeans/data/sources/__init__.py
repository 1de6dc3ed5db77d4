"""Rows in files: opened by path, read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sketchmeans.data.sources.base import ReadOptions, Source, check_not_empty
from sketchmeans.data.sources.derived import ConcatenatedSource
from sketchmeans.data.sources.files import FileState, find_files, suffix_of

if TYPE_CHECKING:
    from sketchmeans.data.sources.records import Records

__all__ = [
    "FORMATS",
    "Source",
    "as_source",
    "column_types",
    "file_states",
    "open_records",
    "open_rows",
]

#: Suffixes, and the module and function that open such a file.
FORMATS = {
    ".npy": ("npy", "open_npy"),
    ".npz": ("npz", "open_npz"),
    ".parquet": ("parquet", "open_parquet"),
    ".pq": ("parquet", "open_parquet"),
    ".arrow": ("arrow", "open_arrow"),
    ".feather": ("arrow", "open_arrow"),
    ".csv": ("delimited", "open_delimited"),
    ".tsv": ("delimited", "open_delimited"),
    ".svmlight": ("svmlight", "SvmlightSource"),
    ".svm": ("svmlight", "SvmlightSource"),
    ".libsvm": ("svmlight", "SvmlightSource"),
}
#: The options that mean something to each of them.
_TABLE = ("columns", "label_column", "dtype")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "npy": (),
    "npz": (),
    "parquet": _TABLE,
    "arrow": _TABLE,
    "delimited": (*_TABLE, "header"),
    "svmlight": ("dtype", "zero_based"),
}
#: Why an option means nothing to the others.
_UNUSED = {
    "columns": "no named columns",
    "label_column": "no named columns",
    "dtype": "a type of its own",
    "header": "no line of names to look for",
    "zero_based": "no features that are numbered in the file",
}


def open_rows(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    label_column: str | None = None,
    dtype: npt.DTypeLike | None = None,
    missing: str = "error",
    header: bool | None = None,
    zero_based: bool | None = None,
) -> Source:
    """Open a file of rows, which the estimators take in the place of a table.

    Nothing is read as a whole: a fit on a file larger than memory gives the labels
    that it gives on the array that the file was written from.

    Parameters
    ----------
    path : str or PathLike
        A file, a folder, or a pattern such as ``"rows/part-*.parquet"`` or
        ``"rows/**/*.parquet"``.  A folder stands for all files below it, in its
        sub-folders, too.  Files are taken in the sorted order of their paths.

        - ``.npy``, and ``.npz`` with an array "X", with only one 2-D array, or with a
          CSR matrix as `scipy.sparse.save_npz` writes it; uncompressed ones are faster
        - ``.parquet``, ``.pq``, ``.arrow``, ``.feather``, ``.csv``, ``.tsv``: through
          pyarrow, which ``pip install sketchmeans[files]`` brings.  Text may be
          separated by commas, semicolons, tabs or bars: by what the suffix says, or by
          the one sign of which the first two lines have as many.  A column of true and
          false is one of 1 and 0
        - ``.svmlight``, ``.svm``, ``.libsvm``: sparse
    columns : list of str, optional
        Names of the columns that are features, of files that have names.  Default is
        all but `label_column`.
    label_column : str, optional
        A column to set aside; the source's `labels` returns it.
    dtype : {"float32", "float64"}, optional
        Type to which the values are turned, in formats other than NumPy's.  Default is
        the common type of the columns, and float64 for text.
    missing : {"error", "nan"}, default="error"
        What becomes of a missing value, in formats other than NumPy's: an error when
        it is read, or NaN.  The estimators refuse NaN, too; `TableClusterer` leaves out
        such rows or fills in the mean.
    header : bool, optional
        Whether text starts with the names of the columns.  Default is to find out: a
        line of words is names, a line of numbers and missing values is a row, and what
        may be either (0, 1, 2, or years) is an error.
    zero_based : bool, optional
        Whether the features of svmlight files are counted from 0.  Default is from 1,
        unless a feature 0 occurs in one of the files.  An estimator remembers what the
        files of its fit had, and reads others in the same way.

    Returns
    -------
    source : Source

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from sketchmeans import NystromKMeans, open_rows
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.npy")
    >>> np.save(path, np.random.default_rng(0).normal(size=(1000, 4)))
    >>> open_rows(path).shape
    (1000, 4)
    >>> NystromKMeans(3, random_state=0).fit(path).labels_.shape
    (1000,)
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path={path!r} should be a string or a PathLike.")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} should be 'float32', 'float64' or None.")
    for parameter, value in (("header", header), ("zero_based", zero_based)):
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{parameter}={value!r} should be True, False or None.")
    if missing not in ("error", "nan"):
        raise ValueError(f"missing={missing!r} should be 'error' or 'nan'.")
    name = os.fspath(path)
    files = _find_files(name)
    module, function = FORMATS[suffix_of(files[0])]
    options = ReadOptions(columns, label_column, dtype, missing, header, zero_based)
    for option, reason in _UNUSED.items():
        value = getattr(options, option)
        if value is not None and option not in _OPTIONS[module]:
            raise ValueError(
                f"{option}={value!r} should be None for {files[0]}: a "
                f"{suffix_of(files[0])} file has {reason}."
            )
    opener = _import(files[0], module, function)
    if module == "svmlight":  # whose files share the numbering of their features
        source: Source = opener(name, files, options)
    else:
        parts = [opener(file, options) for file in files]
        source = parts[0] if len(parts) == 1 else ConcatenatedSource(name, parts)
    check_not_empty(source.path, source.shape)
    return source


def column_types(
    path: str | os.PathLike[str], header: bool | None = None
) -> dict[str, str | None] | None:
    r"""Return the names of a file's columns, and the types of those without numbers.

    None for a file that has no names.  The type of numbers is None.  An index that
    pandas wrote is left out.  Of text only the first megabyte is looked at, and of
    several files the first.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,town\n31,Ulm\n")
    >>> column_types(path)
    {'age': None, 'town': 'string'}
    """
    file = _find_files(os.fspath(path))[0]
    module, _ = FORMATS[suffix_of(file)]
    if "columns" not in _OPTIONS[module]:
        return None
    options = ReadOptions(header=header)
    schema = _import(file, module, f"{module}_schema")(file, options)
    if schema is None:
        return None
    from sketchmeans.data.sources.arrow import NUMBERS, index_columns

    return {
        field.name: None if field.type in NUMBERS else str(field.type)
        for field in schema
        if field.name not in index_columns(schema)
    }


def open_records(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    header: bool | None = None,
) -> Records:
    r"""Open the rows of a file with the types that they have.

    Parameters
    ----------
    path, columns, header
        As in `open_rows`; columns may be of any type.

    Returns
    -------
    records : Records
        With `schema`, ``len()``, ``read(start, stop)`` and ``take(indices)``, which
        return tables of pyarrow's.  A column of a text table is int64 or float64 if all
        its values are such numbers, else of strings.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,town\n31,Ulm\n45,Bonn\n")
    >>> open_records(path).read(1, 2).to_pylist()
    [{'age': 45, 'town': 'Bonn'}]
    """
    name = os.fspath(path)
    files = _find_files(name)
    module, _ = FORMATS[suffix_of(files[0])]
    opener = _import(files[0], "records", "open_records")
    if "columns" not in _OPTIONS[module]:
        return _import(name, "records", "source_records")(open_rows(name), columns)
    return opener(name, files, columns, ReadOptions(header=header))


def file_states(path: str | os.PathLike[str]) -> list[FileState]:
    """Return the state of each file that a path stands for."""
    return [FileState.of(file) for file in _find_files(os.fspath(path))]


def as_source(X: Any) -> Source | None:
    """Return the source that a user's input is or names; None if it is a table."""
    if isinstance(X, Source):
        return X
    return open_rows(X) if isinstance(X, str | os.PathLike) else None


def _find_files(name: str) -> list[str]:
    """Return the files that a path stands for, all of one kind and none empty."""
    files = find_files(name, FORMATS)
    for file in files:
        if suffix_of(file) not in FORMATS:
            raise ValueError(
                f"{file} ends in {suffix_of(file)!r}; it should end in one of "
                f"{sorted(FORMATS)}."
            )
        if FORMATS[suffix_of(file)] != FORMATS[suffix_of(files[0])]:
            raise ValueError(
                f"{name} holds both {files[0]} and {file}; all files should be of one "
                "kind: name them with a pattern such as '*.npy'."
            )
        if os.path.getsize(file) == 0:
            raise ValueError(f"{file} is empty.")
    return files


def _import(file: str, module: str, function: str) -> Callable[..., Any]:
    try:
        return getattr(import_module(f"{__name__}.{module}"), function)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise ImportError(
            f"{file} is read through pyarrow, which is not installed: "
            "pip install sketchmeans[files]"
        ) from None
