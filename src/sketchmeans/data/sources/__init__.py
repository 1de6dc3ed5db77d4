"""Rows in files: opened by path, read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sketchmeans.data.sources.base import ReadOptions, Source, check_not_empty
from sketchmeans.data.sources.derived import ConcatenatedSource
from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.formats import (
    FORMATS,
    check_options,
    find_states,
    has_option,
    import_function,
    import_reader,
    is_stream,
)
from sketchmeans.data.sources.partitions import (
    PartitionedSource,
    Value,
    find_partitions,
    leave_to_files,
)

if TYPE_CHECKING:
    from sketchmeans.data.sources.records import Records

__all__ = [
    "FORMATS",
    "Dialect",
    "Source",
    "as_source",
    "column_types",
    "file_states",
    "find_dialect",
    "open_records",
    "open_rows",
]


def open_rows(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    label_column: str | None = None,
    dtype: npt.DTypeLike | None = None,
    missing: str = "error",
    header: bool | None = None,
    zero_based: bool | None = None,
    dialect: Dialect | None = None,
    sheet: str | int | None = None,
) -> Source:
    """Open a file of rows, which the estimators take in the place of a table.

    Nothing is read as a whole: a fit on a file larger than memory gives the labels
    that it gives on the array that the file was written from.  It costs a look at the
    first rows, and one pass over text, which finds where its rows are.

    Parameters
    ----------
    path : str or PathLike
        A file, a folder, or a pattern such as ``"rows/part-*.parquet"`` or
        ``"rows/**/*.parquet"``.  A folder stands for all files below it, in its
        sub-folders, too; those such as ``year=2024`` name a column and its value.
        Files are taken in the sorted order of their paths.  ``s3://`` and others that
        fsspec knows are copied to a temporary file.

        - ``.npy``, and ``.npz`` with an array "X", with only one 2-D array, or with a
          CSR matrix as `scipy.sparse.save_npz` writes it; uncompressed ones are faster
        - ``.parquet``, ``.pq``, ``.arrow``, ``.feather``, ``.csv``, ``.tsv``,
          ``.tab``, ``.txt``: through pyarrow, which ``pip install sketchmeans[files]``
          brings.  How text is written is found out, see `dialect`.  A column of true
          and false is one of 1 and 0
        - ``.svmlight``, ``.svm``, ``.libsvm``: sparse
        - ``.xlsx``, ``.xlsm``, ``.ods``: through python-calamine, which
          ``pip install sketchmeans[excel]`` brings
        - compressed ones of these, such as ``.csv.gz``, ``.bz2``, ``.xz`` or ``.zst``,
          which are decompressed to a temporary copy
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
    dialect : Dialect, optional
        How text is written: separator, decimal mark, encoding, lines above the names,
        codes of missing values.  What it leaves open is found out.  Numbers may have
        groups of three digits and signs of money or percent: 1.234,50 €, $1,200, 12 %.
    sheet : str or int, optional
        The sheet of a spreadsheet, by name or number from 0.  Default is the first
        with values in two rows and two columns.

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
    states = find_states(name)
    options = ReadOptions(
        columns,
        label_column,
        dtype,
        missing,
        header,
        zero_based,
        Dialect() if dialect is None else dialect,
        sheet,
    )
    check_options(states[0], options)
    partitions = find_partitions(name, states)
    opener = import_reader(states[0])
    if has_option(states[0], "zero_based"):  # files share the numbering of features
        source: Source = opener(name, states, options)
    else:
        options = _share_dialect(states, options)
        parts = _open_parts(states, partitions, opener, options)
        source = parts[0] if len(parts) == 1 else ConcatenatedSource(name, parts)
    check_not_empty(source.path, source.shape)
    return source


def column_types(
    path: str | os.PathLike[str],
    header: bool | None = None,
    dialect: Dialect | None = None,
    sheet: str | int | None = None,
) -> dict[str, str | None] | None:
    r"""Return the names of a file's columns, and the types of those without numbers.

    None for a file of numbers that has no names.  The type of numbers is None.  An
    index that pandas wrote is left out.  Of text only the first megabyte is read, and
    of several files the first.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,town\n31,Ulm\n")
    >>> column_types(path)
    {'age': None, 'town': 'string'}
    """
    states = find_states(os.fspath(path))
    state = states[0]
    options = ReadOptions(header=header, dialect=dialect or Dialect(), sheet=sheet)
    if not has_option(state, "columns"):
        return None
    schema = import_reader(state, "schema")(state, options)
    if schema is None:
        return None
    from sketchmeans.data.sources.arrow import NUMBERS, index_columns

    types = {
        field.name: None if field.type in NUMBERS else str(field.type)
        for field in schema
        if field.name not in index_columns(schema)
    }
    for name, value in find_partitions(os.fspath(path), states)[0].items():
        types[name] = "string" if isinstance(value, str) else None
    return types


def find_dialect(
    path: str | os.PathLike[str],
    header: bool | None = None,
    dialect: Dialect | None = None,
    sheet: str | int | None = None,
) -> Dialect | None:
    r"""Return how a text table is written; None for other formats.

    Of several files the first is inspected.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("size;town\n1,78;Ulm\n")
    >>> find_dialect(path).describe()
    'separated by semicolons, decimal comma, in UTF-8'
    """
    state = find_states(os.fspath(path))[0]
    options = ReadOptions(header=header, dialect=dialect or Dialect(), sheet=sheet)
    check_options(state, options)
    if not has_option(state, "dialect"):
        return None
    return import_reader(state, "dialect")(state, options)


def open_records(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    header: bool | None = None,
    dialect: Dialect | None = None,
    sheet: str | int | None = None,
) -> Records:
    r"""Open the rows of a file with the types that they have.

    Parameters
    ----------
    path, columns, header, dialect, sheet
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
    states = find_states(name)
    if not has_option(states[0], "columns"):
        convert = import_function(name, "records", "source_records")
        return convert(open_rows(name), columns)
    options = ReadOptions(header=header, dialect=dialect or Dialect(), sheet=sheet)
    options = _share_dialect(states, options)
    opener = import_function(name, "records", "open_records")
    partitions = find_partitions(name, states)
    records: Records = opener(name, states, columns, options, partitions)
    check_not_empty(name, (len(records), len(records.schema)))
    return records


def file_states(path: str | os.PathLike[str]) -> list[FileState]:
    """Return the state of each file that a path stands for."""
    return find_states(os.fspath(path))


def _open_parts(
    states: list[FileState],
    partitions: list[dict[str, Value]],
    opener: Callable[[FileState, ReadOptions], Source],
    options: ReadOptions,
) -> list[Source]:
    """Return the rows of each file, with columns that are in the names of folders."""
    if not partitions[0]:
        return [opener(state, options) for state in states]
    own = leave_to_files(options, partitions[0])
    return [
        PartitionedSource(opener(state, own), values, options)
        for state, values in zip(states, partitions, strict=True)
    ]


def _share_dialect(states: list[FileState], options: ReadOptions) -> ReadOptions:
    """Return options that read several text tables as the first is written."""
    if len(states) == 1 or not has_option(states[0], "dialect"):
        return options
    found = import_reader(states[0], "dialect")(states[0], options)
    return replace(options, dialect=options.dialect.fill(found))


def as_source(X: Any) -> Source | None:
    """Return the source that a user's input is or names; None if it is a table."""
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return open_rows(X)
    if not is_stream(X):
        return None
    what = type(X).__name__
    state = import_function(what, "streams", "copy_to_file")(X)
    return import_function(what, "arrow", "open_arrow")(state, ReadOptions())
