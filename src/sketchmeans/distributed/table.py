"""Dask arrays and dataframes as partitions of rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
from dask.array.optimization import optimize
from dask.delayed import Delayed
from scipy import sparse

from sketchmeans.data.partitions import Declared, Partition, as_declared
from sketchmeans.distributed.scheduler import (
    compute,
    free_memory,
    literal,
    persist,
    task,
)

#: Of a value and its column number in a CSR matrix, about.
_BYTES_PER_NONZERO = 12


@dataclass(frozen=True)
class DaskPartition(Partition):
    """A partition, and the task that has its rows."""

    rows: Delayed


class DaskTable:
    """A Dask array or dataframe, cut into partitions of whole rows.

    The parts are arrays, CSR matrices or pandas DataFrames; `lengths` are None where
    Dask does not know them, and `meta` is a table without rows that has the width and
    names of this one.
    """

    #: Whether the rows are kept where they were computed.
    is_persisted = False
    #: The first partition, while it may be needed again.
    _first: Delayed | None = None

    def __init__(
        self,
        collection: Any,
        lengths: list[int] | None,
        dtype: np.dtype[Any],
        meta: Any,
    ) -> None:
        delayed = np.ravel(collection.to_delayed()).tolist()
        graph = _with_own_keys(delayed[0].__dask_graph__()) if delayed else {}
        if isinstance(collection, da.Array):
            # What is persisted is left out when an array is optimized.
            graph = {**collection.__dask_graph__(), **graph}
        elif delayed:
            # Predictions are arrays, for which Dask fuses tasks that it leaves alone
            # for dataframes: a scheduler that has the tasks of a fit should not meet
            # others under the same keys.
            graph = {**graph, **optimize(graph, [part.key for part in delayed])}
        self.parts = [Delayed(part.key, graph) for part in delayed]
        self._collection = collection
        self.known_lengths = lengths
        self.dtype = dtype
        self.meta = meta
        self.n_features = int(meta.shape[1])

    def delayed(self) -> list[Delayed]:
        """Return the parts as Dask's own tasks.

        Not optimized: Dask will do so once more, and a scheduler that has the tasks of
        a fit would meet others under the same keys.
        """
        tasks = np.ravel(self._collection.to_delayed(optimize_graph=False)).tolist()
        graph = tasks[0].__dask_graph__() if tasks else {}
        if all(getattr(node, "key", key) == key for key, node in graph.items()):
            return tasks
        return [Delayed(part.key, _with_own_keys(graph)) for part in tasks]

    @cached_property
    def lengths(self) -> list[int]:
        """The rows of each part; counted, in one pass, where Dask does not know."""
        if self.known_lengths is not None:
            return self.known_lengths
        self._persist_uncounted()
        return [
            int(n) for n in compute([task(count_rows, part) for part in self.parts])
        ]

    def _persist_uncounted(self) -> None:
        """Keep the parts on a cluster before they are counted, if they seem to fit.

        To read files once more costs as much as a pass.  The first part shows how large
        they are.
        """
        free, is_elsewhere = free_memory(0)
        if not (is_elsewhere and self.parts):
            return
        first, *others = self.parts
        (first,) = persist([first])  # it is not computed twice
        (size,) = compute([task(_count_bytes, first)])
        if 2 * size * len(self.parts) <= free:
            self.parts = [first, *persist(others)]
            self.is_persisted = True

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return sum(self.lengths), self.n_features

    def declared(self, number: int, length: int | None) -> Declared:
        """Return what Dask says of a partition; a length of None is not known."""
        names = tuple(self.meta.columns) if hasattr(self.meta, "columns") else None
        return Declared(number, length, self.n_features, names)

    @cached_property
    def partitions(self) -> list[DaskPartition]:
        """The parts that have rows."""
        starts = np.cumsum([0, *self.lengths]).tolist()
        return [
            DaskPartition(start, length, self.declared(number, length), part)
            for number, (part, start, length) in enumerate(
                zip(self.parts, starts, self.lengths, strict=False)
            )
            if length
        ]

    @cached_property
    def _sample(self) -> tuple[bool, float]:
        """Whether the first partition is sparse, and the bytes of its rows."""
        first = self.partitions[0]
        (self._first,) = persist([first.rows])  # it is not computed twice
        described = task(_describe, self._first, literal(first.declared))
        found: tuple[bool, float] = compute([described])[0]
        return found

    @property
    def is_sparse(self) -> bool:
        """Whether the partitions are CSR matrices, which a Dask array does not say."""
        return not hasattr(self.meta, "columns") and self._sample[0]

    @property
    def nnz(self) -> int:
        """Stored values of CSR rows, about."""
        return int(self.size / _BYTES_PER_NONZERO)

    @property
    def size(self) -> int:
        """Bytes of all rows, about."""
        return int(self.shape[0] * self._sample[1])

    def forget_first(self) -> None:
        """Release the partition that showed what the others are like."""
        self._first = None

    def persist(self) -> None:
        """Keep the rows where they are computed, or where they are already."""
        found = self.partitions
        done = [] if self._first is None else [self._first]
        # Not together: graphs of others hold the task of the first under its key.
        kept = [*done, *persist([part.rows for part in found[len(done) :]])]
        self.is_persisted = True
        self.forget_first()
        self.partitions = [
            replace(part, rows=rows) for part, rows in zip(found, kept, strict=True)
        ]


def as_table(X: Any) -> DaskTable:
    """Return a Dask array or dataframe as a table, if it is one of numbers."""
    if isinstance(X, DaskTable):
        return X
    if isinstance(X, da.Array):
        table = _from_array(X)
    elif _is_frame(X):
        table = _from_frame(X)
    else:
        raise TypeError(
            f"X of type {type(X).__module__}.{type(X).__name__} should be a Dask array "
            "or a Dask dataframe."
        )
    if not table.n_features:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
            "required."
        )
    return table


def _is_frame(X: Any) -> bool:
    # Its import takes seconds, and who has a dataframe has made it.
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(X, frames.DataFrame)


def _from_array(X: Any) -> DaskTable:
    if X.ndim != 2:
        raise ValueError(
            f"X of shape {X.shape} should be a table of two dimensions: rows and "
            "features."
        )
    if np.isnan(X.shape[1]):
        raise ValueError(
            f"X of shape {X.shape} should have a known number of features: call "
            "X.compute_chunk_sizes() first."
        )
    _check_numeric(X.dtype, "X")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    lengths = None if np.isnan(X.shape[0]) else [int(n) for n in X.chunks[0]]
    meta = np.empty((0, int(X.shape[1])))
    return DaskTable(X, lengths, X.dtype, meta)


def _from_frame(X: Any) -> DaskTable:
    kinds = []
    for name, kind in X.dtypes.items():
        # Types of pandas for numbers that may be missing have a NumPy counterpart.
        numpy_kind = getattr(kind, "numpy_dtype", kind)
        if not isinstance(numpy_kind, np.dtype):
            raise ValueError(
                f"Column {name!r} of X has the type {kind}; it should be numeric."
            )
        _check_numeric(numpy_kind, f"Column {name!r} of X")
        kinds.append(numpy_kind if numpy_kind is kind else np.dtype(np.float64))
    dtype = np.result_type(*kinds) if kinds else np.dtype(float)
    return DaskTable(X, None, dtype, X._meta)


def _check_numeric(dtype: Any, what: str) -> None:
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"{what} has the type {dtype}; it should be numeric.")


def _with_own_keys(graph: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a graph in which each task knows its key.

    ``from_delayed(verify_meta=False)`` leaves references under one key that say that
    they have another, and Dask itself stumbles over them when it joins tasks.
    """
    return {
        key: node.target
        if getattr(node, "key", key) != key and hasattr(node, "target")
        else node
        for key, node in graph.items()
    }


def count_rows(part: Any) -> int:
    """Return the number of rows of a partition."""
    return int(part.shape[0])


def _count_bytes(part: Any) -> float:
    """Return the bytes of a partition."""
    names = tuple(part.columns) if hasattr(part, "columns") else None
    n_rows, width = part.shape
    declared = Declared(0, n_rows, width, names)
    return n_rows * _describe(part, declared)[1] if n_rows else 0.0


def _describe(part: Any, declared: Declared) -> tuple[bool, float]:
    """Return whether a partition is sparse, and the bytes of a row."""
    part = as_declared(part, declared)
    if sparse.issparse(part):
        rows = sparse.csr_array(part)
        size = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
        return True, size / rows.shape[0]
    if hasattr(part, "memory_usage"):
        return False, part.memory_usage(deep=True).sum() / len(part)
    return False, part.nbytes / len(part)


def join_parts(
    parts: list[Delayed],
    lengths: list[Any],
    width: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Any:
    """Return arrays of several partitions as one lazy array; NaN is not known."""
    arrays = [
        da.from_delayed(part, (length, *width), dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
