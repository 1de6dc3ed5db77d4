"""Checks at the public edge: errors state parameter, value and what is valid."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from sketchmeans.linalg import Array
from sketchmeans.parallel import Workers
from sketchmeans.rows import Rows, as_rows, check_finite, is_dask
from sketchmeans.sources import Source, as_source

#: Packages that call one another between a user's line and a warning.
_INNER_PACKAGES = ("sketchmeans", "sklearn", "joblib", "contextlib")

Fit = TypeVar("Fit", bound=Callable[..., Any])


def check_integer(name: str, value: Any, low: int = 1) -> int:
    """Return an integer parameter of at least `low`."""
    if (
        isinstance(value, Integral)
        and not isinstance(value, bool)
        and int(value) >= low
    ):
        return int(value)
    raise ValueError(f"{name}={value!r} should be an integer >= {low}.")


def check_number(name: str, value: Any, low: float = 0.0) -> float:
    """Return a finite number of at least `low`."""
    if (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and low <= float(value) < np.inf
        and float(value) > -np.inf
    ):
        return float(value)
    least = "" if low == -np.inf else f" >= {low:g}"
    raise ValueError(f"{name}={value!r} should be a finite number{least}.")


def check_flag(name: str, value: Any) -> bool:
    """Return a parameter that is True or False; words such as "no" would be true."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name}={value!r} should be True or False.")


def is_auto(value: Any) -> bool:
    """Say whether a parameter is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def check_option(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Return one of a few words."""
    if isinstance(value, str) and value in options:
        return value
    raise ValueError(f"{name}={value!r} should be one of {list(options)}.")


def check_weights(sample_weight: Any, n_samples: int) -> Array | None:
    """Return sample weights in float64, or None where all are equal to one."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf":
        try:
            weights = weights.astype(np.float64, casting="same_kind")
        except (TypeError, ValueError):
            raise ValueError(
                f"sample_weight of type {weights.dtype} should be real numbers."
            ) from None
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape={weights.shape} should be ({n_samples},): one weight "
            "a row."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}]={weights[bad[0]]} should be a finite number "
            ">= 0; negative weights are not possible."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every row; at least one should be positive."
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError(
                f"sample_weight adds up to more than {np.finfo(float).max:.1e}, the "
                "largest float; divide all weights by the same number."
            )
    return None if (weights == 1.0).all() else weights


def normalise_weights(weights: Array | None) -> tuple[Array | None, float]:
    """Return weights on a scale of about one, and the unit that they are in.

    Only ratios of weights matter to a fit, but the squares of tiny and huge ones, and
    their values in float32, underflow or overflow.  The unit is a power of two, so that
    no digit is lost; where all weights that are not zero are equal, it is their value,
    and None stands for weights of one.

    Examples
    --------
    >>> import numpy as np
    >>> normalise_weights(np.array([3e-300, 3e-300]))
    (None, 3e-300)
    >>> normalise_weights(np.array([12.0, 0.0, 16.0]))
    (array([0.75, 0.  , 1.  ]), 16.0)
    """
    if weights is None:
        return None, 1.0
    largest = float(weights.max())
    positive = weights > 0.0
    if (weights[positive] == largest).all():
        return None if positive.all() else positive.astype(np.float64), largest
    exponent = math.frexp(largest)[1] - 1
    return np.ldexp(weights, -exponent), math.ldexp(1.0, exponent)


def weighted_rows(
    X: Any, sample_weight: Any, workers: Workers, budget: int | None = None
) -> Rows:
    """Return the row source of a checked table, with weights on a scale of one."""
    weights = check_weights(sample_weight, X.shape[0])
    weights, unit = normalise_weights(weights)
    return as_rows(X, workers, weights, budget).with_unit(unit)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that led here, however many calls up.

    A fit may be called directly, by a Pipeline or by a search, and is decorated, so
    no fixed `stacklevel` is right.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inner(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inner(module: str) -> bool:
    return module.partition(".")[0] in _INNER_PACKAGES


def as_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a user's `random_state` stands for.

    An integer gives the same stream each time; a RandomState is drawn from, so that
    successive fits differ, as in scikit-learn; a Generator is used as it is.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31 - 1)))
    if random_state is None or (
        isinstance(random_state, Integral) and int(random_state) >= 0
    ):
        return np.random.default_rng(
            None if random_state is None else int(random_state)
        )
    raise ValueError(
        f"random_state={random_state!r} should be None, a non-negative integer, a "
        "numpy Generator or a RandomState."
    )


def all_or_nothing(fit: Fit) -> Fit:
    """Decorate `fit`: if it fails, the estimator is as it was before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, guarded)


def checked_table(X: Any, estimator: Any = None) -> Any:
    """Return a user's table as it is stored, or the source that it is or names."""
    if is_dask(X):
        return _dask_table(X, estimator)
    source = as_source(X)
    if source is not None:
        return source
    return check_array(
        X,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )


def _dask_table(X: Any, estimator: Any) -> Any:
    if not getattr(estimator, "_takes_dask", False):
        who = "This" if estimator is None else type(estimator).__name__
        raise TypeError(
            f"{who} does not take a Dask collection ({type(X).__name__}): it works on "
            "rows in one process. NystromKMeans does."
        )
    from sketchmeans.distributed import as_table

    return as_table(X)


def _counted_alike(estimator: Any, table: Source) -> Source:
    """Return a source whose features are counted as those of the fit were."""
    zero_based = getattr(estimator, "zero_based_", None)
    return table if zero_based is None else table.like(zero_based)


def validated(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return a user's table as it is stored: nothing is converted as a whole.

    Whether values are finite is checked as the rows are read; at once only if the
    table has the wrong width, as NaN may well be the reason.
    """
    table = checked_table(X, estimator)
    if reset:
        vars(estimator).pop("zero_based_", None)
    if is_dask(table):
        validate_data(estimator, table.shell, reset=reset, skip_check_array=True)
        return table
    if isinstance(table, Source):
        if not reset:
            table = _counted_alike(estimator, table)
            table = table.widened(estimator.n_features_in_)
        elif table.zero_based is not None:
            estimator.zero_based_ = table.zero_based
        validate_data(estimator, table.shell(), reset=reset, skip_check_array=True)
        return table
    if not reset and table.shape[1] != estimator.n_features_in_:
        check_finite(table)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return table
