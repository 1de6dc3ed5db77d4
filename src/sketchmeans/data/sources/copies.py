"""Temporary copies: of files that cannot be read as they are, and of streams."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import IO
from weakref import WeakValueDictionary

from sketchmeans.data.sources.files import FileState
from sketchmeans.numerics.memory import format_bytes

_PREFIX = "sketchmeans-"
#: Bytes that are written between two looks at the disk, and that stay free there.
_LOOK_BYTES, _FREE_BYTES = 2**24, 2**28

_copies: WeakValueDictionary[Hashable, Copy] = WeakValueDictionary()


class Copy:
    """A file that is gone with the last reference to this object.

    On systems with ``/proc`` it is also gone when the process is killed: the file has
    no name, and `path` is a link to what the process has open.

    Parameters
    ----------
    name : str
        Last part of the path.
    parts : iterable of bytes
        The content.
    what : str
        What errors call it.
    origin : FileState, optional
        The file that this is a copy of: it should not change, either.
    """

    def __init__(
        self,
        name: str,
        parts: Iterable[bytes],
        what: str,
        origin: FileState | None = None,
    ) -> None:
        folder = tempfile.gettempdir()
        _remove_stale(folder)
        own = tempfile.mkdtemp(prefix=_PREFIX, dir=folder)
        self.path, self.origin, self.size = os.path.join(own, name), origin, 0
        try:
            file = _open_nameless(self.path)
        except OSError:
            shutil.rmtree(own, ignore_errors=True)
            raise
        weakref.finalize(self, _remove, file, own)
        looked = 0
        for part in parts:
            if self.size + len(part) - looked >= _LOOK_BYTES or not looked:
                _check_disk(own, what, self.size + len(part))
                looked = self.size + len(part)
            file.write(part)
            self.size += len(part)
        file.flush()

    def state(self, path: str) -> FileState:
        """Return the state of the copy, which errors call by this path."""
        return FileState.of(path, self)


def copy_once(
    key: Hashable,
    state: FileState,
    name: str,
    parts: Iterable[bytes],
) -> FileState:
    """Return the state of a copy that is made of a file; the same for the same key.

    `parts` are ignored if there is a copy that is still in use.
    """
    origin = state if state.copy is None else state.copy.origin
    copied = copy_by_key((state, key), state.path, name, parts, origin)
    copied.check()
    return copied


def copy_by_key(
    key: Hashable,
    path: str,
    name: str,
    parts: Iterable[bytes],
    origin: FileState | None = None,
) -> FileState:
    """Return the state of a copy that errors call by this path; see `copy_once`."""
    copy = _copies.get(key)
    if copy is None:
        _copies[key] = copy = Copy(name, parts, path, origin)
    return copy.state(path)


def _check_disk(folder: str, what: str, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < _FREE_BYTES:
        raise OSError(
            f"{what} is copied to the temporary folder {os.path.dirname(folder)}, "
            f"where only {format_bytes(free)} are left after {format_bytes(size)}. Set "
            "TMPDIR to a folder with more space."
        )


def _open_nameless(path: str) -> IO[bytes]:
    """Open a file for writing that can be read by this path."""
    folder = os.path.dirname(path)
    nameless = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    with suppress(OSError):  # there is no /proc, or there are no links
        os.symlink(f"/proc/{os.getpid()}/fd/{nameless.fileno()}", path)
        if os.path.samestat(os.stat(path), os.fstat(nameless.fileno())):
            return nameless
    nameless.close()
    with suppress(FileNotFoundError):
        os.unlink(path)
    return open(path, "wb")


def _remove(file: IO[bytes], folder: str) -> None:
    with suppress(OSError):  # the disk may be full
        file.close()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(folder: str) -> None:
    """Remove the folders of killed processes: they hold a dead link alone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _holds_dead_link(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)


def _holds_dead_link(folder: str) -> bool:
    try:
        paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:  # it is a file, or somebody else's
        return False
    return len(paths) == 1 and os.path.islink(paths[0]) and not os.path.exists(paths[0])
