"""The state of a long fit on disk, from which it resumes.

A fit is a sequence of steps, each of which depends only on the parameters, the rows and
the steps before: landmarks, then Lloyd loops over more and more rows.  The file holds
the result of every finished step and, within a long loop, the state after an iteration.
It is replaced atomically, so that it always holds the old state or the new one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sketchmeans.data.sources.files import FileState
from sketchmeans.engine.identity import find_changed
from sketchmeans.engine.lloyd import LloydState, SavedLoop
from sketchmeans.engine.lloyd_arrays import (
    Arrays,
    LoopShape,
    flatten_results,
    flatten_state,
    select_prefix,
    unflatten_results,
    unflatten_state,
)
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.parameters import warn_user
from sketchmeans.numerics.tensor_file import (
    ForeignFileError,
    parse_json,
    read_tensors,
    write_tensors,
)

_KIND = "sketchmeans-checkpoint"
#: Version of the file format and of the steps of a fit: other steps, another number.
_VERSION = "6"

Value = TypeVar("Value")


class Checkpoint:
    """A file from which the same fit resumes.

    Costs a write of n labels and of the centres, k·m numbers, each time.

    Parameters
    ----------
    path : str or PathLike
    every : float, default=120
        Seconds between saved states within a stage.  The end of each stage is always
        saved.

    Attributes
    ----------
    failure : str or None
        Why the last state could not be written; the fit continues without.

    See Also
    --------
    NystromKMeans.fit : Takes one, as does that of `SpectralKMeans`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import Checkpoint, NystromKMeans
    >>> model = NystromKMeans(2, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     file = Checkpoint(f"{folder}/run.ckpt", every=60)
    ...     _ = [model.fit([[0.0], [1.0], [9.0]], checkpoint=file) for _ in range(2)]
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 120.0) -> None:
        self.path = Path(path)
        self.every = every
        self.is_stopping = False
        self.failure: str | None = None

    def stop(self) -> None:
        """Have the fit raise KeyboardInterrupt as soon as its state is saved."""
        self.is_stopping = True

    def open(
        self, identity: Mapping[str, str], files: Sequence[FileState] = ()
    ) -> SavedFit:
        """Return what is saved of a fit, which may be nothing.

        `files` are those that the rows are read from.  Raises ValueError if the file
        is of another fit, damaged, or not a checkpoint.
        """
        if not self.path.exists():
            return SavedFit(self, identity, files, {})
        found, before, arrays = self._read()
        for name, value in identity.items():
            if found.get(name) != value:
                changed = find_changed(before)
                note = f" ({', '.join(changed)} changed since)" if changed else ""
                raise ValueError(
                    f"checkpoint={str(self.path)!r} is of another fit: {name} is "
                    f"{value} and was {found.get(name)}{note}. Delete the file or give "
                    "another path."
                )
        return SavedFit(self, identity, files, arrays)

    def _read(self) -> tuple[dict[str, str], list[FileState], Arrays]:
        """Return the identity, the files and the arrays of the fit in the file."""
        try:
            file = read_tensors(self.path, _KIND, _check_version)
            about = parse_json(file.text)
            states = [FileState(*state) for state in about["files"]]
            return dict(about["identity"]), states, file.tensors
        except ForeignFileError as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is not a checkpoint: {error}. Give the "
                "path of a checkpoint, or of a file that does not exist yet."
            ) from error
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: Exception) -> ValueError:
        """Return the error for content that makes no sense."""
        reason = str(error).rstrip(".") or type(error).__name__
        return ValueError(
            f"checkpoint={str(self.path)!r} cannot be read: {reason}. Delete the file "
            "or give another path."
        )


def as_checkpoint(checkpoint: object) -> Checkpoint:
    """Return the checkpoint that a user's argument stands for."""
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, str | os.PathLike):
        return Checkpoint(checkpoint)
    raise ValueError(f"checkpoint={checkpoint!r} should be a path or a Checkpoint.")


class SavedFit:
    """The finished steps of one fit, and the state within the stage that runs.

    Finished steps are in memory, and in the file as of the last write.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: Mapping[str, str],
        files: Sequence[FileState],
        arrays: Arrays,
    ) -> None:
        self._checkpoint, self._files, self._arrays = checkpoint, files, arrays
        states = [astuple(state) for state in files]
        self._about = json.dumps({"identity": dict(identity), "files": states})
        self._n_stages = 0
        self._stage: tuple[str, LoopShape]
        self._last_write = time.monotonic()

    def load_or_compute(
        self,
        name: str,
        compute: Callable[[], Arrays],
        read: Callable[[Arrays], Value],
    ) -> Value:
        """Return what `read` makes of some arrays, which are computed only once."""
        found = select_prefix(self._arrays, f"{name}/")
        if not found:
            found = compute()
            self._put(f"{name}/", found)
            self.write()
        return self._parse(read, found)

    def run_stage(
        self,
        run: Callable[[SavedLoop], list[LloydResult]],
        start: Centers,
        n_rows: int,
        *,
        labels: bool,
    ) -> list[LloydResult]:
        shape = LoopShape(n_rows, start.coefficients.shape, labels)
        name = f"stage{self._n_stages}/"
        self._n_stages += 1
        if done := select_prefix(self._arrays, name):
            return self._parse(partial(unflatten_results, shape=shape), done)
        self._stage = f"within/{name}", shape
        results = run(self)
        self._put(name, flatten_results(results, labels))
        self.write()
        return results

    def resume(self) -> LloydState | None:
        """Return the saved state within the stage that runs, if there is one.

        It is not kept here: the loop changes its arrays, which are large.
        """
        prefix, shape = self._stage
        found = select_prefix(self._arrays, prefix)
        self._drop_state()
        read = partial(unflatten_state, shape=shape)
        return self._parse(read, found) if found else None

    def save(self, state: Callable[[], LloydState]) -> None:
        """Save the state within the stage that runs, if it is time."""
        waited = time.monotonic() - self._last_write >= self._checkpoint.every
        if waited or self._checkpoint.is_stopping:
            self._put(self._stage[0], flatten_state(state()))
            try:
                self.write()
            finally:
                self._drop_state()

    def write(self) -> None:
        """Write the file; a failure is a warning, and the fit continues."""
        checkpoint, failure = self._checkpoint, None
        if changed := find_changed(self._files):
            raise ValueError(
                f"Rows have changed while they were read: {', '.join(changed)}."
            )
        try:
            write_tensors(checkpoint.path, _KIND, _VERSION, self._about, self._arrays)
        except (OSError, ValueError) as error:  # ValueError: too many restarts
            failure = getattr(error, "strerror", None) or str(error)
            if checkpoint.failure is None:
                warn_user(
                    f"checkpoint={str(checkpoint.path)!r} could not be written: "
                    f"{failure}. The fit continues, and tries again after the next "
                    "stage.",
                    RuntimeWarning,
                )
        checkpoint.failure = failure
        self._last_write = time.monotonic()
        if checkpoint.is_stopping:
            raise KeyboardInterrupt

    def warn_if_unsaved(self) -> None:
        """Warn at the end of a fit whose last states are not on disk."""
        path, failure = self._checkpoint.path, self._checkpoint.failure
        if failure is not None:
            state = "holds an earlier state" if path.exists() else "does not exist"
            warn_user(
                f"The fit is done, but checkpoint={str(path)!r} {state}: {failure}.",
                RuntimeWarning,
            )

    def _parse(self, read: Callable[[Arrays], Value], arrays: Arrays) -> Value:
        try:
            return read(arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise self._checkpoint.unreadable(error) from error

    def _put(self, prefix: str, arrays: Arrays) -> None:
        self._arrays |= {f"{prefix}{name}": value for name, value in arrays.items()}

    def _drop_state(self) -> None:
        for name in [name for name in self._arrays if name.startswith("within/")]:
            del self._arrays[name]


def _check_version(version: Any) -> None:
    if version != _VERSION:
        raise ValueError(
            f"it is in format {version!r:.20} of another sketchmeans, and this one "
            f"reads {_VERSION!r}"
        )
