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
    """What the results of a loop have to fit.

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


def select_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names have a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }


def add_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """Return arrays under names with a prefix."""
    return {f"{prefix}{name}": value for name, value in arrays.items()}


def flatten_results(results: list[LloydResult], labels: bool) -> Arrays:
    """Return results as arrays; without labels, if nobody needs these."""
    arrays: Arrays = {}
    for i, result in enumerate(results):
        found = {
            **vars(result.centers),
            "cost": np.array(result.cost),
            "counts": result.counts,
            "cost_path": np.array(result.cost_path),
            "flags": np.array([result.converged, result.stopped]),
            "labels": result.labels if labels else np.empty(0, np.int32),
        }
        arrays |= add_prefix(found, f"{i}/")
    return arrays


def unflatten_results(arrays: Arrays, expected: Expected) -> list[LloydResult]:
    """Return the results that arrays hold.

    Raises
    ------
    KeyError, ValueError
        If arrays are missing, or do not fit one another or the fit.
    """
    k, results = expected.shape[1], []
    sizes = [expected.n_rows] if expected.labels else [expected.n_rows, 0]
    for i in range(expected.shape[0]):
        found = select_prefix(arrays, f"{i}/")
        flags, labels, path = found["flags"], found["labels"], found["cost_path"]
        _check(flags.shape == (2,) and flags.dtype == bool, f"{i}/flags")
        _check(labels.ndim == 1 and len(labels) in sizes, f"{i}/labels")
        _check(labels.dtype.kind == "i", f"{i}/labels")
        is_valid = not len(labels) or 0 <= labels.min() <= labels.max() < k
        _check(is_valid, f"{i}/labels")
        _check(_is_real(found["counts"], (k,)), f"{i}/counts")
        _check(_is_real(path, (path.size,)) and path.size > 0, f"{i}/cost_path")
        _check(_is_real(found["cost"], ()), f"{i}/cost")
        results.append(
            LloydResult(
                labels,
                _read_centers(arrays, f"{i}/", 1, expected),
                float(found["cost"]),
                found["counts"],
                path.tolist(),
                *flags.tolist(),
            )
        )
    return results


def flatten_state(state: LloydState) -> Arrays:
    """Return the state of a loop as arrays."""
    return {
        **flatten_results(state.results, labels=True),
        **add_prefix(vars(state.centers), "next/"),
        **add_prefix(state.engine, "engine/"),
        "iteration": np.array(state.iteration),
        "active": state.active,
        "empty_before": state.empty_before,
    }


def unflatten_state(arrays: Arrays, expected: Expected) -> LloydState:
    """Return the state that arrays hold; errors are those of `unflatten_results`."""
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
        unflatten_results(arrays, expected),
        active,
        _read_centers(arrays, "next/", len(active), expected),
        empty,
        select_prefix(arrays, "engine/"),
    )


def _read_centers(
    arrays: Arrays, prefix: str, n_restarts: int, expected: Expected
) -> Centers:
    _, k, m = expected.shape
    found = {}
    for name in ("coefficients", "squared_norms", "means"):
        shape = (n_restarts, k) if name == "squared_norms" else (n_restarts, k, m)
        found[name] = arrays[f"{prefix}{name}"]
        _check(_is_real(found[name], shape), f"{prefix}{name}")
    return Centers(**found)


def _is_real(array: Array, shape: tuple[int, ...]) -> bool:
    """Say whether an array holds finite floats, and as many as it should."""
    is_float = array.dtype == np.float64 and array.shape == shape
    return is_float and bool(np.isfinite(array).all())


def _check(holds: bool | np.bool_, name: str) -> None:
    if not holds:
        raise ValueError(f"{name} does not fit the fit")
