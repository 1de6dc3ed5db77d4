"""What fits need of memory, added up before the work starts."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.memory import points_need
from sketchmeans.data.rows import Rows, block_height
from sketchmeans.engine.restarts import FINALISTS
from sketchmeans.engine.space import FeatureSpace, SpanSpace
from sketchmeans.numerics.memory import FIXED_NEED

#: More rows than all restarts race on.
_RACED_ROWS = 2**17


def fit_need(rows: Rows, space: SpanSpace, k: int, restarts: int, sample: int) -> int:
    """Return the bytes at the peak of a fit, without threads and stored values."""
    m, n_landmarks = space.n_columns, space.landmarks.shape[0]
    if isinstance(space, FeatureSpace):
        # Features, without their mean, their copy in the solver, vectors on both sides.
        algebra = (5 * n_landmarks * m + 4 * min(n_landmarks, m) ** 2) * 8
    else:  # k(Z, Z), its copy in the solver, the eigenvectors; Z itself
        algebra = 3 * max(m, n_landmarks) * m * 8 + points_need(rows, n_landmarks)
    sums = sum_bytes(rows, space, k, restarts, bool(sample))
    # Labels of three passes, the two nearest distances and the norm of every row, and
    # whether to look at it again; more than it takes to draw a subsample.
    norm = 0 if space.constant_norm is not None else 8
    label = np.min_scalar_type(k).itemsize
    passes = len(rows) * (3 * label + 1 + 2 * rows.dtype.itemsize + norm)
    if find_adapter(rows) is not None:  # of another process
        passes = len(rows) * (0 if rows.weights is None else 8)
    # Labels and seeds of restarts: all of them on some rows, few on a large sample,
    # which is gone before the passes over all rows.
    seeded = min(sample, _RACED_ROWS) or len(rows)
    race = 28 * restarts * seeded
    race += 16 * (sample or len(rows))
    race += sample * (28 * min(restarts, FINALISTS) + rows.taken_bytes)
    rest = max(race, passes) if sample else race + passes
    return int(FIXED_NEED + rows.memory + algebra + sums + rest)


def sum_bytes(
    rows: Rows, space: SpanSpace, k: int, restarts: int, is_raced: bool
) -> int:
    """Return the bytes of the sums of four passes, and of a tree over all blocks."""
    levels = (len(rows) // space.height).bit_length() + 1
    n_sums = 4 * restarts + levels * (1 if is_raced else restarts)
    return n_sums * k * space.n_columns * 8


def centers_need(rows: Rows, k: int, restarts: int) -> int:
    """Return the bytes of centres in the space of the rows, and of a block of these."""
    height = block_height(rows.n_features, k)
    # Centres before and after a pass, and the partial sums of a tree over all blocks.
    levels = (len(rows) // height).bit_length() + 1
    values = (8 + levels) * restarts * k + min(height, len(rows))
    return int(values * rows.n_features * 8)


def thread_need(rows: Rows, space: SpanSpace, k: int, restarts: int) -> int:
    """Return the bytes of one thread's blocks."""
    m = space.n_columns
    width = 3 * m + 4 * k * restarts
    # Rows about their mean, and the features of them that vary among the landmarks; or
    # their few values in float64, and of what they were read into.
    own = 2 * rows.n_features * rows.dtype.itemsize
    if rows.is_sparse:
        own = min(own, 3 * rows.taken_bytes)
    # A kernel that is not a matrix product makes copies in float64 on its way.
    copies = 0 if space.kernel.in_place else 6 * m * 8
    blocks = space.height * (width * rows.dtype.itemsize + own + copies)
    return int(blocks + rows.thread_memory(space.height))
