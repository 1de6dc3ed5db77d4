"""Sums over the blocks of all rows, added up where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Block, Rows, block_slices
from sketchmeans.numerics.linalg import Array

#: From a block of rows and its weights (None where all are one) to terms of sums.
Terms = Callable[[Block, Array | None], tuple[Array, ...]]


def sum_blocks(rows: Rows, function: Terms, height: int) -> tuple[Array, ...]:
    """Return the sums of what a function returns for the blocks of all rows.

    The terms of a block are arrays of its own: the first become the sums.  On a cluster
    workers add up their blocks, and only sums travel.
    """
    if find_adapter(rows) is not None:
        remote: tuple[Array, ...] = rows.sum_blocks(function, height)  # type: ignore[attr-defined]
        return remote
    return add_up(
        rows.workers.map(
            lambda span: function(rows.block(*span), rows.block_weights(*span)),
            block_slices(len(rows), height),
        )
    )


def add_up(terms: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the sums of terms, in their order; the first are overwritten."""
    sums: tuple[Array, ...] = ()
    for parts in terms:
        if not sums:
            sums = parts
            continue
        for total, part in zip(sums, parts, strict=True):
            total += part
    return sums
