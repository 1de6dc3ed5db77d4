"""How far a partition can be from the best one: certified lower bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.data.input import validated, weighted_rows
from sketchmeans.data.rows import Block, Rows
from sketchmeans.diagnostics.fitted import (
    Model,
    check_given_rows,
    check_model,
    fitted_space,
)
from sketchmeans.diagnostics.spectral_bounds import (
    SecondMoment,
    bound_by_subsamples,
    compute_linear_moment,
    compute_nystrom_moment,
)
from sketchmeans.engine.blocks import local_engine
from sketchmeans.kernels import Kernel, Linear, is_given
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_integer, check_option
from sketchmeans.theory.checks import check_below
from sketchmeans.theory.problem import check_definite
from sketchmeans.theory.results import Result

#: Landmarks for a model that has none of its own.
_LANDMARKS = 1_000
#: Subsamples, and the bounds of the rows of each.
_SUBSAMPLES, _FEW_ROWS, _MOST_ROWS = 4, 1_200, 1_800


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """A lower bound on the optimal cost, and so on how far a fit is from it.

    Attributes
    ----------
    method : str
    lower_bound : float
        No k centres have a lower cost ``W`` on these rows.
    cost : float
        ``W`` of the model's centres on these rows.
    residual_trace : float or None
        ``tr(K − K̃)/n``: what the landmarks leave out, and with it the bound.
    confidence : float
        Probability with which the bound holds; 1 where no chance is involved.
    n_landmarks : int or None
        Landmarks behind the bound.
    """

    method: str
    lower_bound: float
    cost: float
    residual_trace: float | None
    confidence: float
    n_landmarks: int | None = None
    _shown_properties: ClassVar[tuple[str, ...]] = ("ratio",)

    @property
    def ratio(self) -> float:
        """The cost is at most this many times the optimal cost."""
        if self.lower_bound > 0.0:
            return self.cost / self.lower_bound
        return float("inf") if self.cost > 0.0 else 1.0


def certificate(
    model: Model,
    X: Any,
    method: str = "nystrom",
    n_landmarks: int | None = None,
    confidence: float = 0.95,
    *,
    sample_weight: Any = None,
    n_subsamples: int = _SUBSAMPLES,
    subsample_size: int | None = None,
    random_state: Any = None,
) -> Certificate:
    """Bound the optimal cost of kernel k-means on `X` from below.

    **Any partition is a projection.**  The cost of a partition is
    ``n W = tr(K) − tr(P K)``, where P projects onto the span of the clusters'
    indicator vectors: the vector of ones and at most k − 1 directions more.  With the
    centring ``H = I − 11ᵀ/n`` this is ``tr(HKH) − tr(P'HKH)`` with P' of rank k − 1, so
    by Ky Fan's theorem

        n W_opt ≥ tr(HKH) − λ_1(HKH) − ... − λ_{k−1}(HKH).

    The right-hand side is the least sum of squared distances to an affine subspace of
    dimension k − 1, and does not fall when a positive semi-definite matrix is added to
    K.  Weights enter as ``D^½KD^½``, with √w in place of 1.

    **method="nystrom"**: with the Nyström approximation K̃ in place of K, as
    ``K − K̃ ⪰ 0``.  Certain, up to rounding: kernel values are in the float type of the
    rows, the sums of their products in float64, eigen-directions of ``k(Z, Z)`` that
    drown in rounding are left out (which only lowers the bound), and what rounding may
    have added is taken off.  That is, with ``R Rᵀ = k(Z, Z)⁺``, ε the rounding of the
    rows' type and s = max k(x, x): 16εs‖R‖√n off the root of the bound for the kernel
    values, and before that 16·2⁻⁵²·s²‖R‖²n off the bound for the sums; both suppose
    that roundings do not conspire.  It rises as landmarks are added to a set.  One pass
    of n·m·(d + m).

    **method="subsample"**: for rows S drawn at random with replacement,
    ``E W_opt(S) ≤ W_opt``, because the best centres of all rows are some centres for S.
    So the mean of the spectral bounds of some subsamples, minus a margin, is a lower
    bound.  To exchange one of the N rows drawn moves the mean by at most D/N, where D
    is the squared diameter of the rows in feature space, as an optimal affine subspace
    contains the mean of the rows.  By McDiarmid's inequality the margin
    ``D √(ln(1/(1 − confidence))/(2N))`` suffices.  D is at most 2 max k(x, x) for
    kernels without negative values, else 4 max k(x, x).  One pass for the cost.

    For `SketchedKMeans` both are about plain k-means on all features, and "nystrom"
    has the exact eigenvalues of the covariance, without landmarks, in n·d·min(n, d).

    Parameters
    ----------
    model : KernelKMeans, NystromKMeans or SketchedKMeans
        Fitted.  Behind a reducer the bound is about the reduced rows.
    X : array-like or sparse matrix of shape (n, d)
        As a rule the rows of the fit.  With ``kernel="precomputed"``: the n × n kernel
        matrix of the fit.
    method : {"nystrom", "subsample"}, default="nystrom"
    n_landmarks : int, optional
        For "nystrom": landmarks of the bound.  None takes those of the model, or 1,000
        rows for `KernelKMeans`; more than the model has are rows of `X`.
    confidence : float, default=0.95
        For "subsample".
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.
    n_subsamples : int, default=4
        For "subsample".
    subsample_size : int, optional
        Rows of each subsample, at most n.  None takes n/2, but at most 1,200, or n/8
        and at most 1,800 if that is more: the bound takes less time than the fit.
    random_state : int, Generator, RandomState or None, default=None
        Draws the subsamples and additional landmarks.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import NystromKMeans
    >>> X = load_digits().data
    >>> model = NystromKMeans(10, n_landmarks=300, random_state=0).fit(X)
    >>> found = certificate(model, X)
    >>> found.lower_bound < found.cost < 2 * found.lower_bound
    True
    """
    check_option("method", method, ("nystrom", "subsample"))
    confidence = check_below("confidence", confidence)
    check_integer("n_subsamples", n_subsamples)
    if subsample_size is not None:
        check_integer("subsample_size", subsample_size, low=2)
    if n_landmarks is not None:
        check_integer("n_landmarks", n_landmarks)
    unused = {"nystrom": "subsample_size", "subsample": "n_landmarks"}[method]
    value = subsample_size if method == "nystrom" else n_landmarks
    if value is not None:
        raise ValueError(f"{unused}={value!r} should be None with method={method!r}.")
    model = check_model(model)
    rng = as_generator(random_state)
    X = validated(model, X, reset=False)
    with Workers(model.n_jobs) as workers:
        rows = model._view(weighted_rows(X, sample_weight, workers))
        kernel, total = _check_kernel(model, rows, rng), rows.total_weight
        k = len(model.cluster_sizes_)  # `n_clusters` may have been set since the fit
        if method == "subsample":
            n = len(rows)
            size = min(_MOST_ROWS, max(n // 8, min(n // 2, _FEW_ROWS), 2))
            size = min(subsample_size or size, n)
            bound = bound_by_subsamples(
                rows, kernel, [k], n_subsamples, size, confidence, rng
            )[0]
            cost = _compute_cost(model, rows)
            return Certificate(method, float(bound), cost / total, None, confidence)
        moment, cost = _compute_moment(model, rows, kernel, n_landmarks, rng)
    bound = moment.lower_bound(k) / total
    residual = moment.residual / total
    return Certificate(method, bound, cost / total, residual, 1.0, moment.n_landmarks)


def _check_kernel(model: Model, rows: Rows, rng: np.random.Generator) -> Kernel:
    if isinstance(model, SketchedKMeans):
        return Linear()
    check_given_rows(model.kernel_, rows)
    check_definite(model.kernel_, rows, rng.spawn(1)[0])
    return model.kernel_


def _compute_cost(model: Model, rows: Rows) -> float:
    engine = local_engine(rows, fitted_space(model, rows))
    return engine.total_cost(model._centers(engine.space))


def _compute_moment(
    model: Model,
    rows: Rows,
    kernel: Kernel,
    n_landmarks: int | None,
    rng: np.random.Generator,
) -> tuple[SecondMoment, float]:
    """Return the moment behind the bound, and the total cost of the centres."""
    if isinstance(model, SketchedKMeans):
        if n_landmarks is not None:
            raise ValueError(
                f"n_landmarks={n_landmarks} should be None for SketchedKMeans: its "
                "bound needs no landmarks."
            )
        return compute_linear_moment(rows), _compute_cost(model, rows)
    points = _choose_landmarks(model, rows, kernel, n_landmarks, rng)
    if isinstance(model, NystromKMeans) and len(model.dual_coef_) <= points.shape[0]:
        space = fitted_space(model, rows)
        # The model's landmarks come first: one pass over kernel values serves both.
        if not space.is_euclidean:
            return compute_nystrom_moment(rows, kernel, points, model._centers(space))
    moment, _ = compute_nystrom_moment(rows, kernel, points)
    return moment, _compute_cost(model, rows)


def _choose_landmarks(
    model: KernelKMeans | NystromKMeans,
    rows: Rows,
    kernel: Kernel,
    n_landmarks: int | None,
    rng: np.random.Generator,
) -> Block:
    """Return the model's landmarks, and rows in random order after them."""
    own = model.landmarks_ if isinstance(model, NystromKMeans) else None
    n_own = 0 if own is None else int(own.shape[0])
    wanted = n_landmarks or n_own or min(_LANDMARKS, len(rows))
    if own is not None and wanted <= n_own:
        return own[:wanted]
    if wanted > n_own + len(rows):
        raise ValueError(
            f"n_landmarks={wanted} should be <= {n_own + len(rows)}: those of the "
            "model, and all rows."
        )
    order = rng.permutation(len(rows))
    if is_given(kernel) and own is not None:  # points are numbers: no row twice
        order = order[~np.isin(order, own.ravel())]
    drawn = kernel.points(rows, order[: wanted - n_own])
    if own is None:
        return drawn
    if sparse.issparse(own) or sparse.issparse(drawn):
        return sparse.vstack([own, drawn], format="csr")
    return np.concatenate([own, drawn])
