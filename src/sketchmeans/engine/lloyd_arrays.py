"""Results and states of Lloyd's algorithm as named arrays, and back."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from sketchmeans.engine.lloyd import LloydState
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.linalg import Array

Arrays = dict[str, Array]


@dataclass(frozen=True)
class LoopShape:
    """What the results of a loop have to fit.

    `coefficients` is the shape (restarts, k, m); `labels` says whether results must
    have labels, as those of subsamples need none.
    """

    n_rows: int
    coefficients: tuple[int, int, int]
    labels: bool


def flatten_results(results: list[LloydResult], labels: bool) -> Arrays:
    """Return results as arrays, with labels if these are needed."""
    arrays: Arrays = {}
    for i, result in enumerate(results):
        arrays |= _flatten_centers(f"{i}/", result.centers) | {
            f"{i}/cost": np.array(result.cost),
            f"{i}/counts": result.counts,
            f"{i}/cost_path": np.array(result.cost_path),
            f"{i}/flags": np.array([result.converged, result.stopped]),
            # Those on a cluster are brought here.
            f"{i}/labels": np.asarray(result.labels if labels else np.empty(0, int)),
        }
    return arrays


def unflatten_results(arrays: Arrays, shape: LoopShape) -> list[LloydResult]:
    """Return the results that arrays hold.

    Raises
    ------
    KeyError, ValueError
        If arrays are missing, or do not fit one another or the fit.
    """
    restarts, k, _ = shape.coefficients
    results = []
    for i in range(restarts):
        part = select_prefix(arrays, f"{i}/")
        labels, path = part["labels"], part["cost_path"]
        if shape.labels or labels.size:
            _check(part, "labels", (shape.n_rows,), "iu")
            _require(0 <= labels.min() <= labels.max() < k, "labels")
        _require(path.size > 0, "cost_path")
        result = LloydResult(
            labels,
            _unflatten_centers(part, 1, shape),
            float(_check(part, "cost", ())),
            _check(part, "counts", (k,)),
            _check(part, "cost_path", (path.size,)).tolist(),
            *_check(part, "flags", (2,), "b").tolist(),
        )
        results.append(result)
    return results


def flatten_state(state: LloydState) -> Arrays:
    """Return the state of a loop as arrays."""
    return {
        **flatten_results(state.results, labels=True),
        **_flatten_centers("next/", state.centers),
        **{f"engine/{name}": value for name, value in state.engine.items()},
        "iteration": np.array(state.iteration),
        "active": state.active,
        "empty_before": state.empty_before,
    }


def unflatten_state(arrays: Arrays, shape: LoopShape) -> LloydState:
    """Return the state that arrays hold; raises as `unflatten_results` does."""
    restarts = shape.coefficients[0]
    iteration = int(_check(arrays, "iteration", (), "i"))
    _require(iteration > 0, "iteration")
    active = _check(arrays, "active", (arrays["active"].size,), "i")
    found = np.isin(np.arange(restarts), active).sum()
    _require(found == len(active) > 0, "active")
    return LloydState(
        iteration,
        unflatten_results(arrays, shape),
        active,
        _unflatten_centers(select_prefix(arrays, "next/"), len(active), shape),
        _check(arrays, "empty_before", (restarts,), "i"),
        select_prefix(arrays, "engine/"),
    )


def select_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose name starts with a prefix, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _flatten_centers(prefix: str, centers: Centers) -> Arrays:
    return {
        f"{prefix}{field.name}": getattr(centers, field.name)
        for field in fields(centers)
    }


def _unflatten_centers(arrays: Arrays, restarts: int, shape: LoopShape) -> Centers:
    _, k, m = shape.coefficients
    return Centers(
        coefficients=_check(arrays, "coefficients", (restarts, k, m)),
        squared_norms=_check(arrays, "squared_norms", (restarts, k)),
        means=_check(arrays, "means", (restarts, k, m)),
    )


def _check(arrays: Arrays, name: str, shape: tuple[int, ...], kind: str = "f") -> Array:
    """Return an array of this shape and kind: finite float64 ("f"), or one of "iub"."""
    array = arrays[name]
    is_kind = array.dtype == np.float64 if kind == "f" else array.dtype.kind in kind
    _require(array.shape == shape and is_kind and np.isfinite(array).all(), name)
    return array


def _require(holds: bool | np.bool_, name: str) -> None:
    if not holds:
        raise ValueError(f"{name} does not fit the fit")
