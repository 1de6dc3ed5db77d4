"""Landmarks from a determinantal point process of fixed size: k-DPP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dtrtri
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import draw
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import (
    Landmarks,
    LandmarkSelector,
    kernel_between,
    landmarks_at,
    value_type,
)
from sketchmeans.landmarks.kmeanspp import KernelKMeansPlusPlus
from sketchmeans.landmarks.sampling import Uniform
from sketchmeans.numerics.linalg import Array, check_no_overflow, clip_zero_distances
from sketchmeans.numerics.parameters import check_integer, check_option

#: Proposals whose kernel values are computed together.
_BATCH = 256

#: Swaps after which the inverse is computed afresh.
_REFRESH_SWAPS = 300

#: Swaps after which the drift of the inverse is measured, and how much is too much.
_CHECK_SWAPS, _DRIFT = 10, 1e-6


@dataclass(eq=False, repr=False)
class KDPP(BaseEstimator):
    """Rows whose kernel matrix has a large determinant: a Markov chain on swaps.

    The chain tends to the law ``P(S) ∝ Π_{i∈S} w_i · det k(S, S)`` on sets of m rows
    (Li, Jegelka & Sra, ICML 2016; OG17 §4.2).  A weight is a number of copies: two
    copies of a row have determinant 0, so a row is in S at most once, and each of its w
    copies can be the one.

    A step proposes a row j, drawn by weight, unless a row of its value is in S already.
    It takes the place of member i with a probability that depends on the determinant
    ratio, for ``M = k(S, S)⁻¹``, ``b = k(S, x_j)`` and ``v = M b``,

        det k(S−i+j, S−i+j) / det k(S, S) = M_ii (k_jj − bᵀv) + v_i² .

    Both `exchange` rules are in balance with the law above, so weighted rows and
    repeated rows give chains of the same law, step by step.  A step costs m·d + 4m²,
    and a swap 6m² more, whatever n is; the start costs what its selector does.

    Parameters
    ----------
    start : {"k-means++", "uniform"}, default="k-means++"
        Where the chain starts.  From a uniform start it may take a pass over the data
        to reach good landmarks (OG17 §4.2).
    n_steps : int, default=1000
        Proposals.
    exchange : {"determinant", "uniform"}, default="determinant"
        Who makes place for row j.  "uniform" asks one member i at random and swaps with
        probability min(1, ratio), as in Li et al. and OG17.  "determinant" draws who
        leaves S + j in proportion to the determinant of those who stay: the same work
        per step, and many more swaps.

    Notes
    -----
    About 1.5e-8 times the mean of ``k(x, x)`` is added to the diagonal of ``k(S, S)``,
    so that a chain finds its way out of rows which are dependent up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import KDPP, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, KDPP(), random_state=0).points.shape
    (12, 2)
    """

    start: str = "k-means++"
    n_steps: int = 1000
    exchange: str = "determinant"

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        check_option("start", self.start, tuple(_STARTS))
        check_option("exchange", self.exchange, tuple(_EXCHANGES))
        check_integer("n_steps", self.n_steps, low=0)
        start_rng, proposal_rng, chain_rng = rng.spawn(3)
        start = _STARTS[self.start]().select(rows, kernel, n_landmarks, start_rng)
        assert start.indices is not None
        chain = SwapChain(rows, kernel, start.indices)
        proposals = (
            proposal_rng.integers(len(rows), size=self.n_steps)
            if rows.weights is None
            else draw(rows.weights, self.n_steps, proposal_rng)
        )
        for first in range(0, self.n_steps, _BATCH):
            batch = proposals[first : first + _BATCH]
            chain.walk(batch, _EXCHANGES[self.exchange], chain_rng)
        return landmarks_at(rows, kernel, chain.members, len(start))


Exchange = Callable[[Array, np.random.Generator], int | None]


def _determinant_exchange(ratios: Array, rng: np.random.Generator) -> int | None:
    """Return who leaves, in proportion to the determinant of those who stay."""
    edges = np.cumsum(ratios)
    point = rng.random() * (1.0 + edges[-1]) - 1.0  # the newcomer leaves: ratio 1
    if point < 0.0:
        return None
    return min(int(np.searchsorted(edges, point, side="right")), len(ratios) - 1)


def _uniform_exchange(ratios: Array, rng: np.random.Generator) -> int | None:
    """Return a member drawn uniformly, if the Metropolis rule lets it go."""
    slot = int(rng.integers(len(ratios)))
    return slot if rng.random() < ratios[slot] else None


_EXCHANGES: dict[str, Exchange] = {
    "determinant": _determinant_exchange,
    "uniform": _uniform_exchange,
}

_STARTS: dict[str, Callable[[], LandmarkSelector]] = {
    "k-means++": KernelKMeansPlusPlus,
    "kmeans++": KernelKMeansPlusPlus,
    "uniform": Uniform,
}


class SwapChain:
    """A set of rows of distinct values that changes one member at a time."""

    def __init__(self, rows: Rows, kernel: Kernel, members: Array) -> None:
        self.rows = rows
        self.kernel = kernel
        self.members = members.copy()
        gram = kernel_between(rows, kernel, members, members)
        check_no_overflow(gram)
        self._dtype = value_type(rows, kernel)
        # Half of the digits: the inverse keeps the other half through the updates.
        ridge = np.sqrt(np.finfo(self._dtype).eps) * np.abs(gram.diagonal()).mean()
        self.inverse = InverseRoot(0.5 * (gram + gram.T), float(ridge) or 1.0)

    def walk(
        self, proposals: Array, exchange: Exchange, rng: np.random.Generator
    ) -> None:
        """Take one step for each proposed row."""
        everyone = np.concatenate([proposals, self.members])
        values = kernel_between(self.rows, self.kernel, proposals, everyone)
        among, cross = np.split(values, [len(proposals)], axis=1)
        own = among.diagonal()
        for j, row in enumerate(proposals):
            if self._has(cross[j], own[j]):
                continue
            newcomer = self.inverse.meet(cross[j], own[j])
            slot = exchange(newcomer.ratios, rng)
            if slot is not None:
                self.inverse.swap(slot, newcomer)
                self.members[slot] = row
                cross[:, slot] = among[:, j]

    def _has(self, values: Array, own: float) -> bool:
        """Say whether a row is a member, as itself or as a row of the same value."""
        scale = own + self.inverse.gram.diagonal()
        return not clip_zero_distances(scale - 2.0 * values, scale, self._dtype).all()


@dataclass(frozen=True)
class Newcomer:
    """A row that may take the place of a member.

    `values` are ``b``, its kernel values with the members, `own` the one with itself,
    `image` is ``v = M b``, and `ratios` the determinant ratio of each swap.
    """

    values: Array
    own: float
    image: Array
    ratios: Array


class InverseRoot:
    """``R`` with ``R Rᵀ = (G + ridge·I)⁻¹ = M``, while G changes row by row.

    A distance ``own − ‖Rᵀb‖²`` to the span of nearly dependent members loses half as
    many digits as the condition number of G takes; with M itself it would lose all of
    them.  G is overwritten by the swaps; the ridge is raised where the sum is not
    positive definite.
    """

    def __init__(self, gram: Array, ridge: float) -> None:
        self.gram = gram
        self.ridge = ridge
        self.root: Array
        self._diagonal: Array  # of M
        self._swaps: int  # since the root was computed
        # Fixed signs: the same swaps always take the same route.
        self._signs = np.random.default_rng(0).choice([-1.0, 1.0], len(gram))
        self._refresh()

    def meet(self, values: Array, own: float) -> Newcomer:
        """Return what a swap with each member would do to the determinant."""
        coordinates = values @ self.root
        distance = max(own + self.ridge - float(coordinates @ coordinates), 0.0)
        image = self.root @ coordinates
        ratios = self._diagonal * distance + image * image
        return Newcomer(values, own, image, ratios)

    def swap(self, slot: int, newcomer: Newcomer) -> None:
        """Put the newcomer in the place of a member.

        With ``r`` row i of R and ``g = r/‖r‖``, ``R − R g gᵀ`` is a root of the inverse
        without member i.  With ``u = v − R g v_i/‖r‖``, the newcomer's coefficients
        in the others, and ``s = ratio/M_ii``, its squared distance to them, the
        column ``(u − e_i)/√s`` in the direction g makes it one with the newcomer.
        """
        self.gram[slot] = newcomer.values
        self.gram[:, slot] = newcomer.values
        self.gram[slot, slot] = newcomer.own
        length = np.sqrt(self._diagonal[slot])
        direction = self.root[slot] / length
        old = self.root @ direction
        new = newcomer.image - old * (newcomer.image[slot] / length)
        new[slot] = -1.0
        new *= length / np.sqrt(newcomer.ratios[slot])
        # BLAS counts columns first: it sees the transpose.
        dger(1.0, direction, new - old, a=self.root.T, overwrite_a=True)
        self._swaps += 1
        if self._needs_refresh():
            self._refresh()
        else:
            self._diagonal = np.einsum("ij,ij->i", self.root, self.root)

    def drift(self) -> float:
        """Return how far ``Rᵀ (G + ridge·I) R`` is seen to be from the identity."""
        image = self.root @ self._signs
        back = (self.gram @ image + self.ridge * image) @ self.root
        return float(np.abs(back - self._signs).max())

    def _needs_refresh(self) -> bool:
        if self._swaps % _CHECK_SWAPS:
            return False
        return self._swaps >= _REFRESH_SWAPS or not self.drift() <= _DRIFT

    def _refresh(self) -> None:
        """Compute the root from the Gram matrix."""
        info = 1
        while info:
            shifted = self.gram + self.ridge * np.eye(len(self.gram))
            upper, info = dpotrf(shifted)
            if info:
                self.ridge *= 10.0
        root, _ = dtrtri(upper)
        self.root = np.ascontiguousarray(root)
        self._diagonal = np.einsum("ij,ij->i", self.root, self.root)
        self._swaps = 0
