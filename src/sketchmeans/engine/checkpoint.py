"""What a long fit has done so far, on disk: it resumes where it was.

A fit is a sequence of steps that depend on nothing but its parameters, the rows and the
steps before: landmarks, then races of restarts over more and more rows.  The file
holds the outcome of every step that is done and, within a long one, the state after a
pass.  It is written as a whole under another name and then renamed, so there is always
either the old state or the new one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from sketchmeans.engine.identity import Stamp, changed_files
from sketchmeans.engine.lloyd import LloydState, Memo
from sketchmeans.engine.lloyd_arrays import (
    Arrays,
    Expected,
    packed_results,
    packed_state,
    unpacked_results,
    unpacked_state,
)
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.array_file import read_arrays, write_arrays
from sketchmeans.numerics.atomic_file import check_can_write
from sketchmeans.numerics.parameters import warn_user

#: Version of the file format, and of the stages of a fit: other stages, another number.
_FORMAT = "5"

Found = TypeVar("Found")


class Checkpoint:
    """A file from which the same fit resumes.

    Parameters
    ----------
    path : str or PathLike
    every : float, default=120
        Seconds between two states that are saved within a stage.  The end of a stage
        is always saved.

    Attributes
    ----------
    failure : str or None
        Why the last state could not be written; the fit goes on without.

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
        self.failure: str | None = None

    def stop(self) -> None:
        """Have the fit end with a KeyboardInterrupt as soon as its state is saved."""
        self.is_stopping = True

    def check(self) -> None:
        """Raise where the file could not be written, before the rows are read."""
        check_can_write(self.path)

    def open(
        self, identity: Mapping[str, str], files: Mapping[str, Stamp] | None = None
    ) -> Record:
        """Return what is on disk for a fit of this identity, or an empty record.

        `files` are those that the rows are read from.
        """
        wanted = {"format": _FORMAT, **identity}
        stamps = dict(files or {})
        if not self.path.exists():
            return Record(self, wanted, {}, stamps)
        found, before, arrays = _read(self.path)
        for name in wanted:
            if found.get(name) != wanted[name]:
                changes = changed_files(before)
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of another fit: {name} is "
                    f"{wanted[name]} and was {found.get(name)}"
                    f"{f' ({changes})' if changes else ''}. Delete the file or give "
                    "another path."
                )
        return Record(self, wanted, arrays, stamps)


def as_checkpoint(checkpoint: object) -> Checkpoint:
    """Return the checkpoint that a user's argument stands for."""
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, str | os.PathLike):
        return Checkpoint(checkpoint)
    raise ValueError(f"checkpoint={checkpoint!r} should be a path or a Checkpoint.")


class Record:
    """The steps of one fit that are done."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: dict[str, str],
        arrays: Arrays,
        files: dict[str, Stamp],
    ) -> None:
        self._checkpoint = checkpoint
        self._identity = identity
        self._arrays = arrays
        self._files = files
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
        self,
        run: Callable[[Memo], list[LloydResult]],
        start: Centers,
        n_rows: int,
        *,
        labels: bool,
    ) -> list[LloydResult]:
        """Return the results of the next race.

        `start` and `n_rows` say what it runs on, `labels` whether these are needed: not
        those of subsamples.
        """
        expected = Expected(n_rows, start.coefficients.shape, labels)
        prefix = f"race{self._races}/"
        self._races += 1
        done = self._part(prefix)
        if done:
            return self.unpacked(partial(unpacked_results, expected=expected), done)
        results = run(_StageMemo(self, f"within/{prefix}", expected))
        self._drop("within/")
        self._put(prefix, packed_results(results, labels))
        self.write()
        return results

    def save_within(self, prefix: str, state: Callable[[], LloydState]) -> None:
        """Save the state within a stage, if it is time."""
        waited = time.monotonic() - self._saved >= self._checkpoint.every
        if waited or self._checkpoint.is_stopping:
            self._drop("within/")
            self._put(prefix, packed_state(state()))
            self.write()

    def within(self, prefix: str, expected: Expected) -> LloydState | None:
        """Return the state within a stage, if there is one."""
        found = self._part(prefix)
        unpack = partial(unpacked_state, expected=expected)
        return self.unpacked(unpack, found) if found else None

    def unpacked(self, unpack: Callable[[Arrays], Found], arrays: Arrays) -> Found:
        """Return what arrays of the file stand for; ValueError if they make no sense.

        The error names the file.
        """
        try:
            return unpack(arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise _unreadable(self._checkpoint.path, error) from error

    def write(self) -> None:
        """Put everything on disk, as a whole; a failure is reported, and no error."""
        path = self._checkpoint.path
        if changes := changed_files(self._files):
            raise ValueError(f"Rows have changed while they were read: {changes}.")
        about = {"identity": self._identity, "files": self._files}
        try:
            write_arrays(path, about, self._arrays)
        except OSError as error:
            reason = error.strerror or str(error)
            if self._checkpoint.failure is None:
                warn_user(
                    f"checkpoint={str(path)!r} could not be written: {reason}. The fit "
                    "goes on, and tries again after the next stage.",
                    RuntimeWarning,
                )
            self._checkpoint.failure = reason
        else:
            self._checkpoint.failure = None
        self._saved = time.monotonic()
        if self._checkpoint.is_stopping:
            raise KeyboardInterrupt

    def finish(self) -> None:
        """Say once more if the last states are not on disk."""
        if self._checkpoint.failure is not None:
            path = self._checkpoint.path
            state = "holds an earlier state" if path.exists() else "is not there"
            warn_user(
                f"The fit is done, but checkpoint={str(path)!r} {state}: "
                f"{self._checkpoint.failure}.",
                RuntimeWarning,
            )

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
    expected: Expected

    def resume(self) -> LloydState | None:
        return self.record.within(self.prefix, self.expected)

    def save(self, state: Callable[[], LloydState]) -> None:
        self.record.save_within(self.prefix, state)


def _unreadable(path: Path, error: Exception) -> ValueError:
    reason = str(error).rstrip(".") or type(error).__name__
    return ValueError(
        f"checkpoint={str(path)!r} cannot be read: {reason}. Delete the file or give "
        "another path."
    )


def _read(path: Path) -> tuple[dict[str, str], dict[str, Stamp], Arrays]:
    """Return the identity, the files and the arrays of a checkpoint."""
    try:
        about, arrays = read_arrays(path)
    except ValueError as error:
        raise _unreadable(path, error) from error
    identity, files = about.get("identity"), about.get("files")
    if not isinstance(identity, dict) or not isinstance(files, dict):
        raise ValueError(
            f"checkpoint={str(path)!r} is no checkpoint: give the path of one, or of a "
            "file that is not there yet."
        )
    return identity, files, arrays
