"""The Nyström map: features whose inner products approximate a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.input import check_weights, validated, weighted_rows
from sketchmeans.data.rows import Block, Rows, as_rows, spans
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.kernels import Kernel, Precomputed, as_kernel
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks import Landmarks, check_given_matrix, chosen_landmarks
from sketchmeans.numerics.linalg import Array, eigen_decomposition
from sketchmeans.numerics.memory import format_bytes, memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_integer,
    check_option,
    is_auto,
    warn_user,
)
from sketchmeans.nystrom.residual import EXACT_ROWS, Features, Norms, Residual

#: ``n_landmarks="auto"`` takes this many, or all rows if there are fewer.
_AUTO_LANDMARKS = 100

NORMS = ("trace", "frobenius", "spectral")


class Nystrom(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of rank r whose inner products approximate a kernel.

    With m landmarks Z, ``b_x = k(Z, x)`` and ``k(Z, Z) = U Λ Uᵀ``, the features of x
    are ``F_x = Rᵀ b_x`` where ``R Rᵀ = U_r Λ_r⁻¹ U_rᵀ``: ``Λ_r^-½ U_rᵀ b_x`` up to a
    rotation.  ``F_x·F_y`` is the inner product of φ(x) and φ(y) after projection onto
    (r directions in) the span of the landmarks, so ``K − F Fᵀ`` is positive
    semi-definite.  Eigenvalues that drown in the rounding of the data's float type are
    left out, never lifted.

    Fitting costs what the selector does, n·d for a look at the rows and m³; mapping n
    rows costs n·m·(d + r), in threads over blocks of rows.  Memory m², and n·r for the
    features.

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
        Number of landmarks m; "auto" is 100, or all rows where there are fewer.
    landmarks : str, LandmarkSelector or array, default="uniform"
        How landmarks are chosen: "uniform", "diagonal", "column-norm", "leverage",
        "ridge-leverage", "bless", "k-dpp", "kmeans", "kmeans++", "greedy", "cholesky",
        "rpcholesky" or a selector object (see `sketchmeans.landmarks`); or points
        (m, d), or row numbers (m,).
    rank : int or None, default=None
        Most features r; None is the numerical rank of ``k(Z, Z)``, at most m.
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
        The same seed chooses the same landmarks as in `NystromKMeans`.

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix of shape (m, d)
        The landmarks; for a precomputed kernel their row numbers, of shape (m, 1).
    landmark_indices_ : ndarray of shape (m,) or None
        Their row numbers, if they are rows.
    components_ : ndarray of shape (m, r)
        ``R``: the features are ``k(X, Z) @ components_``.
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
    OG17: Oglic & Gärtner, "Nyström method with kernel k-means++ samples as landmarks",
    ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import Nystrom
    >>> X = load_digits().data
    >>> nystrom = Nystrom(n_landmarks=200, rank=50, random_state=0).fit(X)
    >>> nystrom.transform(X).shape
    (1797, 50)
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., float] = "rbf",
        *,
        gamma: Gamma = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        n_landmarks: int | str = "auto",
        landmarks: Any = "uniform",
        rank: int | None = None,
        rank_method: str = "landmarks",
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.rank = rank
        self.rank_method = rank_method
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Choose the landmarks and factor their kernel matrix.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        kernel_rng, landmark_rng = as_generator(self.random_state).spawn(2)
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            kernel = self._fitted_kernel(rows, kernel_rng)
            landmarks = self._select(rows, kernel, landmark_rng)
            whole = self.rank is None or self.rank_method == "approximation"
            space = LandmarkSpace(
                kernel,
                landmarks.points,
                rows.dtype,
                workers,
                rank=None if whole else self.rank,
                gram=_given_gram(rows, kernel, landmarks),
            )
            self._check_memory(rows, space)
            root = space.inverse.root()
            if whole and self.rank is not None and self.rank < root.shape[1]:
                root = root @ _leading(_FeatureRows(rows, space, root), self.rank)
        self.landmarks_ = landmarks.points
        self.landmark_indices_ = landmarks.indices
        self.components_ = np.ascontiguousarray(root, dtype=rows.dtype)
        self.rank_ = int(root.shape[1])
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: ``k(new rows, training rows)``.

        Returns
        -------
        features : ndarray of shape (n, r)
            float32 for float32 rows and small integers, else float64.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        with Workers(self.n_jobs) as workers:
            rows = as_rows(X, workers)
            return self._features(rows).all(rows.dtype)

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
            The Schatten norm 1, 2 or ∞.

            - "trace": ``Σ k(x, x) − ‖F_x‖²``, exactly, in one pass of n·m·(d + r).
            - "frobenius": exactly, in n²·(d + r), for up to 30,000 rows.  Above, an
              estimate from rows drawn at random, until its standard error is 1% of
              the norm; 1,024 draws at a time, each n·(d + r), at most 30,720.
            - "spectral": by Lanczos, to about 0.1%, in some twenty products of K with
              a vector, each n²·d, or n² where K fits in `max_memory`.
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
        theirs = np.mean(
            [
                Nystrom(
                    self.kernel_,
                    n_landmarks=self.landmarks_.shape[0],
                    landmarks=baseline,
                    rank=self.rank,
                    rank_method=self.rank_method,
                    max_memory=self.max_memory,
                    n_jobs=self.n_jobs,
                    random_state=rng,
                )
                .fit(X, sample_weight=sample_weight)
                .approximation_error(
                    X, norm, relative=False, sample_weight=sample_weight
                )
                for rng in as_generator(self.random_state).spawn(n_repeats)
            ]
        )
        if ours > 0.0:
            return float(theirs) / ours
        return float("inf") if theirs > 0.0 else 1.0

    def _norms(self, X: Any, norm: str, sample_weight: Any) -> Norms:
        check_is_fitted(self)
        check_option("norm", norm, NORMS)
        X = validated(self, X, reset=False)
        n = X.shape[0]
        if isinstance(self.kernel_, Precomputed) and n != self.n_features_in_:
            raise ValueError(
                f"X.shape={X.shape} should be ({self.n_features_in_}, "
                f"{self.n_features_in_}) with kernel='precomputed': k(x, y) is known "
                "for the rows of the fit only."
            )
        with Workers(self.n_jobs) as workers:
            rows = as_rows(X, workers, check_weights(sample_weight, n))
            streamed = self._features(rows)
            features: Features = streamed
            if norm == "spectral" or (norm == "frobenius" and n <= EXACT_ROWS):
                features = as_rows(streamed.all(streamed.dtype), workers)
            residual = Residual(rows, self.kernel_, features, streamed.dtype)
            if norm == "trace":
                return residual.trace()
            # The first two children are the fit's.
            _, _, rng = as_generator(self.random_state).spawn(3)
            if norm == "frobenius":
                return residual.frobenius(rng)
            return residual.spectral(rng, memory_budget(self.max_memory))

    def _features(self, rows: Rows) -> _FeatureRows:
        """Return the features of rows, in no less than the float type of the fit.

        The root amplifies the rounding of kernel values up to what the type of the fit
        allows: a coarser one would drown the features.
        """
        dtype = np.promote_types(self.components_.dtype, rows.dtype)
        space = LandmarkSpace(self.kernel_, self.landmarks_, dtype, rows.workers)
        return _FeatureRows(rows, space, self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_params(self) -> None:
        check_option("rank_method", self.rank_method, ("landmarks", "approximation"))
        if not is_auto(self.n_landmarks):
            check_integer("n_landmarks", self.n_landmarks)
        if self.rank is not None:
            check_integer("rank", self.rank)

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        """Return the validated rows of `fit`."""
        X = validated(self, X, reset=True)
        rows = weighted_rows(X, sample_weight, workers)
        rows.survey()  # the one look at every row: it finds what is not a number
        if self.__sklearn_tags__().input_tags.pairwise:
            check_given_matrix(rows)
        return rows

    def _fitted_kernel(self, rows: Rows, rng: np.random.Generator) -> Kernel:
        kernel = as_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        ).resolved(rows, rng)
        if not kernel.positive_definite:
            warn_user(
                f"{kernel!r} is not positive semi-definite: features approximate its "
                "positive part only.",
            )
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        return kernel

    def _select(
        self, rows: Rows, kernel: Kernel, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks, chosen or given."""
        return chosen_landmarks(
            self.landmarks,
            self.n_landmarks,
            rows,
            kernel,
            rng,
            lambda: min(_AUTO_LANDMARKS, len(rows)),
        )

    def _check_memory(self, rows: Rows, space: LandmarkSpace) -> None:
        m, d, size = space.n_columns, rows.n_features, rows.dtype.itemsize
        algebra = 4 * m * m * 8  # k(Z, Z), its copy in the solver, eigenvectors, root
        need = algebra + rows.workers.n_jobs * space.height * 2 * (m + d) * size
        budget = memory_budget(self.max_memory)
        if need > budget:
            raise MemoryError(
                f"{m:,} landmarks with {d:,} features need {format_bytes(need)}; "
                f"max_memory allows {format_bytes(budget)}. Lower n_landmarks or "
                "n_jobs, or raise max_memory."
            )


class _FeatureRows:
    """The features ``k(X, Z) R`` of the rows of a source, computed when asked for."""

    def __init__(self, rows: Rows, space: LandmarkSpace, root: Array) -> None:
        self.rows = rows
        self.space = space
        self.dtype = space.dtype
        self._root = root.astype(space.dtype)

    def block(self, start: int, stop: int) -> Array:
        return self._map(self.rows.block(start, stop))

    def take(self, indices: Array) -> Array:
        return self._map(self.rows.take(indices))

    def _map(self, block: Block) -> Array:
        shape = (block.shape[0], self.space.n_columns)
        out = self.rows.workers.buffer("coordinates", shape, self.dtype)
        return np.asarray(self.space.kernel_block(block, out) @ self._root)

    def spans(self) -> list[tuple[int, int]]:
        """Return the blocks that fit the space."""
        return spans(len(self.rows), self.space.height)

    def all(self, dtype: np.dtype[Any]) -> Array:
        """Return the features of all rows, in one array."""
        values = np.empty((len(self.rows), self._root.shape[1]), dtype)

        def fill(span: tuple[int, int]) -> None:
            values[slice(*span)] = self.block(*span)

        for _ in self.rows.workers.map(fill, self.spans()):
            pass
        return values


def _given_gram(rows: Rows, kernel: Kernel, landmarks: Landmarks) -> Array | None:
    """Return ``k(Z, Z)`` out of a given kernel matrix, or None for other kernels."""
    if not isinstance(kernel, Precomputed):
        return None
    numbers = landmarks.points
    K = kernel.against(numbers, np.float64)(rows.take(numbers.ravel()))
    return np.asarray(0.5 * (K + K.T))


def _leading(features: _FeatureRows, rank: int) -> Array:
    """Return the top eigenvectors of ``Fᵀ D F``, the largest first."""
    rows = features.rows

    def products(span: tuple[int, int]) -> Array:
        F = features.block(*span).astype(np.float64)
        weights = rows.block_weights(*span)
        return np.asarray(F.T @ (F if weights is None else weights[:, None] * F))

    total = sum(rows.workers.map(products, features.spans()))
    return eigen_decomposition(np.asarray(total), driver="evd")[1][:, ::-1][:, :rank]
