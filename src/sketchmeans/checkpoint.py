"""What a long fit has done so far, on disk: it resumes where it was.

A fit is a sequence of steps that depend on nothing but its parameters, the rows and the
steps before: landmarks, then races of restarts over more and more rows.  The file
holds the outcome of every step that is done and, within a long one, the state after a
pass.  It is written as a whole under another name and then renamed, so there is always
either the old state or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers, LloydResult, LloydState, Memo
from sketchmeans.rows import Rows
from sketchmeans.whole_file import whole_file

#: Version of the file format, and of the stages of a fit: other stages, another number.
_FORMAT = 3
#: Rows whose values tell one table from another.
_PROBE_ROWS = 256

Arrays = dict[str, Array]


class Checkpoint:
    """A file from which the same fit resumes.

    Parameters
    ----------
    path : str or PathLike
    every : float, default=120
        Seconds between two states that are saved within a stage.  The end of a stage
        is always saved.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "run.ckpt"
    ...     model = NystromKMeans(3, random_state=0)
    ...     first = model.fit(X, checkpoint=file).cost_
    ...     again = model.fit(X, checkpoint=file).cost_  # read, not computed
    >>> first == again
    True
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 120.0) -> None:
        self.path = Path(path)
        self.every = every
        self.is_stopping = False

    def stop(self) -> None:
        """Have the fit end with a KeyboardInterrupt as soon as its state is saved."""
        self.is_stopping = True

    def open(self, identity: Mapping[str, Any]) -> Record:
        """Return what is on disk for a fit of this identity, or an empty record."""
        wanted = {name: str(value) for name, value in identity.items()}
        if not self.path.exists():
            return Record(self, wanted, {})
        arrays = _read(self.path)
        found = json.loads(bytes(arrays.pop("identity")).decode())
        for name in wanted:
            if found.get(name) != wanted[name]:
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of another fit: {name} is "
                    f"{wanted[name]} and was {found.get(name)}. Delete the file or "
                    "give another path."
                )
        return Record(self, wanted, arrays)


def as_checkpoint(checkpoint: Any) -> Checkpoint:
    """Return the checkpoint that a user's argument stands for."""
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, str | os.PathLike):
        return Checkpoint(checkpoint)
    raise ValueError(f"checkpoint={checkpoint!r} should be a path or a Checkpoint.")


class Record:
    """The steps of one fit that are done."""

    def __init__(
        self, checkpoint: Checkpoint, identity: dict[str, str], arrays: Arrays
    ) -> None:
        self._checkpoint = checkpoint
        self._identity = identity
        self._arrays = arrays
        self._races = 0
        self._saved = time.monotonic()

    def remember(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return some arrays, computed once and for all."""
        found = self._part(f"{name}/")
        if not found:
            found = compute()
            self._put(f"{name}/", found)
            self.write()
        return found

    def race(
        self, run: Callable[[Memo], list[LloydResult]], *, labels: bool
    ) -> list[LloydResult]:
        """Return the results of the next race.

        `labels` says whether they are needed: not those of subsamples.
        """
        prefix = f"race{self._races}/"
        self._races += 1
        done = self._part(prefix)
        if done:
            return _unpacked_results(done)
        results = run(_StageMemo(self, f"within/{prefix}"))
        self._drop("within/")
        self._put(prefix, _packed_results(results, labels))
        self.write()
        return results

    def save_within(self, prefix: str, state: Callable[[], LloydState]) -> None:
        """Save the state within a stage, if it is time."""
        waited = time.monotonic() - self._saved >= self._checkpoint.every
        if waited or self._checkpoint.is_stopping:
            self._drop("within/")
            self._put(prefix, _packed_state(state()))
            self.write()

    def within(self, prefix: str) -> LloydState | None:
        """Return the state within a stage, if there is one."""
        found = self._part(prefix)
        return _unpacked_state(found) if found else None

    def write(self) -> None:
        """Put everything on disk, as a whole."""
        identity = np.frombuffer(json.dumps(self._identity).encode(), np.uint8)
        with whole_file(self._checkpoint.path) as file:
            np.savez(file, identity=identity, **self._arrays)  # type: ignore[arg-type]
        self._saved = time.monotonic()
        if self._checkpoint.is_stopping:
            raise KeyboardInterrupt

    def _part(self, prefix: str) -> Arrays:
        return {
            name.removeprefix(prefix): value
            for name, value in self._arrays.items()
            if name.startswith(prefix)
        }

    def _put(self, prefix: str, arrays: Arrays) -> None:
        self._arrays |= {f"{prefix}{name}": value for name, value in arrays.items()}

    def _drop(self, prefix: str) -> None:
        self._arrays = {
            name: value
            for name, value in self._arrays.items()
            if not name.startswith(prefix)
        }


@dataclass(frozen=True)
class _StageMemo:
    """One stage's place in the record."""

    record: Record
    prefix: str

    def resume(self) -> LloydState | None:
        return self.record.within(self.prefix)

    def save(self, state: Callable[[], LloydState]) -> None:
        self.record.save_within(self.prefix, state)


def identity_of(estimator: Any, rows: Rows) -> dict[str, str]:
    """Return what makes a fit this one: its parameters and its rows.

    Threads and memory change no result.
    """
    params = estimator.get_params(deep=False)
    for name in ("n_jobs", "verbose", "max_memory"):
        params.pop(name, None)
    return {
        "format": str(_FORMAT),
        "estimator": type(estimator).__name__,
        **{name: _described(value) for name, value in params.items()},
        "X.shape": str((len(rows), rows.n_features)),
        "the rows' digest": _table_digest(rows),
    }


def _described(value: Any) -> str:
    """Return a text that differs for other values of a parameter."""
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        return f"an array of shape {array.shape} and digest {digest}"
    return repr(value)


def _table_digest(rows: Rows) -> str:
    n = len(rows)
    digest = hashlib.sha256(str(rows.dtype).encode())
    numbers = np.unique(np.linspace(0, n - 1, min(n, _PROBE_ROWS)).astype(np.intp))
    probe = rows.take(numbers)
    dense = probe.toarray() if rows.is_sparse else np.asarray(probe)
    digest.update(np.ascontiguousarray(dense).tobytes())
    if rows.weights is not None:
        digest.update(np.ascontiguousarray(rows.weights).tobytes())
    return digest.hexdigest()[:16]


def _read(path: Path) -> Arrays:
    try:
        with path.open("rb") as file:
            arrays = _unpacked(file)
    except Exception as error:
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be read: {error}. Delete the file or "
            "give another path."
        ) from error
    if "identity" not in arrays:
        raise ValueError(
            f"checkpoint={str(path)!r} is no checkpoint: give the path of one, or of a "
            "file that is not there yet."
        )
    return arrays


def _unpacked(file: IO[bytes]) -> Arrays:
    """Return the arrays of an archive; none of a file that is no archive."""
    if file.read(2) != b"PK":  # NumPy would take it for pickled objects
        return {}
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


# --- results and states as arrays -----------------------------------------------------


def _packed_centers(centers: Centers) -> Arrays:
    return {
        "coefficients": centers.coefficients,
        "squared_norms": centers.squared_norms,
        "means": centers.means,
    }


def _unpacked_centers(arrays: Arrays, prefix: str = "") -> Centers:
    return Centers(
        arrays[f"{prefix}coefficients"],
        arrays[f"{prefix}squared_norms"],
        arrays[f"{prefix}means"],
    )


def _packed_results(results: list[LloydResult], labels: bool) -> Arrays:
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


def _unpacked_results(arrays: Arrays) -> list[LloydResult]:
    results = []
    for i in range(sum(name.endswith("/cost") for name in arrays)):
        prefix = f"{i}/"
        converged, stopped = arrays[f"{prefix}flags"].tolist()
        results.append(
            LloydResult(
                arrays[f"{prefix}labels"],
                _unpacked_centers(arrays, prefix),
                float(arrays[f"{prefix}cost"]),
                arrays[f"{prefix}counts"],
                arrays[f"{prefix}cost_path"].tolist(),
                converged,
                stopped,
            )
        )
    return results


def _packed_state(state: LloydState) -> Arrays:
    return {
        **_packed_results(state.results, labels=True),
        **{f"next/{n}": v for n, v in _packed_centers(state.centers).items()},
        **{f"engine/{name}": value for name, value in state.engine.items()},
        "iteration": np.array(state.iteration),
        "active": state.active,
        "empty_before": state.empty_before,
    }


def _unpacked_state(arrays: Arrays) -> LloydState:
    engine = {
        name.removeprefix("engine/"): value
        for name, value in arrays.items()
        if name.startswith("engine/")
    }
    return LloydState(
        int(arrays["iteration"]),
        _unpacked_results(arrays),
        arrays["active"],
        _unpacked_centers(arrays, "next/"),
        arrays["empty_before"],
        engine,
    )
