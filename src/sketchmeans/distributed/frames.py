"""Raw tables on a cluster: names, gaps and text, prepared one partition at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from sketchmeans.distributed.scheduler import compute, literal, task
from sketchmeans.distributed.table import count_rows, join_parts
from sketchmeans.numerics.linalg import Array

#: From a partition, a pandas DataFrame or an array, to an array of as many rows.
Mapping = Callable[[Any], Array]


def empty_table(X: Any) -> Any:
    """Return a table in memory with the columns and types of a collection."""
    if isinstance(X, da.Array):
        return np.zeros((1, X.shape[1]), X.dtype)
    return X._meta


def select_columns(X: Any, columns: Sequence[Any]) -> Any:
    """Return some columns of a collection, so that no others need be read."""
    if isinstance(X, da.Array):
        return X
    names = {str(name): name for name in X.columns}
    return X[[names[str(column)] for column in columns]]


def sample_table(X: Any, size: int) -> tuple[Any, Array]:
    """Return rows of a collection drawn at random, in memory, and their numbers.

    All of them if these are at most `size`; the same ones for the same rows.
    """
    parts = _parts(X)
    lengths = compute([task(count_rows, part) for part in parts])
    n_rows = sum(lengths)
    numbers = np.arange(n_rows)
    if n_rows > size:
        numbers = np.random.default_rng(0).choice(n_rows, size, replace=False)
        numbers.sort()
    edges = np.cumsum([0, *lengths])
    calls = [
        task(_take, part, literal(numbers[(numbers >= a) & (numbers < b)] - a))
        for part, a, b in zip(parts, edges[:-1], edges[1:], strict=True)
        if a < b
    ]
    found = compute(calls)
    if isinstance(X, da.Array):
        return np.concatenate(found), numbers
    # pandas is there: it made the partitions.
    return import_module("pandas").concat(found, ignore_index=True), numbers


def map_table(
    X: Any, function: Mapping, width: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    """Return what a function makes of each partition, as a lazy Dask array."""
    sent = literal(function)
    empty = literal(np.empty((0, *width), dtype))
    found = [
        task(_map, part, number, sent, empty) for number, part in enumerate(_parts(X))
    ]
    lengths: list[Any] = [np.nan] * len(found)
    if isinstance(X, da.Array):
        lengths = list(X.chunks[0])
    return join_parts(found, lengths, width, dtype)


def _parts(X: Any) -> list[Delayed]:
    """Return the partitions of a collection, each of whole rows."""
    if isinstance(X, da.Array) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts: list[Delayed] = np.ravel(X.to_delayed()).tolist()
    return parts


def _take(part: Any, numbers: Array) -> Any:
    return part.iloc[numbers] if hasattr(part, "iloc") else part[numbers]


def _map(part: Any, number: int, function: Mapping, empty: Array) -> Array:
    if not len(part):
        return empty
    try:
        return function(part)
    except ValueError as error:  # its rows are counted from the first of the partition
        raise ValueError(f"Partition {number} of X: {error}") from error
