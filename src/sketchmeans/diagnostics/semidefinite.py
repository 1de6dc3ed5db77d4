"""Lower bounds on the optimal cost of a few rows, by the Peng–Wei programme.

The cost of a partition of s rows with weights w is ``tr(HKH) − tr(PK)``, where
``K = D^½ k(X, X) D^½``, ``H = I − qqᵀ`` with the unit vector ``q ∝ √w``, and
``P + qqᵀ`` projects onto the span of the clusters' indicators times √w.  ``Pq = 0``,
``0 ⪯ P ⪯ H``, ``tr P = k − 1``, and ``P + qqᵀ`` has no negative entry.  So for every
matrix ``N ≥ 0`` (entrywise)

    tr(PK) ≤ tr(P(K + N)) + qᵀNq ≤ λ_1 + ... + λ_{k−1} + qᵀNq,

λ the largest eigenvalues of ``H(K + N)H`` (Ky Fan).  ``N = 0`` is the spectral bound,
and the best N makes up the dual of the programme of Peng and Wei (2007).  What holds
for N holds for every matrix whose product with all ``P + qqᵀ`` of partitions is not
negative, such as those of triangle inequalities (`triangles`), which tighten it.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import frexp, inf, ldexp, sqrt

import numpy as np
from scipy.linalg import qr

from sketchmeans.diagnostics.triangles import TriangleCuts
from sketchmeans.numerics.linalg import (
    Array,
    check_no_overflow,
    eigen_decomposition,
    largest_eigenvalues,
)

#: Roundings of a kernel value, of a centred one, and of an eigenvalue (times s, in the
#: Frobenius norm of the matrix) that are taken off every bound.
_VALUE_ROUNDINGS, _CENTRING_ROUNDINGS, _EIGEN_ROUNDINGS = 64.0, 8.0, 8.0
#: Steps between two evaluations of the bound, and the most steps.
_CHECK_STEPS, _MAX_STEPS = 25, 300
#: Step size in units of ``‖HKH‖_F/√k``, and over-relaxation.
_PENALTY, _RELAXATION = 1.5, 1.6
#: Steps with exact eigenvectors before they are followed, and what is added to the
#: eigenvalues there, so that negative ones stay behind.
_EXACT_STEPS, _SHIFT = 3, 0.2
#: Stop where the last steps raised the bound by less than this share of it.
_LEAST_GAIN = 2e-4
#: Steps between two searches for violated triangle inequalities, and the most steps
#: with them.
_CUT_STEPS, _MAX_CUT_STEPS = 50, 2_000
#: Searches in vain that end the work, and how much smaller steps of prices become then.
_PATIENCE, _SLOWER = 5, 0.5


@dataclass(frozen=True)
class SubsetBound:
    """Lower bounds on ``Σ_i w_i ‖φ(x_i) − c‖²`` of any k clusters of some rows."""

    #: The best bound found, and the one of ``N = 0``.
    value: float
    spectral: float
    #: Alternating steps made.
    n_steps: int


class SubsetProblem:
    """Kernel k-means of a few rows, ready to be bounded.

    `gram` holds kernel values; ``−½‖φ(x) − φ(z)‖²`` serves as well, because only
    ``HKH`` matters.  Rows of weight 0 are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 10.0, 11.0])  # {0, 1} and {10, 11} cost 1/2 each
    >>> problem = SubsetProblem(np.outer(x, x), 2)
    >>> round(problem.improve().value, 3)
    1.0
    """

    def __init__(
        self, gram: Array, n_clusters: int, weights: Array | None = None
    ) -> None:
        K = np.array(gram, dtype=np.float64)
        check_no_overflow(K)
        w = np.ones(len(K)) if weights is None else np.asarray(weights, np.float64)
        if not w.all():
            keep = w > 0.0
            K, w = K[np.ix_(keep, keep)], w[keep]
        # Powers of two, so that squares neither overflow nor underflow.
        largest = float(np.abs(K).max(initial=0.0))
        heaviest = float(w.max(initial=0.0))
        self._scale, self._weight = _power_below(largest), _power_below(heaviest)
        K, w = K / self._scale, w / self._weight
        self.n_rows, self.n_clusters = len(K), int(n_clusters)
        root = np.sqrt(w)
        total = float(w.sum())
        self._q = root / sqrt(total) if total else root
        self._K = _centre(root[:, None] * K * root, self._q)
        per_value = _VALUE_ROUNDINGS + _CENTRING_ROUNDINGS * self.n_clusters
        size = total * float(np.abs(K).max(initial=0.0))
        self._noise = float(np.finfo(np.float64).eps) * per_value * size

    @cached_property
    def spectral(self) -> float:
        """The bound without multipliers: the k − 1 largest eigenvalues are left out."""
        return self.evaluate(None)

    def evaluate(
        self, multipliers: Array | None, cuts: TriangleCuts | None = None
    ) -> float:
        """Return the bound of a matrix ``N``, whose negative entries count as zero.

        It holds for every N, and for all prices of triangle inequalities.  What
        rounding may have added is taken off: 64 roundings of the largest kernel value
        per row and 8 per row and cluster for centring, and 8s roundings of
        ``‖H(K + N)H‖_F`` for each eigenvalue and of the sum of all prices.  N and
        prices are in the problem's own units.
        """
        k, s = self.n_clusters, self.n_rows
        if k >= s:
            return 0.0
        A, offset, size = self._K, 0.0, 0.0
        if multipliers is not None:
            N = np.maximum(np.asarray(multipliers, np.float64), 0.0)
            N = 0.5 * (N + N.T)
            size = float(self._q @ N @ self._q)
            if cuts is not None:
                N += cuts.matrix()
                size += 4.0 * float(cuts.prices.sum())
            offset = float(self._q @ N @ self._q)
            A = _centre(self._K + N, self._q)
        top = float(largest_eigenvalues(A, k - 1).sum()) if k > 1 else 0.0
        roundings = _EIGEN_ROUNDINGS * s * (k * float(np.linalg.norm(A)) + size)
        noise = self._noise + float(np.finfo(np.float64).eps) * roundings
        least = float(np.trace(self._K)) - offset - top - noise
        return max(least, 0.0) * self._scale * self._weight

    def improve(
        self,
        target: float = inf,
        least_gain: float = _LEAST_GAIN,
        max_steps: int = _MAX_STEPS,
        *,
        tighten_until: float | None = None,
    ) -> SubsetBound:
        """Return the best bound of some alternating steps.

        Each step costs the leading eigenvectors of an s × s matrix in float32, every
        25th a bound in float64.  A solver that has not converged costs tightness and
        never truth.  It stops where the bound is as large as `target`, the cost of a
        clustering that is known, or 25 steps raise it by less than `least_gain`.  Up to
        the time `tighten_until` it then goes on with triangle inequalities.
        """
        best, step = self.spectral, 0
        size = float(np.linalg.norm(self._K))
        if not 1 < self.n_clusters < self.n_rows or size <= self._noise:
            return SubsetBound(best, best, 0)
        solver = _AlternatingDirections(self._K, self._q, self.n_clusters, size)
        while step < max_steps and best < target * (1.0 - least_gain):
            step += solver.advance(_CHECK_STEPS)
            found = self.evaluate(solver.multipliers)
            gain, best = found - best, max(best, found)
            if gain < least_gain * best:
                break
        if tighten_until is not None:
            n_steps, found = self._tighten(solver, best, target, tighten_until)
            step, best = step + n_steps, max(best, found)
        return SubsetBound(best, self.spectral, step)

    def _tighten(
        self, solver: _AlternatingDirections, best: float, target: float, until: float
    ) -> tuple[int, float]:
        """Go on with triangle inequalities; return the steps and the best bound.

        Prices that swing are moved in smaller steps; some searches in vain end it.
        """
        step, in_vain = 0, 0
        while step < _MAX_CUT_STEPS and time.perf_counter() < until:
            if in_vain == _PATIENCE:
                break
            if best >= target * (1.0 - _LEAST_GAIN) or not solver.separate():
                break
            before = best
            for _ in range(_CUT_STEPS // _CHECK_STEPS):
                step += solver.advance(_CHECK_STEPS)
                best = max(best, self.evaluate(solver.multipliers, solver.cuts))
                if time.perf_counter() >= until:
                    break
            if best - before < _LEAST_GAIN * best:
                in_vain += 1
                solver.slow_down()
        return step, best


class _AlternatingDirections:
    """Steps that bring two matrices together: the programme split in two.

    One maximises ``tr(PK)`` over ``0 ⪯ P ⪯ H, tr P = k − 1``, by eigenvectors; the
    other keeps ``P + qqᵀ ≥ 0``.  The price of their difference is −N.
    """

    def __init__(self, K: Array, q: Array, k: int, size: float) -> None:
        self._rho = _PENALTY * size / sqrt(k)
        self._objective = (K / self._rho).astype(np.float32)
        self._cuts = TriangleCuts(q)
        self._latest = np.zeros_like(self._objective)
        self._q = q.astype(np.float32)
        self._floor = -np.outer(self._q, self._q)
        self._inside = np.zeros_like(self._objective)
        self._dual = np.zeros_like(self._objective)
        self._k, self._n_vectors, self._n_exact = k, 4 * k, 0
        self._vectors = np.empty((len(K), 0), np.float32)
        self._rng = np.random.default_rng(0)

    @property
    def multipliers(self) -> Array:
        """The matrix N of the last step."""
        return self._dual.astype(np.float64) * -self._rho

    @property
    def cuts(self) -> TriangleCuts:
        """The triangle inequalities and their prices, in the units of the problem."""
        found = copy(self._cuts)
        found.prices = found.prices * self._rho
        return found

    def separate(self) -> int:
        """Look for triangle inequalities that fail, and count them."""
        return self._cuts.separate(self._latest)

    def slow_down(self) -> None:
        """Move prices of triangle inequalities in smaller steps."""
        self._cuts.step_size *= _SLOWER

    def advance(self, n_steps: int) -> int:
        """Make some steps, and return their number."""
        for _ in range(n_steps):
            self._step()
        return n_steps

    def _step(self) -> None:
        M = self._inside - self._dual
        M += self._objective
        if len(self._cuts):
            M += self._cuts.matrix()
        P = self._project(_centre(M, self._q))
        np.subtract(P, self._floor, out=self._latest)
        if len(self._cuts):
            self._cuts.reprice(self._latest)
        P *= np.float32(_RELAXATION)
        P += np.float32(1.0 - _RELAXATION) * self._inside
        P += self._dual
        np.maximum(P, self._floor, out=self._inside)
        np.subtract(P, self._inside, out=self._dual)

    def _project(self, M: Array) -> Array:
        """Return the nearest matrix to M of eigenvalues in 0..1 and trace k − 1.

        Only the eigenvectors that are left are computed: they are few.  After the first
        steps they hardly change, so that one step of subspace iteration follows them.
        """
        if self._n_exact < _EXACT_STEPS or 2 * self._n_vectors >= len(M):
            values, vectors = self._decompose(M)
            self._n_exact += 1
        else:
            values, vectors = self._follow(M)
        shares = np.clip(values - _find_cut(values, self._k - 1), 0.0, 1.0)
        positive = shares > 0.0
        self._n_vectors = int(1.15 * positive.sum()) + 4
        self._vectors = vectors[:, -self._n_vectors :]
        leading = vectors[:, positive]
        return np.asarray((leading * shares[positive].astype(np.float32)) @ leading.T)

    def _decompose(self, M: Array) -> tuple[Array, Array]:
        """Return all eigenvectors that count, and some more."""
        s = len(M)
        while True:
            wanted = min(self._n_vectors, s)
            some = wanted if 2 * wanted < s else None
            values, vectors = eigen_decomposition(M, largest=some)
            if some is None or _find_cut(values, self._k - 1) > values[0]:
                return values, vectors
            self._n_vectors = 2 * wanted

    def _follow(self, M: Array) -> tuple[Array, Array]:
        """Return approximate eigenvectors, from those of the last step."""
        Q = self._vectors
        missing = self._n_vectors - Q.shape[1]
        if missing > 0:
            more = self._rng.standard_normal((len(M), missing), dtype=np.float32)
            Q = np.concatenate([Q, more], axis=1)
        Q = qr(M @ Q + np.float32(_SHIFT) * Q, mode="economic", check_finite=False)[0]
        values, vectors = eigen_decomposition(Q.T @ (M @ Q))
        return values, Q @ vectors


def _find_cut(values: Array, total: int) -> float:
    """Return t with ``Σ clip(values − t, 0, 1) = total``, for fewer than all values.

    The sum falls from one kink to the next in a straight line.
    """
    wide = values.astype(np.float64)
    kinks = np.sort(np.concatenate([wide, wide - 1.0]))
    low, high = 0, len(kinks) - 1

    def add(t: float) -> float:
        return float(np.clip(wide - t, 0.0, 1.0).sum())

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if add(kinks[middle]) >= total else (low, middle)
    above, below = add(kinks[low]), add(kinks[high])
    share = (above - total) / (above - below) if above > below else 0.0
    return float(kinks[low] + share * (kinks[high] - kinks[low]))


def _centre(A: Array, q: Array) -> Array:
    """Return ``HAH`` of a symmetric matrix with ``H = I − qqᵀ``, in place."""
    p = A @ q
    p -= (0.5 * (q @ p)) * q
    A -= np.outer(p, q)
    A -= np.outer(q, p)
    return A


def _power_below(value: float) -> float:
    return ldexp(1.0, frexp(value)[1] - 1) if value > 0.0 else 1.0
