"""Spark DataFrames as partitions of rows, one array for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.ml.functions import vector_to_array
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from sketchmeans.data.partitions import Declared, Partition
from sketchmeans.data.rows import Block
from sketchmeans.numerics.linalg import Array

#: The values of a partition and their weights, or None where it has no rows.
Part = tuple[Array, Array | None] | None

#: Types of Spark for numbers; float32 holds the first four without loss.
_NUMBERS = ("float", "tinyint", "smallint", "boolean", "double", "int", "bigint")


class SparkTable:
    """The rows of a Spark DataFrame, for `fit`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    features : str or sequence of str, optional
        A column of vectors (or arrays), or columns of numbers; all columns but `weight`
        where it is not given.
    weight : str, optional
        A column of weights, which a fit takes as its `sample_weight`.

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> table = SparkTable(people, ["income", "age"], "weight")  # doctest: +SKIP
    >>> model = NystromKMeans(5).fit(table)  # doctest: +SKIP
    """

    def __init__(
        self,
        frame: DataFrame,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        if features is None:
            features = [name for name in frame.columns if name != weight]
        names = [features] if isinstance(features, str) else list(features)
        self.frame, self.weight = frame, weight
        self._vector, kinds = _join_columns(frame, names)
        is_short = all(kind in _NUMBERS[:4] for kind in kinds)
        self.dtype = np.dtype(np.float32 if is_short else np.float64)
        self.names = None if "vector" in kinds or not kinds else names

    @cached_property
    def n_features(self) -> int:
        """Number of features; that of the first row where they are a vector."""
        if self.names is not None:
            return len(self.names)
        first = self.frame.select(sql.size(self._vector)).first()
        if first is None or (first[0] or 0) < 1:
            raise ValueError("X should have a row, and its first vector some values.")
        return int(first[0])

    @property
    def meta(self) -> Any:
        """A table without rows that has the width and the names of this one."""
        if self.names is None:
            return np.empty((0, self.n_features))
        return pd.DataFrame(columns=self.names)

    @cached_property
    def parts(self) -> Any:
        """One `Part` for each partition of the DataFrame, which executors keep."""
        width, dtype, is_weighted = self.n_features, self.dtype, self.weight is not None
        weight = sql.col(f"`{self.weight}`") if is_weighted else sql.lit(None)
        kind = "array<float>" if dtype == np.float32 else "array<double>"
        chosen = self._vector.cast(kind).alias("x"), weight.cast("double").alias("w")
        packed = self.frame.select(*chosen).mapInArrow(
            lambda batches: _pack(batches, width), "x binary, w binary"
        )

        def unpack(rows: Iterator[Any]) -> Iterator[Part]:
            found = next(iter(rows), None)  # none of an empty partition
            if found is None or not found.x:
                yield None
            else:
                weights = np.frombuffer(found.w) if is_weighted else None
                yield np.frombuffer(found.x, dtype).reshape(-1, width), weights

        return keep(packed.rdd.mapPartitions(unpack))

    @cached_property
    def lengths(self) -> list[int]:
        """The rows of each partition; counted in the pass that reads them."""
        return list(self.parts.map(lambda part: len(part[0]) if part else 0).collect())

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return sum(self.lengths), self.n_features

    @cached_property
    def column_weights(self) -> Array | None:
        """The column of weights, in the order of the partitions."""
        if self.weight is None:
            return None
        found = self.parts.filter(bool).map(lambda part: part[1]).collect()
        return np.concatenate(found)

    @cached_property
    def partitions(self) -> list[Partition]:
        """The partitions that have rows."""
        starts, width = np.cumsum([0, *self.lengths]).tolist(), self.n_features
        names = None if self.names is None else tuple(self.names)
        return [
            Partition(starts[i], length, Declared(i, length, width, names))
            for i, length in enumerate(self.lengths)
            if length
        ]


class MappedTable(SparkTable):
    """Other features of the rows of a table, computed where these are."""

    weight = None

    def __init__(self, source: SparkTable, function: Callable[[Block], Block]) -> None:
        probe = np.asarray(function(np.zeros((1, source.n_features), source.dtype)))
        self.frame, self.lengths = source.frame, source.lengths
        self.dtype, self.n_features = probe.dtype, probe.shape[1]

        def view(part: Part) -> Part:
            return part and (np.ascontiguousarray(function(part[0])), part[1])

        self.parts = one_each(source.parts.map(view))


def as_table(X: Any) -> SparkTable:
    """Return a Spark DataFrame as a table, if it is one of numbers or vectors."""
    if isinstance(X, SparkTable):
        return X
    if not hasattr(X, "_jdf"):
        raise TypeError(
            f"X of type {type(X).__module__}.{type(X).__name__} should be a DataFrame "
            "of a Spark session that is not remote: Spark Connect has no RDDs, in "
            "which partitions are kept."
        )
    return SparkTable(X)


def one_each(rdd: Any) -> Any:
    """Return an RDD of one value for each partition, to be zipped with others.

    Spark zips batches of equal size; else all rows would be packed once more.
    """
    return rdd._reserialize(BatchedSerializer(CPickleSerializer(), 1))


def keep(rdd: Any) -> Any:
    """Return the same values, which executors keep in memory or on disk."""
    return one_each(rdd).persist(StorageLevel.MEMORY_AND_DISK)


def _join_columns(frame: DataFrame, names: list[str]) -> tuple[Any, list[str]]:
    """Return columns as one of arrays, and the types of numbers in it."""
    kinds = dict(frame.dtypes)
    if not names or not set(names) <= set(kinds):
        raise ValueError(f"features={names} should be columns of X: {list(kinds)}.")
    columns = [sql.col(f"`{name}`") for name in names]
    first = kinds[names[0]]
    if len(names) == 1 and first.startswith("array<"):
        return columns[0], ["vector", first[6:-1]]
    if len(names) == 1 and first == "vector":
        return vector_to_array(columns[0]), ["vector"]
    for name in names:
        if kinds[name] not in _NUMBERS and not kinds[name].startswith("decimal"):
            raise ValueError(
                f"Column {name!r} of X has the type {kinds[name]}; it should be "
                "numeric, or a vector that is the only column."
            )
    return sql.array(*(c.cast("double") for c in columns)), [kinds[n] for n in names]


def _pack(batches: Iterator[pa.RecordBatch], width: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition as one value, and their weights as another."""
    values, weights = bytearray(), bytearray()
    for batch in batches:
        vectors, own = batch.columns
        lengths = vectors.value_lengths().to_numpy(zero_copy_only=False)
        wrong = lengths[~(lengths == width)]
        if len(wrong):
            raise ValueError(f"A vector of X has {wrong[0]} values, the first {width}.")
        values += vectors.flatten().to_numpy(zero_copy_only=False).tobytes()
        weights += own.to_numpy(zero_copy_only=False).tobytes()
        if len(values) >= 2**31:
            raise ValueError(
                "A partition of X takes 2 GB, which Spark cannot keep as one value: "
                "call X.repartition with more partitions."
            )
    both = [pa.array([bytes(part)], pa.binary()) for part in (values, weights)]
    yield pa.RecordBatch.from_arrays(both, names=["x", "w"])
