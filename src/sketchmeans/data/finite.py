"""Values that are not finite: whether a block has any, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchmeans.data.sources.base import Block, is_csr
from sketchmeans.numerics.linalg import Array


def check_finite(
    block: Block,
    rows: int | Array = 0,
    name: str = "Input X",
    columns: Sequence[Any] | None = None,
) -> None:
    """Raise where a block holds NaN or infinity, and say in which row and column.

    `rows` is the number of the block's first row, or the numbers of all its rows.
    """
    if (found := find_not_finite(block)) is not None:
        i, j, kind = found
        row = rows + i if isinstance(rows, int) else rows[i]
        raise not_finite_error(name, kind, row, columns[j] if columns else j)


def find_not_finite(
    block: Block, *, allow_nan: bool = False
) -> tuple[int, int, str] | None:
    """Return row, column and kind of the first value that is not finite, if any."""
    values = block.data if is_csr(block) else block
    if values.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only if all its terms are, and costs a fraction of a test; a
        # sum of squares, which BLAS has, a fraction of that.
        flat = values.reshape(-1) if values.flags.c_contiguous else None
        total = values.sum() if flat is None else flat @ flat
        if np.isfinite(total) or np.isfinite(values).all():
            return None
    wrong = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    kind = "NaN" if np.isnan(values[at]) else "infinity"
    if is_csr(block):  # which may be too wide for a dense array
        at = np.searchsorted(block.indptr, at[0], "right") - 1, block.indices[at[0]]
    return int(at[0]), int(at[1]), kind


def not_finite_error(name: str, kind: str, row: int, column: Any) -> ValueError:
    """Return the error for a value that is not finite."""
    return ValueError(
        f"{name} contains {kind} (row {row}, column {column!r}); every value should be "
        "a finite number."
    )
