"""What the formats have in common that pyarrow reads: named columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sketchmeans.data.sources.batches import Batch, DenseBatches, Selection
from sketchmeans.numerics.linalg import Array

#: What pyarrow's libraries take when they are first used.
ARROW_MEMORY = 24 * 10**6

#: Most rows, and most bytes, that are copied together: a block, unless it is very wide.
_TILE_ROWS = 4096
_TILE_BYTES = 8 * 2**20
#: Bytes of a column that are copied besides, where they are few beside the others.
#: Blocks often have a power of two of rows, and columns that lie so far apart would
#: drive each other out of the cache.
_APART_BYTES = 64
_APART_SHARE = 1 / 8

#: Arrow's numbers as NumPy's.  Its own `to_pandas_dtype`, `to_numpy` and
#: `pandas_metadata` import pandas, which takes longer than many a fit.
NUMBERS: dict[Any, np.dtype[Any]] = {
    pa.from_numpy_dtype(name): np.dtype(name)
    for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}


@dataclass(frozen=True)
class Columns:
    """The columns that are features, their common type, and the one set aside.

    `keeps_missing` says whether a value that is not there is NaN, or an error.
    """

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    label: str | None = None
    keeps_missing: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return len(self.names) * self.dtype.itemsize


class TableSource(DenseBatches):
    """Columns of a table as the features of rows; batches are those of `numbers_of`."""

    def __init__(self, path: str, n_rows: int, columns: Columns) -> None:
        self.path = path
        self.columns = columns
        self.shape = (n_rows, len(columns.names))
        self.dtype = columns.dtype
        self.feature_names = columns.names
        self._tile = max(min(_TILE_ROWS, _TILE_BYTES // columns.row_bytes), 1)
        apart = _APART_BYTES // columns.dtype.itemsize
        self._apart = apart if apart <= _APART_SHARE * self._tile else 0
        self.thread_memory = (self._tile + self._apart) * columns.row_bytes

    def _copy(self, batch: Batch, rows: Selection, out: Array) -> None:
        if isinstance(batch, np.ndarray):
            out[...] = batch[rows]
        elif isinstance(rows, slice):
            for start in range(0, len(out), self._tile):
                tile = out[start : start + self._tile]
                part = batch.slice(rows.start + start, len(tile) + self._apart)
                tile[...] = _matrix(part)[: len(tile)]
        else:
            out[...] = _matrix(batch.take(pa.array(rows)))

    def labels(self) -> Array:
        if self.columns.label is None:
            return super().labels()
        return self._label_values(self.columns.label)

    def _label_values(self, name: str) -> Array:
        """Return a column of any type."""
        raise NotImplementedError  # pragma: no cover - abstract


def numbers_of(batch: Any, path: str, columns: Columns, first: int) -> Batch:
    """Return the columns of an Arrow batch: as they are if all have the wanted type.

    Else as a matrix.  `first` is the number of the first row.  A column without a value
    in every row is an error, unless missing values are kept: then it is one of floats.
    """
    kind = pa.from_numpy_dtype(columns.dtype)
    batch = batch.select(list(columns.names))
    alike = all(c.type == kind and not c.null_count for c in batch.columns)
    if alike and not pa.types.is_boolean(kind):  # which are bits
        return batch
    matrix = np.empty(batch.shape, columns.dtype, order="F")
    for j, (name, column) in enumerate(zip(columns.names, batch.columns, strict=True)):
        numbers = column
        if column.null_count and columns.keeps_missing:
            numbers = column.cast(kind, safe=False).fill_null(np.nan)
        elif column.null_count:
            row = first + column.is_null().index(True).as_py()
            raise ValueError(
                f"{path} has no value in row {row}, column {name!r}; every value "
                "should be a finite number."
            )
        matrix[:, j] = _values(numbers)
    return matrix


def _matrix(batch: Any) -> Array:
    """Return the columns of an Arrow batch, one behind the other in memory."""
    # One step for all of them: other threads may come between the steps.
    matrix: Array = batch.to_tensor(row_major=False).to_numpy()
    return matrix


def _values(column: Any) -> Array:
    """Return the numbers of an Arrow array without nulls, uncopied."""
    if len(column) == 0:  # it may have no memory
        return np.empty(0, NUMBERS[column.type])
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    values: Array = np.frombuffer(
        column.buffers()[1],
        dtype=NUMBERS[column.type],
        count=column.offset + len(column),
    )[column.offset :]
    return values


def choose_columns(
    path: str,
    schema: Any,
    columns: Sequence[str] | None,
    label_column: str | None,
    dtype: npt.DTypeLike | None,
    missing: str = "error",
) -> Columns:
    """Return the columns that a user asked for, if they are there and are numbers.

    All but the label column, and an index that pandas wrote, where none are named.
    """
    known = schema.names
    if columns is None:
        aside = {label_column, *index_columns(schema)}
        columns = [name for name in known if name not in aside]
    else:
        columns = _checked_names(columns, label_column)
    wanted = [*columns, *([] if label_column is None else [label_column])]
    for name in wanted:
        if known.count(name) != 1:
            how_many = "no column" if name not in known else "more than one column"
            raise ValueError(
                f"{path} has {how_many} {name!r}; its columns are {_listed(known)}."
            )
    if not columns:
        raise ValueError(f"{path} has no features; at least one is needed.")
    types = [_number_type(path, schema.field(name)) for name in columns]
    common = np.result_type(*types) if dtype is None else np.dtype(dtype)
    keeps_missing = missing == "nan"
    if keeps_missing and common.kind != "f":  # no integer is NaN
        common = np.result_type(common, np.float32)
    return Columns(tuple(columns), common, label_column, keeps_missing)


def index_columns(schema: Any) -> list[str]:
    """Return the columns that hold an index that pandas wrote."""
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return [name for name in about.get("index_columns", []) if isinstance(name, str)]


def _checked_names(columns: Any, label_column: str | None) -> list[str]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"columns={columns!r} should be a list of names.")
    names = list(columns)
    if label_column in names:
        raise ValueError(
            f"label_column={label_column!r} should not be one of columns={names}."
        )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns={names} should be different names, at least one.")
    return names


def is_number(kind: Any) -> bool:
    """Say whether values of an Arrow type are numbers."""
    return kind in NUMBERS


def _number_type(path: str, field: Any) -> np.dtype[Any]:
    if is_number(field.type):
        return NUMBERS[field.type]
    raise ValueError(
        f"{path} has a column {field.name!r} of type {field.type}, which is no number; "
        "choose others with columns=, or set it aside with label_column=."
    )


def _listed(names: list[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"[{shown}, ...]" if len(names) > most else f"[{shown}]"


def label_array(path: str, name: str, column: Any) -> Array:
    """Return a column of any type as an array, if all its values are sound."""
    try:
        column.validate(full=True)
        return np.array(column.to_pylist())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is damaged in column {name!r}: {error}") from None
