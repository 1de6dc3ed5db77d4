"""Standard input as a file that can be read many times."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

_PREFIX, _NAME = "sketchmeans-", "standard-input.csv"


@contextmanager
def copied(stream: IO[bytes]) -> Iterator[str]:
    """Yield the path of a file that holds what a stream brings.

    The copy is gone when the block ends, and where the system has ``/proc`` also when
    the process is killed: the file has no name of its own there, only a link to what
    the process has open.
    """
    _remove_stale(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        path = os.path.join(folder, _NAME)
        with _open_copy(path) as file:
            try:
                shutil.copyfileobj(stream, file)
                file.flush()
            except OSError as error:
                error.filename = error.filename or path
                raise
            yield path


def _open_copy(path: str) -> IO[bytes]:
    """Open a file to write that is read by this path."""
    folder = os.path.dirname(path)
    nameless = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    try:
        os.symlink(f"/proc/{os.getpid()}/fd/{nameless.fileno()}", path)
        if os.path.samestat(os.stat(path), os.fstat(nameless.fileno())):
            return nameless
    except OSError:  # there is no /proc, or there are no links
        pass
    nameless.close()
    with suppress(FileNotFoundError):
        os.unlink(path)
    return open(path, "wb")


def _remove_stale(folder: str) -> None:
    """Remove the folders of processes that were killed: they hold a dead link."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            link = os.path.join(entry.path, _NAME)
            if (
                entry.name.startswith(_PREFIX)
                and os.path.islink(link)
                and not os.path.exists(link)
            ):
                shutil.rmtree(entry.path, ignore_errors=True)
