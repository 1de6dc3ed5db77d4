"""Every pass means the same wherever it runs: in parts it has the bits of the whole."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from sketchmeans.data.rows import Rows
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.bounds import CenterShifts, Reassign, RowState
from sketchmeans.engine.passes import (
    FullPass,
    LoosenBounds,
    PartialPass,
    PartitionSums,
)
from sketchmeans.engine.queries import (
    FarthestRows,
    NearestMembers,
    OwnCosts,
    TotalCost,
)
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics.parallel import Workers

HEIGHT, N, K = 64, 1000, 4
#: Rows of each part: whole blocks, but for the last.
PARTS = (slice(0, 5 * HEIGHT), slice(5 * HEIGHT, 6 * HEIGHT), slice(6 * HEIGHT, N))


@pytest.fixture(scope="module", name="X")
def _rows():
    return np.random.default_rng(0).normal(size=(N, 3))


def _cut(values, part):
    """Return the rows of a part of an array or of a state."""
    if isinstance(values, RowState):
        return RowState(
            **{f.name: getattr(values, f.name)[part] for f in fields(values)}
        )
    return values[part]


def _assert_same(one, other):
    if isinstance(one, int | float):
        assert one == other
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        for name, value in vars(one).items():
            np.testing.assert_array_equal(value, getattr(other, name))


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
@pytest.mark.parametrize("weighted", [False, True])
def test_passes_over_parts_combine_to_that_over_all(X, kernel, weighted):
    weights = np.random.default_rng(1).integers(0, 4, N) * 0.3 if weighted else None
    with Workers(1) as workers:
        space = LandmarkSpace(as_kernel(kernel, gamma=0.1), X[:50], X.dtype, workers)
        space.height = HEIGHT

        def blocks(part):
            own = None if weights is None else weights[part]
            rows = Rows(X[part], workers, own, first=part.start)
            return KernelBlocks(rows, space, first=part.start // HEIGHT)

        whole = blocks(slice(0, N))
        engine = local_engine(whole.rows, space)
        start = engine.centers_at(np.array([[0, 1, 2, 3], [5, 6, 7, 8]]))
        lone = start.select([0])
        state = FullPass(lone).chunk(whole)[0]
        moved = engine.update(engine.assign(lone), lone)
        shifts = CenterShifts.between(lone, moved)
        loose, labels = state.loosen(shifts), state.labels
        assert 0 < loose.active.sum() < N
        runs = [
            (FullPass(lone), labels),
            (FullPass(start),),
            (LoosenBounds(shifts), state),
            (PartialPass(moved, Reassign.SINGLE), loose),
            (PartialPass(moved, Reassign.PICKED), loose),
            (PartitionSums(1, K, 50), labels),
            (TotalCost(lone),),
            (OwnCosts(lone), labels),
            (FarthestRows(lone, 20), labels),
            (NearestMembers(moved, shifts, shifts.moved), state, labels),
        ]
        for reduction, *values in runs:
            expected = reduction.finalize(reduction.chunk(whole, *values)[1])
            summaries = [
                reduction.chunk(blocks(part), *(_cut(v, part) for v in values))[1]
                for part in PARTS
            ]
            # In any order and grouping, as a tree of tasks may have it.
            last, first, middle = summaries[2], summaries[0], summaries[1]
            combined = reduction.combine([reduction.combine([last, first]), middle])
            _assert_same(reduction.finalize(combined), expected)
