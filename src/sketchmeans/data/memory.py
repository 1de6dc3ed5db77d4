"""What rows take of memory as they are read, added up before the first is."""

from __future__ import annotations

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows, block_height
from sketchmeans.numerics.memory import FIXED_NEED, memory_budget, plan_memory


def plan_pass(rows: Rows, max_memory: float | str | None) -> None:
    """Raise where one pass over very wide rows would take more than `max_memory`.

    Blocks of narrower rows are part of what a fit takes whatever its size.
    """
    # Sums over all rows, and those of a block.
    sums = 4 * rows.n_features * 8
    block = block_need(rows)
    if find_adapter(rows) is not None or sums + block <= FIXED_NEED:
        return
    budget = memory_budget(max_memory)
    fitting = (budget - rows.memory - sums) // max(block, 1)
    rows.workers.limit(max(1, min(rows.workers.n_jobs, fitting)))
    plan_memory(
        rows.memory + sums + block * rows.workers.n_jobs,
        budget,
        f"A pass over rows of {rows.n_features:,} features needs {{}}",
        "Choose features, give a sparse matrix, or raise max_memory.",
    )


def block_need(rows: Rows) -> int:
    """Return the bytes of a block of rows in float64; those of CSR rows are few."""
    if rows.is_sparse:
        return 0
    height = min(block_height(rows.n_features, 0), len(rows))
    return height * rows.n_features * 8


def points_need(rows: Rows, m: int) -> int:
    """Return the bytes of m rows as landmarks, as they are prepared for products.

    Dense ones are stored, taken about their mean in float64, times a factor, and turned
    into columns, in float64 once more at the end; CSR ones are stored twice more, with
    a pointer for each feature.
    """
    d, size = rows.n_features, rows.taken_bytes
    if rows.is_sparse:
        return int(3 * m * size + 16 * d)
    return int(m * (size + d * (24 + rows.dtype.itemsize)))


def plan_points(rows: Rows, m: int, budget: int) -> None:
    """Raise where the landmarks themselves take more than a budget.

    Those of narrower rows are part of what a fit takes whatever its size.
    """
    need = points_need(rows, m)
    if need > FIXED_NEED:
        plan_memory(
            need,
            budget,
            f"{m:,} landmarks of {rows.n_features:,} features need {{}}",
            "Lower n_landmarks or raise max_memory.",
        )
