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

from sketchmeans.data.rows import Rows, block_height, spans
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import successive_draws
from sketchmeans.landmarks.dictionary import WeightedKernel
from sketchmeans.landmarks.draws import draw
from sketchmeans.landmarks.scores import recursive_ridge_leverage_scores
from sketchmeans.numerics.linalg import (
    Array,
    eigen_decomposition,
    pseudo_inverse,
    relative_cut,
)
from sketchmeans.nystrom.transformer import _FeatureRows

#: Columns of the residual are drawn in so many independent batches ...
_BATCHES = 16
#: ... of so many columns each.
_BATCH_SIZE = 32

#: A feature may be a direction whose eigenvalue is as small as the rounding of the
#: kernel values allows: its own rounding is the root of that.
_FEATURE_ROUNDING = float(np.sqrt(np.finfo(np.float64).eps))


@dataclass(frozen=True)
class Band:
    """A number that is known up to an interval."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The centre of the interval."""
        return 0.5 * (self.lower + self.upper)


class LandmarkSpan:
    """The span of rows chosen by their ridge leverage scores.

    Costs three passes of n·m·(d + m) for m landmarks and the selection, in memory of
    a few blocks of rows and m².

    Parameters
    ----------
    rows : Rows
        With their weights.
    kernel : Kernel
    ridge : float
        γ.
    n_landmarks : int
        m.
    rng : Generator

    Attributes
    ----------
    values : ndarray of shape (r,)
        The eigenvalues of ``Ã``.
    missing : ndarray of shape (n,)
        The diagonal of ``E``.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        ridge: float,
        n_landmarks: int,
        rng: np.random.Generator,
    ) -> None:
        self.matrix = WeightedKernel(rows, kernel)
        self.ridge = ridge
        self.indices = _choose(rows, kernel, ridge, n_landmarks, rng)
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
    def complete(self) -> bool:
        """Whether nothing but rounding is left outside the span."""
        noise = relative_cut(len(self.missing), np.float64) * self.matrix.trace
        return float(self.missing.sum()) <= noise

    @property
    def rounding(self) -> Array:
        """What rounding may do to each score: a share of ``A_ii/γ``."""
        return np.asarray(_FEATURE_ROUNDING * self.matrix.mass / self.ridge)

    @property
    def effective_dimension(self) -> float:
        """``tr Ã(Ã + γI)⁻¹``, which is at most that of A."""
        return float((self.values / (self.values + self.ridge)).sum())

    def residual(self, rng: np.random.Generator) -> ResidualMoments:
        """Return moments of ``E``, from columns drawn by their diagonal entry.

        Draws in proportion to ``E_ii`` make every term bounded: column i of a positive
        semi-definite matrix has a squared length of at most ``E_ii ‖E‖₂``.
        """
        trace = float(self.missing.sum())
        size = _BATCHES * _BATCH_SIZE
        numbers = draw(self.missing, size, rng)
        chances = (self.missing[numbers] / trace).reshape(_BATCHES, _BATCH_SIZE)
        overlap, products = self._columns(numbers)
        pairs = np.square(products) / (chances[:, :, None] * chances[:, None, :])
        apart = ~np.eye(_BATCH_SIZE, dtype=bool)
        squares = np.einsum("bii->bi", products) / chances
        return ResidualMoments(
            trace,
            (overlap.reshape(chances.shape) / chances).mean(axis=1),
            squares.mean(axis=1),
            pairs[:, apart].mean(axis=1),
        )

    def _columns(self, numbers: Array) -> tuple[Array, Array]:
        """Return ``[V(2G − G²)VᵀE]_ii`` and, for each batch, ``[E²]_ij``.

        ``G = Λ(Λ + γI)⁻¹``, and i and j run over these rows.  Costs n·s·(d + 2m) for s
        rows, beside the n·m·(d + m) of the features.
        """
        rows, kernel = self.matrix.rows, self.matrix.kernel
        points = kernel.points(rows, self.indices)
        space = LandmarkSpace(kernel, points, rows.dtype, rows.workers)
        features = _FeatureRows(rows, space, self.root)
        columns = kernel.against(kernel.points(rows, numbers), rows.dtype, rows.workers)
        roots = np.sqrt(self.matrix.weights)
        own = features.take(numbers) * roots[numbers, None]

        def part(span: tuple[int, int]) -> tuple[Array, Array]:
            block, scale = rows.block(*span), roots[slice(*span), None]
            F = features.block(*span) * scale
            E = columns(block) * scale * roots[numbers] - F @ own.T
            batches = E.reshape(len(E), _BATCHES, _BATCH_SIZE)
            products = batches.transpose(1, 2, 0) @ batches.transpose(1, 0, 2)
            return F.T @ E, products

        width = len(self.indices) + len(numbers)
        inner = np.zeros((own.shape[1], len(numbers)))
        products = np.zeros((_BATCHES, _BATCH_SIZE, _BATCH_SIZE))
        edges = spans(len(rows), block_height(rows.n_features, width))
        for part_inner, part_products in rows.workers.map(part, edges):
            inner += part_inner
            products += part_products
        # Features have the length √λ where the eigenvectors V have the length 1.
        ridged = self.values + self.ridge
        share = (self.values + 2.0 * self.ridge) / np.square(ridged)
        return np.einsum("ir,r,ri->i", own, share, inner), products


@dataclass(frozen=True)
class ResidualMoments:
    """Moments of the residual, each as the independent estimates of some batches.

    Attributes
    ----------
    trace : float
        ``tr E``, exactly.
    overlaps : ndarray
        Estimates of ``tr V(2G − G²)VᵀE``, which is ``tr E − γ² tr PEP``.
    squares, fourths : ndarray
        Estimates of ``tr E²`` and ``tr E⁴``.
    """

    trace: float
    overlaps: Array
    squares: Array
    fourths: Array

    def norm(self, tail: float) -> float:
        """Return a bound on ``‖E‖₂ ≤ (tr E⁴)^¼`` that fails with probability `tail`."""
        # For positive semi-definite E both other norms are bounds as well.
        fourth = max(_interval(self.fourths, tail).upper, 0.0)
        return float(min(fourth**0.25, self.trace))

    def first_order(self, ridge: float, tail: float) -> Band:
        """Return a band for ``γ tr PEP``; each end fails with probability `tail`."""
        overlap = _interval(self.overlaps, tail)
        lowest = max(self.trace - overlap.upper, 0.0) / ridge
        # The overlap is that of two positive semi-definite matrices.
        return Band(lowest, (self.trace - max(overlap.lower, 0.0)) / ridge)

    def second_order(self, ridge: float, tail: float) -> float:
        """Return a bound on ``γ tr PEPEP ≤ tr E²/γ²`` that fails so often."""
        return max(_interval(self.squares, tail).upper, 0.0) / ridge**2


def _interval(batches: Array, tail: float) -> Band:
    """Return Student's interval for the mean of independent estimates."""
    error = float(stats.sem(batches))
    reach = float(stats.t.isf(tail, len(batches) - 1)) * error
    mean = float(batches.mean())
    return Band(mean - reach, mean + reach)


def _choose(
    rows: Rows,
    kernel: Kernel,
    ridge: float,
    n_landmarks: int,
    rng: np.random.Generator,
) -> Array:
    """Return rows drawn by approximate ridge leverage scores, no value twice."""
    size = max(n_landmarks // 2, 1)
    found = recursive_ridge_leverage_scores(rows, kernel, size, rng, ridge=ridge)
    return np.sort(
        successive_draws(rows, min(n_landmarks, len(rows)), rng, found.scores)
    )
