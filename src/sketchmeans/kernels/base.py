"""What a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from sketchmeans.data.rows import Block, Rows, block_height, float_type, stack_parts
from sketchmeans.data.sampling import first_rows
from sketchmeans.kernels.arrays import SquaredDistances, write
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.numerics.linalg import SYMMETRY_TOLERANCE, Array, clip_zero_distances
from sketchmeans.numerics.parallel import Workers

#: Rows on which kernels of users are tried.
_PROBED_ROWS = 16


class KernelColumns(Protocol):
    """The columns ``k(·, Z) = [k(·, z_j)]_j``, prepared for blocks of rows.

    A block of n rows costs what the `Kernel` says.

    See Also
    --------
    Kernel : `Kernel.against` returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Linear
    >>> columns = Linear().against(np.array([[1.0, 2.0]]), np.float64)
    >>> columns(np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[11.],
           [ 2.]])
    """

    def __call__(self, block: Block, out: Array | None = None) -> Array:
        """Return ``k(block, Z)``, written into `out` if given."""
        ...


class Kernel(BaseEstimator):
    """Base of all kernels: functions ``k(x, z) = φ(x)·φ(z)`` of two rows.

    A kernel of your own subclasses this and defines `against` and `diagonal`, and its
    ``__init__`` only stores its parameters, as scikit-learn demands.
    `sketchmeans.testing.KernelContract` tests it.

    A block of n rows costs n·m·d time for m columns, and the n·m numbers that it is,
    unless a kernel says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import RBF, Kernel
    >>> isinstance(RBF(gamma=0.5), Kernel)
    True
    >>> RBF(gamma=0.5).diagonal(np.ones((3, 2)))
    array([1., 1., 1.])
    """

    #: Whether every kernel matrix is positive semi-definite.
    positive_definite: bool = True

    #: Whether that is a theorem, for this very class and every table.
    proven: bool = False

    #: Whether no value is below zero.
    nonnegative: bool = False

    #: Whether a block is computed in its own memory alone.
    in_place: bool = False

    #: Whether clusters stay the same when all rows are shifted alike.
    shift_invariant: bool = False

    #: ``k(x, x)``, where it is the same for every x.
    constant_diagonal: float | None = None

    #: The distance that sets the bandwidth: "sqeuclidean", "cityblock" or None.
    _distance: str | None = None

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        """Return a function ``(block, out) -> k(block, Z)`` in float type `dtype`.

        `workers` lends the scratch arrays; it must be given when the function is
        called from several threads.
        """
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define against(Z, dtype, workers)."
        )

    def diagonal(self, X: Block) -> Array:
        """Return ``k(x, x)`` for every row, in float64."""
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define diagonal(X)."
        )

    def features(self, X: Block) -> Block | None:
        """Return ``φ(X)`` where it is a table as wide as `X`, else None.

        Distances between such features are computed from their differences, which keep
        the digits that differences of kernel values lose.
        """
        return None

    def squared_distances(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns | None:
        """Return a function ``(block, out) -> ‖φ(x) − φ(z)‖²``, exact for near rows.

        None where there is no better way than ``k(x, x) − 2k(x, z) + k(z, z)``.
        """
        features = None if sparse.issparse(Z) else self.features(Z)
        if features is None:
            return None
        distances = SquaredDistances(features, np.dtype(dtype))

        def columns(block: Block, out: Array | None = None) -> Array:
            if out is None or out.dtype == distances.dtype:
                return distances(self.features(block), out)
            return write(distances(self.features(block)), out.dtype, out)

        return columns

    def resolve(self, rows: Rows, rng: np.random.Generator) -> Self:
        """Return a clone in which every rule (``gamma="mean"``) is a number."""
        kernel = clone(self)
        if hasattr(self, "gamma"):
            kernel.set_params(
                gamma=resolve_gamma(self.gamma, self._distance, rows, rng)
            )
        if not is_proven(kernel):
            check_values(kernel, rows)
        return kernel

    def points(self, rows: Rows, indices: Array) -> Block:
        """Return the rows of these numbers in the form that `against` takes."""
        return rows.take(indices)

    def among(self, rows: Rows) -> Callable[[Array], Array]:
        """Return a function from row numbers to ``k(X, X[numbers])``, in float64."""

        def values(numbers: Array) -> Array:
            columns = self.against(self.points(rows, numbers), rows.dtype, rows.workers)
            return map_columns(rows, columns, len(numbers))

        return values

    def distances_among(self, rows: Rows) -> Callable[[Array], Array]:
        """Return a function from row numbers to ``‖φ(x) − φ(x_number)‖²``, in float64.

        Of shape (n, q); exactly zero between equal rows.
        """
        diagonal, values = self.row_diagonal(rows), self.among(rows)

        def distances(numbers: Array) -> Array:
            result = values(numbers)
            scale = diagonal[:, None] + diagonal[numbers]
            result *= -2.0
            result += scale
            return clip_zero_distances(result, scale, rows.dtype)

        return distances

    def row_diagonal(self, rows: Rows) -> Array:
        """Return ``k(x, x)`` for all rows of a source, in float64."""
        if self.constant_diagonal is not None:
            return np.full(len(rows), self.constant_diagonal)
        height = block_height(rows.n_features, 0)
        return np.concatenate(list(rows.map(self.diagonal, height)))

    def __call__(self, X: Block, Z: Block, out: Array | None = None) -> Array:
        """Return the matrix ``k(X, Z)`` in the float type of `X`."""
        return self.against(Z, float_type(X.dtype))(X, out)


def map_columns(rows: Rows, columns: KernelColumns, width: int) -> Array:
    """Return the values of this many columns for all rows, in float64."""
    height = block_height(rows.n_features, width)
    return stack_parts(rows.map(columns, height), (len(rows), width))


def is_proven(kernel: Kernel) -> bool:
    """Say whether the class of a kernel itself, not a base of it, is proven."""
    return bool(vars(type(kernel)).get("proven", False))


def check_values(kernel: Kernel, rows: Rows) -> None:
    """Raise where a kernel that a user wrote is not one, on the first rows that count.

    It should return finite real numbers in the right shape, be symmetric, and agree
    with its diagonal.
    """
    numbers = first_rows(rows, _PROBED_ROWS)
    n, points = len(numbers), kernel.points(rows, numbers)
    values = kernel.against(points, np.float64, rows.workers)(rows.take(numbers))
    diagonal = kernel.diagonal(points)
    for name, found, shape in (
        ("k(X, X)", values, (n, n)),
        ("diagonal(X)", diagonal, (n,)),
    ):
        kind = getattr(found, "dtype", np.dtype(object)).kind
        if np.shape(found) != shape or kind not in "fiub":
            raise ValueError(
                f"kernel={kernel!r} should return real numbers of shape {shape} as "
                f"{name} of {n} rows, not {type(found).__name__} of shape "
                f"{np.shape(found)}."
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"kernel={kernel!r} should return finite numbers; {name} of the first "
                f"{n} rows holds NaN or infinity."
            )
    tolerance = SYMMETRY_TOLERANCE * float(np.abs(values).max(initial=0.0))
    for demand, what, difference in (
        ("be symmetric", "k(x, z) and k(z, x)", values - values.T),
        (
            "agree with its diagonal",
            "k(x, x) and diagonal(X)",
            values.diagonal() - diagonal,
        ),
    ):
        worst = float(np.abs(difference).max(initial=0.0))
        if worst > tolerance:
            raise ValueError(
                f"kernel={kernel!r} should {demand}; {what} differ by up to "
                f"{worst:.3g} among the first {n} rows."
            )
