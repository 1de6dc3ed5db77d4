"""What a few landmarks show of the kernel matrix, and what is left.

With weights ``D`` let ``A = D^½ K D^½``.  The span of some rows in feature space gives
its Nyström approximation ``Ã = V Λ Vᵀ`` and a residual ``E = A − Ã``, which is positive
semi-definite.  With ``P = (Ã + γI)⁻¹`` and ``Q = (A + γI)⁻¹`` it is

    A(A + γI)⁻¹ = Ã(Ã + γI)⁻¹ + γ(P − Q),    γ(P − Q) = γ P^½ M(I + M)⁻¹ P^½,

where ``M = P^½ E P^½``.  The first part is known; the second lies between
``γPEP/(1 + ‖M‖)`` and ``γPEP``.  So numbers about ``E`` bound ridge leverage scores and
the effective dimension from both sides.  The diagonal of ``E`` costs a pass.  The rest
comes from some of its columns, drawn at random: no n × n matrix is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from sketchmeans.data.rows import block_height, block_slices
from sketchmeans.data.sampling import draw
from sketchmeans.landmarks.base import draw_distinct_rows
from sketchmeans.landmarks.leverage import (
    Ridge,
    WeightedKernel,
    recursive_ridge_leverage_scores,
)
from sketchmeans.numerics.linalg import (
    Array,
    eigen_decomposition,
    pseudo_inverse,
    relative_cut,
)
from sketchmeans.nystrom.features import FeatureRows
from sketchmeans.theory.problem import Problem

#: Independent batches of columns of the residual, and columns of each.
_BATCHES, _BATCH_SIZE = 16, 32
#: A feature may be a direction whose eigenvalue is as small as the rounding of the
#: kernel values allows: its own rounding is the root of that.
_FEATURE_ROUNDING = float(np.sqrt(np.finfo(np.float64).eps))

Interval = tuple[float, float]


class LandmarkSpan:
    """The span of rows chosen by their ridge leverage scores, no value twice.

    `values` are the eigenvalues of ``Ã``, `missing` is the diagonal of ``E``.  Costs
    three passes of n·m·(d + m) for m landmarks and the selection, in memory of a few
    blocks of rows and m².
    """

    def __init__(self, problem: Problem, ridge: float, n_landmarks: int) -> None:
        rows, kernel = problem.rows, problem.kernel
        rng, self._column_rng = problem.rng.spawn(2)
        self.matrix = WeightedKernel(rows, kernel)
        self.ridge = ridge
        m = min(n_landmarks, len(rows))
        rough = recursive_ridge_leverage_scores(
            rows, kernel, Ridge(ridge), max(m // 2, 1), rng
        )
        self.indices = np.sort(draw_distinct_rows(rows, m, rng, rough.scores))
        root = pseudo_inverse(self.matrix.gram(self.indices)).root()
        moment = self.matrix.second_moment(self.indices, root)
        values, rotation = eigen_decomposition(moment, driver="evd")
        self.values = np.maximum(values, 0.0)
        self.root = root @ rotation
        inside = self.matrix.projected_norms(self.indices, self.root)
        outside = np.maximum(self.matrix.diagonal - inside, 0.0)
        self.missing = self.matrix.weights * outside

    @cached_property
    def scores(self) -> Array:
        """The diagonal of ``Ã(Ã + γI)⁻¹``: leverage scores from below, in a pass."""
        shrunk = self.root / np.sqrt(self.values + self.ridge)
        norms = self.matrix.projected_norms(self.indices, shrunk)
        return np.asarray(self.matrix.weights * norms)

    @property
    def effective_dimension(self) -> float:
        """``tr Ã(Ã + γI)⁻¹``, which is at most that of A."""
        return float((self.values / (self.values + self.ridge)).sum())

    def bound_dimension(self, failure: float) -> Interval:
        """Return bounds on the effective dimension, which fail at most at this rate."""
        lower = upper = self.effective_dimension
        if not self._is_complete:
            added = self._bound_added(self.sample_residual(self._column_rng), failure)
            lower, upper = lower + added[0], upper + added[1]
        rounding = float(self._rounding.sum())
        return lower - rounding, upper + rounding

    def bound_scores(self, failure: float) -> tuple[Array, Array, Array]:
        """Return estimates of the scores, and bounds that fail at most at this rate."""
        ridge, diagonal, inside = self.ridge, self.matrix.weighted_diagonal, self.scores
        theta = added = 0.0
        if not self._is_complete:
            residual = self.sample_residual(self._column_rng)
            theta = residual.bound_norm(failure) / ridge
            # What the residual adds is shared out by its diagonal.
            added = 0.5 * sum(self._bound_added(residual, failure)) / residual.trace
        outside, leaked = np.sqrt(self.missing / ridge), np.sqrt(theta * inside)
        lower = inside + np.square(np.maximum(outside - leaked, 0.0)) / (1.0 + theta)
        largest = diagonal / (diagonal + ridge)
        upper = np.minimum(inside + np.square(outside + leaked), largest)
        lower = np.maximum(lower - self._rounding, 0.0)
        upper = np.maximum(upper + self._rounding, lower)
        return np.clip(inside + added * self.missing, lower, upper), lower, upper

    @property
    def _is_complete(self) -> bool:
        """Whether nothing but rounding is left outside the span."""
        noise = relative_cut(len(self.missing), np.float64) * self.matrix.trace
        return float(self.missing.sum()) <= noise

    @property
    def _rounding(self) -> Array:
        """What rounding may do to each score: a share of ``A_ii/γ``."""
        return np.asarray(
            _FEATURE_ROUNDING * self.matrix.weighted_diagonal / self.ridge
        )

    def _bound_added(self, residual: ResidualMoments, failure: float) -> Interval:
        """Return bounds on what the residual adds to the effective dimension."""
        # Three intervals have to hold at once.
        least, most = residual.bound_first_order(self.ridge, failure / 3.0)
        total = least + residual.bound_second_order(self.ridge, failure / 3.0)
        directions = len(self.matrix.support) - self.effective_dimension
        return (
            least**2 / total if total > 0.0 else 0.0,
            most / (1.0 + most / directions),
        )

    def sample_residual(self, rng: np.random.Generator) -> ResidualMoments:
        """Return moments of ``E``, from columns drawn by their diagonal entry.

        Draws in proportion to ``E_ii`` make every term bounded: column i of a positive
        semi-definite matrix has a squared length of at most ``E_ii ‖E‖₂``.
        """
        trace = float(self.missing.sum())
        numbers = draw(self.missing, _BATCHES * _BATCH_SIZE, rng)
        chances = (self.missing[numbers] / trace).reshape(_BATCHES, _BATCH_SIZE)
        overlap, products = self._multiply_columns(numbers)
        pairs = np.square(products) / (chances[:, :, None] * chances[:, None, :])
        apart = ~np.eye(_BATCH_SIZE, dtype=bool)
        squares = np.einsum("bii->bi", products) / chances
        return ResidualMoments(
            trace,
            (overlap.reshape(chances.shape) / chances).mean(axis=1),
            squares.mean(axis=1),
            pairs[:, apart].mean(axis=1),
        )

    def _multiply_columns(self, numbers: Array) -> tuple[Array, Array]:
        """Return ``[V(2G − G²)VᵀE]_ii`` and, for each batch, ``[E²]_ij``.

        ``G = Λ(Λ + γI)⁻¹``, and i and j run over these rows.  Costs n·s·(d + 2m) for s
        rows, in addition to the n·m·(d + m) of the features.
        """
        rows, kernel = self.matrix.rows, self.matrix.kernel
        points = kernel.points(rows, self.indices)
        features = FeatureRows(rows, kernel, points, self.root, rows.dtype)
        columns = kernel.against(kernel.points(rows, numbers), rows.dtype, rows.workers)
        roots = np.sqrt(self.matrix.weights)
        own = features.take(numbers) * roots[numbers, None]

        def multiply(span: tuple[int, int]) -> tuple[Array, Array]:
            block, scale = rows.block(*span), roots[slice(*span), None]
            F = features.block(*span) * scale
            E = columns(block) * scale * roots[numbers] - F @ own.T
            batches = E.reshape(len(E), _BATCHES, _BATCH_SIZE)
            return F.T @ E, batches.transpose(1, 2, 0) @ batches.transpose(1, 0, 2)

        width = len(self.indices) + len(numbers)
        edges = block_slices(len(rows), block_height(rows.n_features, width))
        inner = np.zeros((own.shape[1], len(numbers)))
        products = np.zeros((_BATCHES, _BATCH_SIZE, _BATCH_SIZE))
        for block_inner, block_products in rows.workers.map(multiply, edges):
            inner += block_inner
            products += block_products
        # Features have the length √λ where the eigenvectors V have the length 1.
        ridged = self.values + self.ridge
        share = (self.values + 2.0 * self.ridge) / np.square(ridged)
        return np.einsum("ir,r,ri->i", own, share, inner), products


@dataclass(frozen=True)
class ResidualMoments:
    """Moments of the residual: the trace exactly, the others estimated in each batch.

    `overlaps` estimate ``tr V(2G − G²)VᵀE = tr E − γ² tr PEP``, `squares` and `fourths`
    ``tr E²`` and ``tr E⁴``.
    """

    trace: float
    overlaps: Array
    squares: Array
    fourths: Array

    def bound_norm(self, tail: float) -> float:
        """Return a bound on ``‖E‖₂ ≤ (tr E⁴)^¼`` that fails with probability `tail`."""
        # For positive semi-definite E the trace is a bound as well.
        fourth = max(_compute_interval(self.fourths, tail)[1], 0.0)
        return float(min(fourth**0.25, self.trace))

    def bound_first_order(self, ridge: float, tail: float) -> Interval:
        """Return bounds on ``γ tr PEP``; each fails with probability `tail`."""
        least, most = _compute_interval(self.overlaps, tail)
        # The overlap is that of two positive semi-definite matrices.
        return (
            max(self.trace - most, 0.0) / ridge,
            (self.trace - max(least, 0.0)) / ridge,
        )

    def bound_second_order(self, ridge: float, tail: float) -> float:
        """Return a bound on ``γ tr PEPEP ≤ tr E²/γ²`` that fails at this rate."""
        return max(_compute_interval(self.squares, tail)[1], 0.0) / ridge**2


def _compute_interval(batches: Array, tail: float) -> Interval:
    """Return Student's interval for the mean of independent estimates."""
    reach = float(stats.t.isf(tail, len(batches) - 1)) * float(stats.sem(batches))
    mean = float(batches.mean())
    return mean - reach, mean + reach
