"""The Nyström map: features whose inner products approximate a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import as_weighted_rows, check_weights, validate_input
from sketchmeans.data.lost_digits import warn_of_lost_digits
from sketchmeans.data.memory import plan_pass, points_need
from sketchmeans.data.rows import Block, Rows, as_rows, block_height
from sketchmeans.kernels import (
    Kernel,
    compute_gram,
    is_given,
    kernel_of,
    resolve_kernel,
    warn_if_indefinite,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks import choose_landmarks
from sketchmeans.numerics.linalg import Array, pseudo_inverse
from sketchmeans.numerics.memory import format_bytes, memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_integer,
    check_integer_or,
    check_option,
)
from sketchmeans.nystrom.features import FeatureRows
from sketchmeans.nystrom.residual import EXACT_ROWS, FeatureSource, Norms, Residual

#: ``n_landmarks="auto"`` takes as many as this number of clusters needs, which is the
#: default of the estimators.
_N_CLUSTERS = 8

NORMS = ("trace", "frobenius", "spectral")


@dataclass(eq=False, repr=False)
class Nystrom(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of rank r whose inner products approximate a kernel.

    With m landmarks Z, ``b_x = k(Z, x)`` and ``k(Z, Z) = U Λ Uᵀ``, the features of x
    are ``F_x = Rᵀ b_x`` where ``R Rᵀ = U_r Λ_r⁻¹ U_rᵀ``: ``Λ_r^-½ U_rᵀ b_x`` up to a
    rotation.  ``F_x·F_y`` is the inner product of φ(x) and φ(y) after projection onto
    (r directions in) the span of the landmarks, so ``K − F Fᵀ`` is positive
    semi-definite.  Eigenvalues below the rounding of the data's float type are
    left out, never lifted.  Fitting costs what the selector does, n·d for a look at the
    rows and m³; mapping n rows costs n·m·(d + r).  Memory m², and n·r for the features.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        A name ("rbf", "laplacian", "polynomial", "linear", "cosine", "sigmoid",
        "arc-cosine", "chi2" or another of scikit-learn's pairwise kernels), a callable
        of two rows, a `Kernel` object, or "precomputed".
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the rbf, laplacian, polynomial, sigmoid and chi2 kernels;
        "mean" is one over twice the mean squared distance for rbf.
    degree, coef0 : float, default=3 and 1
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        More keyword arguments of the kernel.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks m; "auto" grows it until more would hardly lower the cost
        of k-means, by the rule of `NystromKMeans` for its default of 8 clusters.
    landmarks : str, LandmarkSelector or array, default="uniform"
        How landmarks are chosen: "uniform", "diagonal", "column-norm", "leverage",
        "ridge-leverage", "bless", "k-dpp", "kmeans", "k-means++", "greedy", "cholesky",
        "rpcholesky" or a selector object (see `sketchmeans.landmarks`); or points
        (m, d), or row numbers (m,).
    rank : int or None, default=None
        Maximum number of features r; None is the numerical rank of ``k(Z, Z)``, at most
        m.
    rank_method : {"landmarks", "approximation"}, default="landmarks"
        What a `rank` below m keeps.  "landmarks": the top r eigenvectors of
        ``k(Z, Z)``.  "approximation": those of ``F Fᵀ`` itself on the (weighted)
        training rows, which is its best approximation of rank r in every norm
        (Eckart-Young), the largest first; ``FᵀF`` is summed over the rows in one more
        pass, n·m·(d + 2m).
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input, and in
        which `approximation_error` may store a kernel matrix; None is half of what is
        free.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
        It never changes the result.
    random_state : int, Generator, RandomState or None, default=None
        The same seed chooses the same landmarks as in `NystromKMeans`.  Queries such as
        `approximation_error` do not advance a Generator.

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (m, d)
        The landmarks; for a precomputed kernel their row numbers, of shape (m, 1).
    component_indices_ : ndarray of shape (m,) or None
        Their row numbers, if they are rows.
    normalization_ : ndarray of shape (r, m)
        ``Rᵀ``: the features are ``k(X, components_) @ normalization_.T``, as in
        `sklearn.kernel_approximation.Nystroem`.
    rank_ : int
        Number of features r.
    kernel_, gamma_
        The kernel with its bandwidth as a number.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NystromKMeans : Clusters in the same span, without computing features.

    References
    ----------
    Williams & Seeger, "Using the Nyström method to speed up kernel machines", NIPS
    2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import Nystrom
    >>> X = load_digits().data
    >>> nystrom = Nystrom(n_landmarks=200, rank=50, random_state=0).fit(X)
    >>> nystrom.transform(X).shape
    (1797, 50)
    """

    _takes_dask = True

    kernel: str | Kernel | Callable[..., float] = "rbf"
    _: KW_ONLY
    gamma: Gamma = "mean"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    n_landmarks: int | str = "auto"
    landmarks: Any = "uniform"
    rank: int | None = None
    rank_method: str = "landmarks"
    max_memory: float | str | None = None
    n_jobs: int | None = None
    random_state: Any = None

    @all_or_nothing
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Choose the landmarks and factor their kernel matrix.

        Parameters
        ----------
        X : array-like, sparse matrix, path, `Source` or Dask collection, shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        # Those of the estimators: kernel, landmarks, ..., number of landmarks.
        kernel_rng, landmark_rng, *_, size_rng = as_generator(self.random_state).spawn(
            5
        )
        X, budget = validate_input(self, X, reset=True), memory_budget(self.max_memory)
        with Workers(self.n_jobs) as workers:
            rows = as_weighted_rows(X, sample_weight, workers)
            plan_pass(rows, budget)
            warn_of_lost_digits(rows, getattr(self, "feature_names_in_", None))
            rows.persist(budget)
            kernel = resolve_kernel(kernel_of(self), rows, kernel_rng)
            warn_if_indefinite(kernel, "features approximate its positive part only")
            landmarks, _ = choose_landmarks(
                self.landmarks,
                self.n_landmarks,
                rows,
                kernel,
                _N_CLUSTERS,
                (landmark_rng, size_rng),
                budget,
            )
            _check_memory(rows, len(landmarks), budget)
            root = self._root_of(rows, kernel, landmarks.points)
        self.kernel_, self.gamma_ = kernel, getattr(kernel, "gamma", None)
        self.components_, self.component_indices_ = landmarks.points, landmarks.indices
        self._root = np.ascontiguousarray(root, dtype=rows.dtype)
        self.rank_ = int(root.shape[1])
        return self

    def _root_of(self, rows: Rows, kernel: Kernel, points: Block) -> Array:
        """Return R (m × r): the features are ``k(X, Z) R``."""
        gram = compute_gram(kernel, points, rows.workers, rows)
        by_landmarks = self.rank_method == "landmarks"
        rank = self.rank if by_landmarks else None
        root = pseudo_inverse(gram, dtype=rows.dtype, rank=rank).root()
        if by_landmarks or self.rank is None or self.rank >= root.shape[1]:
            return root
        features = FeatureRows(rows, kernel, points, root, rows.dtype)
        return root @ features.leading_directions(self.rank)

    @property
    def normalization_(self) -> Array:
        """The matrix ``Rᵀ`` that maps kernel values to features."""
        return self._root.T

    def transform(self, X: Any) -> Array:
        """Return the features of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: ``k(new rows, training rows)``.

        Returns
        -------
        features : ndarray of shape (n, r)
            float32 for float32 rows and small integers, else float64; a lazy Dask
            array for a Dask collection.
        """
        check_is_fitted(self)
        X = validate_input(self, X, reset=False)
        with Workers(self.n_jobs) as workers:
            rows = as_rows(X, workers)
            return self._features(rows).compute(rows.dtype)

    def approximation_error(
        self,
        X: Any,
        norm: str = "trace",
        *,
        relative: bool = True,
        sample_weight: Any = None,
    ) -> float:
        """Return ``‖K − F Fᵀ‖``, over the rows of `X`, any or those of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix of the fit.
        norm : {"trace", "frobenius", "spectral"}, default="trace"
            The Schatten norm 1, 2 or ∞.  "trace" is exact, in one pass of n·m·(d + r).
            "frobenius" is exact, in n²·(d + r), for up to 30,000 rows; above, rows are
            drawn at random, 1,024 at a time and at most 30,720, each n·(d + r), until
            the standard error is 1% of the norm.  "spectral" is by Lanczos, to about
            0.1%, in some twenty products of K with a vector, each n²·d, or n² where K
            fits in `max_memory`.
        relative : bool, default=True
            Divide by the norm of K.
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows: the norm is that of
            ``D^½ (K − F Fᵀ) D^½``.
        """
        norms = self._norms(X, norm, sample_weight)
        return norms.relative if relative else norms.error

    def lift(
        self,
        X: Any,
        baseline: Any = "uniform",
        *,
        norm: str = "frobenius",
        n_repeats: int = 10,
        sample_weight: Any = None,
    ) -> float:
        """Return how many times smaller our error is than that of a baseline (OG17 §5).

        The baseline has the same kernel and bandwidth, rank and number of landmarks,
        but chooses these from `X` in its own way, `n_repeats` times.  The lift is the
        mean of its errors divided by our error on `X`; above 1 our landmarks are
        better.  Where both are zero it is 1, where only ours is, infinity.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            As a rule the rows of the fit.
        baseline : str, LandmarkSelector or array, default="uniform"
            How the other landmarks are chosen.
        norm : {"trace", "frobenius", "spectral"}, default="frobenius"
        n_repeats : int, default=10
        sample_weight : array-like of shape (n,), optional
        """
        check_integer("n_repeats", n_repeats)
        ours = self._norms(X, norm, sample_weight).error
        params = {"kernel": self.kernel_, "landmarks": baseline}
        params["n_landmarks"] = self.components_.shape[0]
        for name in ("rank", "rank_method", "max_memory", "n_jobs"):
            params[name] = getattr(self, name)
        rngs = as_generator(self.random_state, copy=True).spawn(n_repeats)
        others = [Nystrom(**params, random_state=rng) for rng in rngs]
        for other in others:
            other.fit(X, sample_weight=sample_weight)
        errors = [other._norms(X, norm, sample_weight).error for other in others]
        theirs = float(np.mean(errors))
        if ours > 0.0:
            return theirs / ours
        return float("inf") if theirs > 0.0 else 1.0

    def _norms(self, X: Any, norm: str, sample_weight: Any) -> Norms:
        check_is_fitted(self)
        check_option("norm", norm, NORMS)
        if find_adapter(X) is not None:
            raise TypeError(
                "Norms of the error do not take a Dask collection: every row is "
                "compared with others. Give a sample, such as X[::100].compute()."
            )
        X = validate_input(self, X, reset=False)
        n = X.shape[0]
        if is_given(self.kernel_) and n != self.n_features_in_:
            raise ValueError(
                f"X.shape={X.shape} should be ({self.n_features_in_}, "
                f"{self.n_features_in_}) with kernel='precomputed': k(x, y) is known "
                "for the rows of the fit only."
            )
        with Workers(self.n_jobs) as workers:
            rows = as_rows(X, workers, check_weights(sample_weight, n))
            streamed = self._features(rows)
            features: FeatureSource = streamed
            if norm == "spectral" or (norm == "frobenius" and n <= EXACT_ROWS):
                features = as_rows(streamed.compute(streamed.dtype), workers)
            residual = Residual(rows, self.kernel_, features, streamed.dtype)
            if norm == "trace":
                return residual.trace()
            # The first two children are the fit's; a user's Generator stays as it is.
            _, _, rng = as_generator(self.random_state, copy=True).spawn(3)
            if norm == "frobenius":
                return residual.frobenius(rng)
            return residual.spectral(rng, memory_budget(self.max_memory))

    def _features(self, rows: Rows) -> FeatureRows:
        """Return the features of rows, in no less than the float type of the fit.

        The root amplifies the rounding of kernel values up to what the type of the fit
        allows: a coarser one would cut off the features.
        """
        dtype = np.promote_types(self._root.dtype, rows.dtype)
        return FeatureRows(rows, self.kernel_, self.components_, self._root, dtype)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_given(self.kernel)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_params(self) -> None:
        check_option("rank_method", self.rank_method, ("landmarks", "approximation"))
        check_integer_or("auto", "n_landmarks", self.n_landmarks)
        check_integer_or(None, "rank", self.rank)


def _check_memory(rows: Rows, m: int, budget: int) -> None:
    """Raise where the algebra and the blocks of rows do not fit."""
    d, size = rows.n_features, rows.dtype.itemsize
    algebra = 4 * m * m * 8  # k(Z, Z), its copy in the solver, eigenvectors, root
    row = 2 * (m * size + (rows.taken_bytes if rows.is_sparse else d * size))
    need = algebra + points_need(rows, m)
    need += rows.workers.n_jobs * block_height(d, m) * row
    if need > budget:
        raise MemoryError(
            f"{m:,} landmarks with {d:,} features need {format_bytes(need)}; "
            f"max_memory allows {format_bytes(budget)}. Lower n_landmarks or "
            "n_jobs, or raise max_memory."
        )
