"""What is done with one partition of rows, in the process that holds it.

Nothing here changes its arguments: a worker that is lost takes its results with it, and
whoever runs these functions will run them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.block_sums import Terms, add_up
from sketchmeans.data.rows import Block, Rows, block_slices, by_block
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers, process_buffers
from sketchmeans.numerics.sums import TreeSum


@dataclass(frozen=True)
class Declared:
    """What is known of a partition before it is read; None for what is not."""

    number: int
    length: int | None
    width: int
    names: tuple[Any, ...] | None


@dataclass(frozen=True)
class Partition:
    """A partition that has rows, and the number of its first row."""

    start: int
    length: int
    declared: Declared


@dataclass(frozen=True)
class PartitionInfo:
    """Where a partition is among all rows, and what it should look like."""

    #: Numbers of its first row and block.
    row: int
    block: int
    #: Type in which dataframes are read.
    dtype: np.dtype[Any]
    declared: Declared
    #: Whether all values are known to be finite.
    checked: bool = False
    #: What errors call the table.
    name: str = "Input X"


def as_block(part: Any, dtype: np.dtype[Any]) -> Block:
    """Return a partition as a block of rows, in the process that holds it."""
    if sparse.issparse(part):
        return sparse.csr_array(part)
    if hasattr(part, "to_numpy"):  # missing values become NaN, which is found later
        return part.to_numpy(dtype=dtype)
    return np.asarray(part)


def as_declared(part: Any, declared: Declared) -> Any:
    """Return a partition as it was declared, as far as that is known.

    Columns are taken by their names, in any order: Dask looks at none of this when a
    dataframe is made with ``verify_meta=False``.
    """
    length = part.shape[0] if declared.length is None else declared.length
    expected = (length, declared.width)
    if part.shape != expected:
        raise ValueError(
            f"Partition {declared.number} of X has the shape {tuple(part.shape)}; "
            f"{expected} was expected, as declared before."
        )
    names = declared.names
    if names is None or not hasattr(part, "columns") or tuple(part.columns) == names:
        return part
    found = list(part.columns)
    if set(found) != set(names) or len(set(found)) < len(found):
        raise ValueError(
            f"Partition {declared.number} of X has the columns {found}; {list(names)} "
            "were expected, as declared before."
        )
    return part[list(names)]


def rows_of(part: Any, weights: Array | None, info: PartitionInfo) -> Rows:
    """Return the rows of a partition, numbered as among all rows in errors."""
    rows = Rows(
        as_block(as_declared(part, info.declared), info.dtype),
        process_buffers(),
        weights,
        first=info.row,
        name=info.name,
        checked=info.checked,
    )
    rows.columns = info.declared.names
    return rows


def moment_sums(
    part: Any, info: PartitionInfo, weights: Array | None, shift: Array
) -> TreeSum:
    """Return the sums that give the moments of all rows."""
    with Workers(1):
        return rows_of(part, weights, info).moment_sums(shift, info.block)


def take_rows(part: Any, info: PartitionInfo, rows: Array) -> Block | None:
    """Return a few rows of a partition."""
    if not len(rows):
        return None
    return as_block(as_declared(part, info.declared), info.dtype)[rows]


def map_part(
    part: Any, info: PartitionInfo, function: Callable[[Block], Block], height: int
) -> Array:
    """Return other features of the rows of a partition."""
    if not part.shape[0]:  # as its functions may not like blocks without rows
        part = np.zeros((1, info.declared.width), info.dtype)
        return np.asarray(function(part))[:0]
    return np.concatenate(map_blocks(part, info, function, height))


def sum_terms(
    part: Any,
    info: PartitionInfo,
    weights: Array | None,
    function: Terms,
    height: int,
) -> tuple[Array, ...]:
    """Return the sums of what a function returns for the blocks of a partition."""
    with Workers(1):
        rows = rows_of(part, weights, info)
        return add_up(
            function(rows.block(*span), rows.block_weights(*span))
            for span in block_slices(len(rows), height)
        )


def map_some(
    part: Any,
    info: PartitionInfo,
    numbers: Array,
    function: Callable[[Block], Any],
    height: int,
) -> list[Any]:
    """Return what a function returns for some rows of each block."""
    if not len(numbers):
        return []
    return map_blocks(part, info, function, height, numbers)


def map_blocks(
    part: Any,
    info: PartitionInfo,
    function: Callable[[Block], Any],
    height: int,
    numbers: Array | None = None,
) -> list[Any]:
    """Return what a function returns for each block, or for some rows of each."""
    with Workers(1):
        rows = rows_of(part, None, info)
        if numbers is None:
            return [
                function(rows.block(*span)) for span in block_slices(len(rows), height)
            ]
        groups = by_block(numbers, height)
        return [function(rows.take(numbers[slice(*span)])) for _, span in groups]
