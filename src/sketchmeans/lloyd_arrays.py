"""Results and states of Lloyd's algorithm as named arrays, and back."""

from __future__ import annotations

import numpy as np

from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers, LloydResult, LloydState

Arrays = dict[str, Array]


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


def unpacked_results(arrays: Arrays) -> list[LloydResult]:
    """Return the results that arrays hold.

    Raises
    ------
    KeyError, ValueError
        If arrays are missing, or do not fit one another.
    """
    results = []
    for i in range(sum(name.endswith("/cost") for name in arrays)):
        prefix = f"{i}/"
        converged, stopped = arrays[f"{prefix}flags"].astype(bool).tolist()
        centers = _unpacked_centers(arrays, prefix)
        labels, counts = arrays[f"{prefix}labels"], arrays[f"{prefix}counts"]
        k = counts.shape[0]
        path = arrays[f"{prefix}cost_path"]
        _check(labels.ndim == 1 and labels.dtype.kind == "i", f"{prefix}labels")
        _check(not labels.size or 0 <= labels.min() <= labels.max() < k, "labels")
        _check(counts.ndim == 1 and centers.squared_norms.shape[-1] == k, "counts")
        _check(path.ndim == 1 and path.dtype.kind == "f", f"{prefix}cost_path")
        cost = float(arrays[f"{prefix}cost"].reshape(()))
        results.append(
            LloydResult(
                labels, centers, cost, counts, path.tolist(), converged, stopped
            )
        )
    return results


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


def unpacked_state(arrays: Arrays) -> LloydState:
    """Return the state that arrays hold; errors are those of `unpacked_results`."""
    engine = {
        name.removeprefix("engine/"): value
        for name, value in arrays.items()
        if name.startswith("engine/")
    }
    results = unpacked_results(arrays)
    active, empty = arrays["active"], arrays["empty_before"]
    _check(active.ndim == 1 and active.dtype.kind == "i", "active")
    _check(
        not active.size or 0 <= active.min() <= active.max() < len(results), "active"
    )
    _check(empty.shape == (len(results),), "empty_before")
    return LloydState(
        int(arrays["iteration"].reshape(())),
        results,
        active,
        _unpacked_centers(arrays, "next/"),
        empty,
        engine,
    )


def _packed_centers(centers: Centers) -> Arrays:
    return {
        "coefficients": centers.coefficients,
        "squared_norms": centers.squared_norms,
        "means": centers.means,
    }


def _unpacked_centers(arrays: Arrays, prefix: str) -> Centers:
    names = ("coefficients", "squared_norms", "means")
    found = Centers(*(arrays[f"{prefix}{name}"] for name in names))
    _check(found.means.shape[:-1] == found.squared_norms.shape, f"{prefix}means")
    _check(found.coefficients.shape[:-1] == found.squared_norms.shape, "coefficients")
    return found


def _check(holds: bool | np.bool_, name: str) -> None:
    if not holds:
        raise ValueError(f"{name} does not fit the rest")
