"""Results and states of Lloyd's algorithm as named arrays, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchmeans.engine.lloyd import LloydState
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.linalg import Array

Arrays = dict[str, Array]


@dataclass(frozen=True)
class Expected:
    """What results of a loop have to fit.

    Attributes
    ----------
    n_rows : int
    shape : tuple of int
        That of the coefficients: (restarts, k, m).
    labels : bool
        Whether results must have labels.
    """

    n_rows: int
    shape: tuple[int, int, int]
    labels: bool


def packed_results(results: list[LloydResult], labels: bool) -> Arrays:
    """Return results as arrays; without labels, if nobody needs these."""
    arrays: Arrays = {}
    for i, result in enumerate(results):
        found = {
            **_packed_centers(result.centers),
            "cost": np.array(result.cost),
            "counts": result.counts,
            "cost_path": np.array(result.cost_path),
            "flags": np.array([result.converged, result.stopped]),
            "labels": result.labels if labels else np.empty(0, np.int32),
        }
        arrays |= {f"{i}/{name}": value for name, value in found.items()}
    return arrays


def unpacked_results(arrays: Arrays, expected: Expected) -> list[LloydResult]:
    """Return the results that arrays hold.

    Raises
    ------
    KeyError, ValueError
        If arrays are missing, or do not fit one another or the fit.
    """
    n_restarts = expected.shape[0]
    return [_unpacked_result(arrays, f"{i}/", expected) for i in range(n_restarts)]


def _unpacked_result(arrays: Arrays, prefix: str, expected: Expected) -> LloydResult:
    k = expected.shape[1]
    flags, labels = arrays[f"{prefix}flags"], arrays[f"{prefix}labels"]
    counts, path = arrays[f"{prefix}counts"], arrays[f"{prefix}cost_path"]
    cost = arrays[f"{prefix}cost"]
    _check(flags.shape == (2,) and flags.dtype == bool, prefix, "flags")
    sizes = [expected.n_rows] if expected.labels else [expected.n_rows, 0]
    _check(labels.ndim == 1 and len(labels) in sizes, prefix, "labels")
    _check(labels.dtype.kind == "i", prefix, "labels")
    _check(not len(labels) or 0 <= labels.min() <= labels.max() < k, prefix, "labels")
    _check(_is_real(counts, (k,)), prefix, "counts")
    _check(_is_real(path, (path.size,)) and path.size > 0, prefix, "cost_path")
    _check(_is_real(cost, ()), prefix, "cost")
    return LloydResult(
        labels,
        _unpacked_centers(arrays, prefix, 1, expected),
        float(cost),
        counts,
        path.tolist(),
        *flags.tolist(),
    )


def packed_state(state: LloydState) -> Arrays:
    """Return the state of a loop as arrays."""
    return {
        **packed_results(state.results, labels=True),
        **{f"next/{n}": v for n, v in _packed_centers(state.centers).items()},
        **{f"engine/{name}": value for name, value in state.engine.items()},
        "iteration": np.array(state.iteration),
        "active": state.active,
        "empty_before": state.empty_before,
    }


def unpacked_state(arrays: Arrays, expected: Expected) -> LloydState:
    """Return the state that arrays hold; errors are those of `unpacked_results`."""
    prefix = "engine/"
    engine = {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
    n_restarts = expected.shape[0]
    active, empty = arrays["active"], arrays["empty_before"]
    iteration = arrays["iteration"]
    _check(iteration.shape == () and iteration.dtype.kind == "i", "iteration")
    _check(int(iteration) > 0, "iteration")
    _check(active.ndim == 1 and active.dtype.kind == "i", "active")
    _check(np.isin(np.arange(n_restarts), active).sum() == len(active) > 0, "active")
    _check(empty.shape == (n_restarts,) and empty.dtype.kind == "i", "empty_before")
    return LloydState(
        int(iteration),
        unpacked_results(arrays, expected),
        active,
        _unpacked_centers(arrays, "next/", len(active), expected),
        empty,
        engine,
    )


def _packed_centers(centers: Centers) -> Arrays:
    return {
        "coefficients": centers.coefficients,
        "squared_norms": centers.squared_norms,
        "means": centers.means,
    }


def _unpacked_centers(
    arrays: Arrays, prefix: str, n_restarts: int, expected: Expected
) -> Centers:
    _, k, m = expected.shape
    found = {
        name: arrays[f"{prefix}{name}"]
        for name in ("coefficients", "squared_norms", "means")
    }
    for name, array in found.items():
        shape = (n_restarts, k) if name == "squared_norms" else (n_restarts, k, m)
        _check(_is_real(array, shape), prefix, name)
    return Centers(**found)


def _is_real(array: Array, shape: tuple[int, ...]) -> bool:
    """Say whether an array holds finite floats, and as many as it should."""
    is_float = array.dtype == np.float64 and array.shape == shape
    return is_float and bool(np.isfinite(array).all())


def _check(holds: bool | np.bool_, *name: str) -> None:
    if not holds:
        raise ValueError(f"{''.join(name)} does not fit the fit")
