"""Checks of parameters: errors state parameter, value and what is valid."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np

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


def check_integer_or(other: str | None, name: str, value: Any, low: int = 1) -> None:
    """Raise if a parameter is neither an integer nor the `other` value that it may be.

    Examples
    --------
    >>> check_integer_or("auto", "n_init", "many")
    Traceback (most recent call last):
    ValueError: n_init='many' should be an integer >= 1 or 'auto'.
    """
    if not (value is other or (isinstance(value, str) and value == other)):
        try:
            check_integer(name, value, low)
        except ValueError as error:
            raise ValueError(f"{str(error)[:-1]} or {other!r}.") from None


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


def canonical_name(name: str) -> str:
    """Return the documented spelling of a name: "kmeans++" is "k-means++"."""
    return name.replace("kmeans++", "k-means++")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that led here, however many calls up.

    A fit may be called directly, by a Pipeline or by a search, and is decorated, so
    no fixed `stacklevel` is right.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _INNER_PACKAGES:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def as_generator(random_state: Any, *, copy: bool = False) -> np.random.Generator:
    """Return the generator that a user's `random_state` stands for.

    An integer gives the same stream each time; a RandomState is drawn from, so that
    successive fits differ, as in scikit-learn; a Generator is used as it is.  With
    `copy`, as queries of a fitted model need it, neither of these is advanced.
    """
    if copy:
        random_state = deepcopy(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31 - 1)))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
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
