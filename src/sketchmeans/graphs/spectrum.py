"""The smallest eigenvalues of the Laplacian of a graph between landmarks."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from sketchmeans.numerics.linalg import Array, eigen_decomposition

#: Up to this many landmarks, from this share of entries that are not zero, or from this
#: share of all eigenvectors on, the dense solver is faster.
_FEW, _DENSE_SHARE, _MANY_VECTORS = 400, 0.06, 0.25

#: Eigenvalues are looked for about this, just above the largest that there can be.
_SHIFT = 1.0 + 1e-4

_TOLERANCE = 1e-9

#: Graphs are tried side by side, but memory is planned for one dense matrix.
_one_dense = threading.Lock()


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of ``L = I − Λ^(−½) Zᵀ W Z Λ^(−½)``, ascending, and their vectors.

    Attributes
    ----------
    values : ndarray of shape (m,)
        From 0, once for each connected part of the graph, to at most 1.
    vectors : ndarray of shape (p, m)
        Orthonormal columns.
    n_parts : int
        Connected parts of the graph.
    """

    values: Array
    vectors: Array
    n_parts: int


def smallest_eigenvalues(gram: sparse.csr_array, count: int) -> Spectrum:
    """Return the `count` smallest eigenvalues, and all that are zero.

    The value 0 has one vector per connected part of the graph, which is known without
    iteration: ``Λ^½ 1`` on that part.  Lanczos iterations may miss copies of it, and a
    lower bound on cuts would then be too high; they find the others only.

    Parameters
    ----------
    gram : CSR matrix of shape (p, p)
        ``Zᵀ W Z``; its rows add up to the diagonal of Λ.
    count : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> gram = sparse.csr_array(np.kron(np.eye(2), np.ones((2, 2))))
    >>> smallest_eigenvalues(gram, 3).values.round(3)
    array([0., 0., 1.])
    """
    p = gram.shape[0]
    degrees = np.asarray(gram.sum(axis=1)).ravel()
    present = np.flatnonzero(degrees > 0.0)
    roots = np.sqrt(degrees[present])
    inner = sparse.csr_array(gram[present][:, present]) if len(present) < p else gram
    scale = sparse.diags_array(1.0 / roots)
    A = sparse.csr_array(scale @ inner @ scale)
    nulls = _null_vectors(A, roots)
    rest = min(count, len(present)) - nulls.shape[1]
    values, vectors = np.zeros(nulls.shape[1]), nulls
    if rest > 0:
        others, found = _other_vectors(A, nulls, rest)
        values = np.append(values, np.clip(1.0 - others, 0.0, 1.0))
        vectors = np.hstack([nulls, found])
    whole = np.zeros((p, vectors.shape[1]))
    whole[present] = vectors
    return Spectrum(values, whole, nulls.shape[1])


def _null_vectors(A: sparse.csr_array, roots: Array) -> Array:
    """Return one vector for each connected part."""
    n_parts, part = connected_components(A, directed=False)
    vectors = np.zeros((len(roots), n_parts))
    vectors[np.arange(len(roots)), part] = roots
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


def _other_vectors(
    A: sparse.csr_array, nulls: Array, count: int
) -> tuple[Array, Array]:
    """Return the largest eigenvalues of A below 1, descending, and their vectors."""
    p = len(nulls)
    is_small = p <= _FEW or count + nulls.shape[1] > _MANY_VECTORS * p
    if not is_small and A.nnz <= _DENSE_SHARE * p * p:
        try:
            return _lanczos(A, nulls, count)
        except (ArpackError, RuntimeError):  # no convergence
            pass
    # Eigenvalues that are known to be 1 become 0, the smallest that there can be.
    with _one_dense:
        deflated = A.toarray() - nulls @ nulls.T
        values, vectors = eigen_decomposition(deflated, largest=count)
    return values[::-1], vectors[:, ::-1]


def _lanczos(A: sparse.csr_array, nulls: Array, count: int) -> tuple[Array, Array]:
    """Return the same by Lanczos iterations with the inverse of ``_SHIFT · I − A``."""
    p = len(nulls)
    shifted = sparse.csc_array(_SHIFT * sparse.eye_array(p) - A)
    # Positive definite: no pivoting, and an ordering that keeps the factor sparse.
    factor = splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def off_nulls(x: Array) -> Array:
        return np.asarray(x - nulls @ (nulls.T @ x))

    solve = LinearOperator(
        (p, p),
        matvec=lambda x: off_nulls(factor.solve(off_nulls(x.ravel()))),
        dtype=np.float64,
    )
    start = off_nulls(np.random.default_rng(0).standard_normal(p))
    size = min(p, max(2 * count + 1, 20))
    values, vectors = eigsh(solve, count, ncv=size, v0=start, tol=_TOLERANCE)
    order = np.argsort(-values)
    return _SHIFT - 1.0 / values[order], vectors[:, order]
