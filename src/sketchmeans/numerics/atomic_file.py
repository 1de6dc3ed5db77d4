"""Files that appear completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

#: What follows the name of a file while it is written: eight digits and a suffix.
_DIGITS, _SUFFIX = 8, ".part"
#: Longest name where the system does not say.
_MAX_NAME = 255
#: Bytes that should be free for a file whose size is not known yet.
_MIN_FREE = 2**20


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes its name when the block ends without an error.

    It is written under another name in the same folder, flushed to the disk and
    renamed, so that readers find either the old file or the new one.  After an error
    only the old one is left.  Parts of the same file that a killed process has left
    are removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers"
    ...     with open_atomic(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_bytes()
    b'1 2 3'
    """
    target = Path(os.path.realpath(path))  # a link stays one
    with _name_in_errors(path):
        part, file = _open_part(target)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if target.exists():  # who may read it is the user's choice
                    part.chmod(stat.S_IMODE(target.stat().st_mode))
                # While it is locked, so that no other process takes it for a stale one.
                if fcntl is not None:
                    part.replace(target)
            if fcntl is None:  # pragma: no cover - Windows renames closed files only
                part.replace(target)
            _flush_folder(target.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def check_can_write(path: str | os.PathLike[str], size: int = 0) -> None:
    """Raise OSError where `open_atomic` would fail, before the long work starts.

    A temporary file is made and removed, which tests the folder, the permissions and
    the length of the name.

    Parameters
    ----------
    path : str or PathLike
    size : int
        Bytes that the file will have, if known.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", name)
    target = Path(os.path.realpath(name))
    with _name_in_errors(path):
        part, file = _open_part(target)
        with file:
            part.unlink(missing_ok=True)
        disk = shutil.disk_usage(target.parent)
    # Some file systems report a size of zero.
    if disk.total and disk.free < size + _MIN_FREE:
        raise OSError(
            errno.ENOSPC,
            f"{disk.free:,} bytes are free, and {size + _MIN_FREE:,} are needed",
            name,
        )


@contextmanager
def _name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Have errors of the system name the file that the user named."""
    folder = os.path.dirname(os.path.realpath(path))
    try:
        yield
    except OSError as error:
        named = error.filename
        ours = named is None or os.fspath(named).startswith(folder)
        if error.errno is None or not ours:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _open_part(target: Path) -> tuple[Path, IO[bytes]]:
    """Return a new, locked file next to the target, after stale ones are removed."""
    prefix = _part_prefix(target)
    _remove_stale(target.parent, prefix)
    while True:
        # Random, as two threads may write the same file; not by `tempfile`, whose
        # files other users cannot read.
        part = target.with_name(f"{prefix}{secrets.token_hex(_DIGITS // 2)}{_SUFFIX}")
        file = part.open("xb")
        _lock(file.fileno(), wait=True)
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return part, file
        # Another process removed it before it was locked.
        file.close()  # pragma: no cover - a race


def _part_prefix(target: Path) -> str:
    """Return how the temporary name starts: with that of the target, if it fits."""
    try:
        longest = os.pathconf(target.parent, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):
        longest = _MAX_NAME
    prefix = f".{target.name}."
    if len(os.fsencode(prefix)) + _DIGITS + len(_SUFFIX) <= longest:
        return prefix
    return f".{hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}."


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove parts of a file that killed processes have left.

    A writer locks its part, and the system releases the lock when the process ends,
    however it ends.
    """
    if fcntl is None:  # pragma: no cover - Windows
        return
    # Nothing is found in a folder that can be written to, but not listed.
    for stale in folder.glob(f"{escape(prefix)}{'[0-9a-f]' * _DIGITS}{_SUFFIX}"):
        with suppress(OSError):  # it is gone, no file, or belongs to another user
            handle = os.open(stale, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if _lock(handle, wait=False):
                    os.unlink(stale)
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file for as long as it is open; return whether that was possible."""
    if fcntl is None:  # pragma: no cover - Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True


def _flush_folder(folder: Path) -> None:
    """Put the new name on the disk, too, where folders can be opened."""
    if os.name != "posix":
        return  # pragma: no cover - Windows
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
