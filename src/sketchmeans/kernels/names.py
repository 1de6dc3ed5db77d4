"""From what users type to kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.data.rows import Rows
from sketchmeans.kernels.bandwidth import Gamma, nearby_distance, typical_distance
from sketchmeans.kernels.base import Kernel
from sketchmeans.kernels.distances import RBF, Laplacian
from sketchmeans.kernels.pairwise import (
    Chi2,
    Pairwise,
    Precomputed,
    check_kernel_matrix,
)
from sketchmeans.kernels.products import ArcCosine, Cosine, Linear, Polynomial, Sigmoid
from sketchmeans.numerics.parameters import check_number, warn_user

KERNELS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "linear": Linear,
    "cosine": Cosine,
    "sigmoid": Sigmoid,
    "arc-cosine": ArcCosine,
    "chi2": Chi2,
    "precomputed": Precomputed,
}

#: Exponents at which rows are so near each other that it is worth a closer look.
_NEAR = 2.0**-6

#: What the kernel parameters of the estimators are if the user says nothing.
_DEFAULTS = {"gamma": "mean", "degree": 3, "coef0": 1}


def as_kernel(
    kernel: str | Kernel | Callable[..., float],
    *,
    gamma: Gamma = "mean",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the `Kernel` that a user's parameters stand for.

    A parameter that the kernel does not have (the ``degree`` of an rbf) is left out,
    with a warning if it was given: a search over kernels may well set it for others.
    With a callable or a `Kernel` object, which never have them, it is an error, as it
    is to give one both directly and in `kernel_params`.

    Examples
    --------
    >>> as_kernel("poly", degree=2)
    Polynomial(coef0=1, degree=2)
    """
    named = {"gamma": gamma, "degree": degree, "coef0": coef0}
    explicit = {
        name: value
        for name, value in named.items()
        if not (isinstance(value, str | Real) and value == _DEFAULTS[name])
    }
    params = dict(kernel_params or {})
    if isinstance(kernel, Kernel) or callable(kernel):
        if explicit:
            raise ValueError(
                f"gamma={gamma!r}, degree={degree!r} and coef0={coef0!r} should be "
                "left at their defaults with a callable or a Kernel object: give "
                "its parameters in kernel_params or in the object itself."
            )
        if not isinstance(kernel, Kernel):
            return Pairwise(kernel, kernel_params)
        if params:
            raise ValueError(
                f"kernel_params={kernel_params!r} should be None with a Kernel object."
            )
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        family = KERNELS[kernel]
        known = family._get_param_names()
        _check_params(kernel, explicit, params, known, known)
        chosen = {name: value for name, value in named.items() if name in known}
        for name in {"degree", "coef0"} & set(chosen):
            check_number(name, chosen[name], low=-np.inf)
        return family(**chosen | params)
    if isinstance(kernel, str) and kernel in PAIRWISE_KERNEL_FUNCTIONS:
        known = list(signature(PAIRWISE_KERNEL_FUNCTIONS[kernel]).parameters)[2:]
        _check_params(kernel, explicit, params, known, [])
        return Pairwise(kernel, kernel_params)
    names = sorted(set(KERNELS) | set(PAIRWISE_KERNEL_FUNCTIONS))
    raise ValueError(
        f"kernel={kernel!r} should be one of {names}, a callable or a Kernel object."
    )


def _check_params(
    kernel: str,
    explicit: Mapping[str, Any],
    params: Mapping[str, Any],
    known: list[str],
    named: list[str],
) -> None:
    """Check `params` against what is `known`, and `explicit` ones against `named`."""
    if unknown := sorted(set(params) - set(known)):
        raise ValueError(
            f"kernel_params has {unknown}, which kernel={kernel!r} does not take; "
            f"it takes {known}."
        )
    for name in sorted(set(explicit) & set(params) & set(named)):
        raise ValueError(
            f"{name}={explicit[name]!r} is given twice: kernel_params has "
            f"{name}={params[name]!r}. Give one of them."
        )
    unused = [f"{name}={explicit[name]!r}" for name in explicit if name not in named]
    if unused:
        warn_user(f"kernel={kernel!r} does not use {', '.join(unused)}.")


def kernel_of(estimator: Any) -> Kernel:
    """Return the kernel that the parameters of an estimator stand for."""
    names = ("gamma", "degree", "coef0", "kernel_params")
    return as_kernel(estimator.kernel, **{n: getattr(estimator, n) for n in names})


def resolve_kernel(kernel: Kernel, rows: Rows, rng: np.random.Generator) -> Kernel:
    """Return the kernel with its bandwidth as a number, after a look at every row.

    Values that are not finite are an error, as is a precomputed matrix that is not
    square and symmetric.
    """
    if is_given(kernel):
        check_kernel_matrix(rows)
    else:
        rows.moments()  # finds every value that is not finite
    return kernel.resolve(rows, rng)


def is_given(kernel: Any) -> bool:
    """Say whether a kernel, or what a user calls it, stands for precomputed values."""
    named = isinstance(kernel, str) and kernel == "precomputed"
    return named or isinstance(kernel, Precomputed)


def typical_exponent(
    kernel: Kernel, rows: Rows, rng: np.random.Generator, share: float = 0.5
) -> float:
    """Return ``gamma`` times a typical distance, for kernels ``exp(−gamma distance)``.

    A typical distance is one that a share of all pairs do not exceed: the median, if no
    other is given.  Infinite for other kernels, and where that many pairs are equal
    rows.  A sample is drawn only if the first rows are near each other.
    """
    distance = kernel._distance
    gamma = getattr(kernel, "gamma", None)
    if distance is None or gamma is None or len(rows) < 2:
        return np.inf
    found = gamma * nearby_distance(rows, distance)
    if found < _NEAR:
        found = gamma * typical_distance(rows, distance, rng.spawn(1)[0], share)
    return found if found > 0.0 else np.inf


def warn_if_indefinite(
    kernel: Kernel,
    consequence: str = (
        "the cost need not fall from pass to pass, and it has no certificate"
    ),
) -> None:
    """Warn that the theory does not cover an indefinite kernel."""
    if not kernel.positive_definite:
        warn_user(f"{kernel!r} is not positive semi-definite: {consequence}.")
