"""Pseudo-inverses of kernel matrices; every numerical tolerance lives here.

The landmark matrix ``K = k(Z, Z)`` is positive semi-definite and often close to
singular: smooth kernels have fast decaying spectra and data repeat rows.  A
centroid in the span of the landmarks needs ``M = K⁺``, cut where the eigenvalues
drown in rounding.  Small eigenvalues are truncated and never lifted by jitter,
because ``‖c‖² = b̄ᵀ M b̄`` holds only if ``M K M = M``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular, svd
from scipy.linalg.lapack import dpstrf

Array = npt.NDArray[Any]

#: Two squared distances closer than this times the scale of the kernel are a tie.
TIE_TOLERANCE = 1e-9

#: Squared distances below this many roundings of the kernel's scale count as zero.
ZERO_DISTANCE_ROUNDINGS = 32.0

#: Squared distances below this many roundings of the squared norms whose difference
#: they are have lost too many digits, and are computed in another way.
CANCELLATION_ROUNDINGS = 2048.0

#: A given kernel matrix may differ from its mirror image by this share of its scale.
SYMMETRY_TOLERANCE = 1e-4

#: From this size on eigenvalues take too long.
_MANY = 512

#: Inverse-iteration steps that find the smallest eigenvalue to within a factor of 2.
_POWER_STEPS = 12


def relative_cut(n: int, dtype: npt.DTypeLike) -> float:
    """Return the share of the largest eigenvalue below which eigenvalues are noise.

    ``K`` itself is computed in float64, which is exact to about ``n`` roundings;
    it multiplies kernel blocks in `dtype`, whose one rounding, divided by the root
    of a smaller eigenvalue, would outgrow the quantity it perturbs.
    """
    eps64 = float(np.finfo(np.float64).eps)
    return max(float(np.finfo(np.dtype(dtype)).eps), 10.0 * n * eps64)


def check_no_overflow(values: Array) -> None:
    """Raise where kernel values or costs are not finite."""
    if not np.isfinite(values).all():
        raise ValueError(
            "Some kernel values overflow. Scale the features (for example with "
            "StandardScaler) or use float64."
        )


def clip_zero_distances(
    distances: Array, scale: Array, dtype: npt.DTypeLike = np.float64
) -> Array:
    """Set squared distances that are rounding to zero, in place, and return them.

    ``k(x, x) − 2k(x, z) + k(z, z)`` of equal rows is a few roundings, in float type
    `dtype`, of `scale`: the sum of ``k(x, x)`` and ``k(z, z)``.

    Examples
    --------
    >>> import numpy as np
    >>> clip_zero_distances(np.array([1e-15, 1e-3]), np.array([2.0, 2.0]))
    array([0.   , 0.001])
    """
    noise = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(np.dtype(dtype)).eps)
    distances[distances <= noise * np.abs(scale)] = 0.0
    return distances


def eigen_decomposition(
    K: Array, *, largest: int | None = None, driver: str | None = None
) -> tuple[Array, Array]:
    """Return eigenvalues, in ascending order, and eigenvectors of a symmetric matrix.

    Only some of the `largest`, if that is given.  LAPACK's fast drivers ("evd", "evr")
    fail on some matrices with many equal eigenvalues, such as those of orthogonal rows,
    or return fewer eigenvalues than were asked for without an error; then a slower one
    that does not fail is used.

    Examples
    --------
    >>> import numpy as np
    >>> eigen_decomposition(np.diag([3.0, 1.0, 2.0]), largest=2)[0]
    array([2., 3.])
    """
    count = len(K) if largest is None else largest
    subset = None if largest is None else (len(K) - count, len(K) - 1)
    try:
        if subset is None and driver is None:  # leaves the interpreter to other threads
            return np.linalg.eigh(K)
        found = eigh(K, driver=driver, subset_by_index=subset, check_finite=False)
    except np.linalg.LinAlgError:
        found = None
    if found is None or len(found[0]) < count:
        # In float64, as those of float32 are not safe in threads on old processors.
        wide = np.asarray(K, dtype=np.float64)
        values, vectors = eigh(wide, driver="ev", check_finite=False)
        values, vectors = values[len(K) - count :], vectors[:, len(K) - count :]
        found = values.astype(K.dtype), vectors.astype(K.dtype)
    return found


def largest_eigenvalues(K: Array, count: int) -> Array:
    """Return some of the largest eigenvalues of a symmetric matrix, ascending."""
    subset = (len(K) - count, len(K) - 1)
    try:
        values = eigh(K, eigvals_only=True, subset_by_index=subset, check_finite=False)
    except np.linalg.LinAlgError:
        values = np.empty(0)
    if len(values) < count:  # as for eigen_decomposition
        wide = np.asarray(K, dtype=np.float64)
        values = eigh(wide, eigvals_only=True, driver="ev", check_finite=False)
        values = values[-count:].astype(K.dtype)
    return np.asarray(values)


def thin_svd(A: Array) -> tuple[Array, Array, Array]:
    """Return left vectors, values and right vectors of a matrix, as `scipy.linalg.svd`.

    Where LAPACK's fast driver gives up, by a slower one.
    """
    try:
        return svd(A, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        return svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")


class PseudoInverse(Protocol):
    """``M = K⁺`` of a symmetric positive semi-definite matrix."""

    rank: int

    def solve(self, rhs: Array) -> Array:
        """Return ``M @ rhs``."""
        ...

    def root(self) -> Array:
        """Return ``R`` (n × rank) with ``R Rᵀ = M``."""
        ...


class CholeskyInverse:
    """``M = E (L Lᵀ)⁻¹ Eᵀ``, where E is the identity, or the columns P of it.

    All rows, where every eigenvalue is well above the noise; else `pivots` P that hold
    all others up to the cut, among `n` rows.  ``L Lᵀ = K_PP``.
    """

    def __init__(self, lower: Array, pivots: Array | None = None, n: int = 0) -> None:
        self.lower = lower
        self.rank = len(lower)
        self.pivots, self._n = pivots, n

    def solve(self, rhs: Array) -> Array:
        inner = rhs if self.pivots is None else rhs[self.pivots]
        return self._spread(cho_solve((self.lower, True), inner, check_finite=False))

    def root(self) -> Array:
        # Lᵀ R = I gives R Rᵀ = (L Lᵀ)⁻¹.
        options = {"lower": True, "trans": "T", "check_finite": False}
        return self._spread(solve_triangular(self.lower, np.eye(self.rank), **options))

    def _spread(self, values: Array) -> Array:
        if self.pivots is None:
            return np.asarray(values)
        result = np.zeros((self._n, *values.shape[1:]))
        result[self.pivots] = values
        return result


class EigenInverse:
    """``M = U_r Λ_r⁻¹ U_rᵀ`` over the eigenvalues that stand above the noise."""

    def __init__(self, values: Array, vectors: Array) -> None:
        self._root = vectors / np.sqrt(values)
        self.rank = len(values)

    def solve(self, rhs: Array) -> Array:
        return np.asarray(self._root @ (self._root.T @ rhs))

    def root(self) -> Array:
        return self._root


def pseudo_inverse(
    K: Array,
    *,
    dtype: npt.DTypeLike = np.float64,
    rank: int | None = None,
    margin: float = 1.0,
) -> PseudoInverse:
    """Return the truncated inverse of a positive semi-definite matrix.

    Cholesky (n³/3) is used if every eigenvalue is above the cut.  If not, pivoted
    Cholesky leaves out rows of a large matrix in float32, where its precision is
    enough; otherwise, or for a lower `rank`, eigenvalues are truncated (about 9n³).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric, float64.  Left as it is.
    dtype : dtype
        The type of the kernel blocks that ``M`` will multiply.
    rank : int, optional
        Keep at most this many of the largest eigenvalues.
    margin : float, default=1
        Cut at this many times the noise.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> M = pseudo_inverse(K)
    >>> M.rank
    2
    """
    n = len(K)
    cut = margin * relative_cut(n, dtype)
    if rank is None or rank >= n:
        factor = _well_conditioned_cholesky(K, cut)
        if factor is not None:
            return CholeskyInverse(factor)
        if n >= _MANY and np.dtype(dtype) == np.float32:
            return _pivoted(K, cut)
    values, vectors = eigen_decomposition(K, driver="evd" if n < _MANY else "evr")
    keep = values > cut * max(values[-1], 0.0)
    if rank is not None:
        keep[: max(n - rank, 0)] = False
    return EigenInverse(values[keep], vectors[:, keep])


def ridged_inverse(K: Array, dtype: npt.DTypeLike) -> PseudoInverse:
    """Return the inverse of a matrix with a small ridge, for rough estimates alone.

    Always a Cholesky factor, many times faster than the eigenvalues that a
    pseudo-inverse may need.  The ridge is ten times its cut and takes away little.
    """
    ridge = 10.0 * relative_cut(len(K), dtype) * max(float(np.trace(K)), 0.0)
    try:
        lower = cholesky(K + ridge * np.eye(len(K)), lower=True, check_finite=False)
    except np.linalg.LinAlgError:  # zero, or far from positive semi-definite
        return pseudo_inverse(K, dtype=dtype)
    return CholeskyInverse(lower)


def _well_conditioned_cholesky(K: Array, cut: float) -> Array | None:
    """Return the lower factor of `K`, or None where an eigenvalue is near the cut."""
    try:
        lower = cholesky(K, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    # Fixed start vectors: the same matrix always takes the same route.
    generator = np.random.default_rng(0)
    largest = _rayleigh(lambda v: K @ v, generator.standard_normal(len(K)))
    smallest = 1.0 / _rayleigh(
        lambda v: cho_solve((lower, True), v, check_finite=False),
        generator.standard_normal(len(K)),
    )
    return lower if smallest > 2.0 * cut * largest else None


def _pivoted(K: Array, cut: float) -> CholeskyInverse:
    """Return the inverse over pivots that stand above the cut."""
    start = np.random.default_rng(0).standard_normal(len(K))
    largest = _rayleigh(lambda v: K @ v, start)
    # All in LAPACK's order, which is that of the transpose: else K is copied element by
    # element here, and the factor for every solution.
    factor, order, rank, _ = dpstrf(K.T, tol=cut * largest, lower=1)
    lower = np.asfortranarray(factor[:rank, :rank])
    for column in range(1, rank):
        lower[:column, column] = 0.0
    return CholeskyInverse(lower, order[:rank] - 1, len(K))


def _rayleigh(apply: Any, vector: Array) -> float:
    """Return the largest eigenvalue of `apply`, from below, by power iteration."""
    norm = float(np.linalg.norm(vector))
    for _ in range(_POWER_STEPS):
        vector = apply(vector / norm)
        norm = float(np.linalg.norm(vector))
        if not 0.0 < norm < np.inf:
            return np.inf if norm else float(np.finfo(float).tiny)
    return norm
