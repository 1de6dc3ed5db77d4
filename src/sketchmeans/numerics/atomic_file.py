"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

#: What follows the name of a file while it is written: eight digits and a suffix.
_DIGITS, _SUFFIX = 8, ".part"
#: Longest name where the system does not say.
_MOST_NAME = 255
#: Bytes that should be free for a file whose size nobody knows yet.
_LEAST_FREE = 2**20


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes its name when the block ends without an error.

    It is written under another name in the same folder, flushed to the disk and
    renamed, so whoever looks finds the old file or the new one.  After an error the
    old one is left, and nothing else.  What a process that was killed has left of the
    same file is removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers"
    ...     with whole_file(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_bytes()
    b'1 2 3'
    """
    target = Path(os.path.realpath(path))  # a link stays one
    with _naming(path):
        part, file = _open_part(target)
    try:
        with _naming(path):
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if target.exists():  # who may read it is the user's choice
                    part.chmod(stat.S_IMODE(target.stat().st_mode))
                # While it is locked, such that nobody takes it for a stale one.
                if fcntl is not None:
                    part.replace(target)
            if fcntl is None:  # pragma: no cover - Windows renames closed files only
                part.replace(target)
            _flush_folder(target.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def check_can_write(path: str | os.PathLike[str], size: int = 0) -> None:
    """Raise OSError where `whole_file` would fail, before hours of work are lost.

    A file of the temporary name is made and removed, which tests the folder, the
    permissions and the lengths of both names.

    Parameters
    ----------
    path : str or PathLike
    size : int
        Bytes that the file will have, if that is known.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", name)
    target = Path(os.path.realpath(name))
    with _naming(path):
        part, file = _open_part(target)
        with file:
            part.unlink(missing_ok=True)
        disk = shutil.disk_usage(target.parent)
    # Some file systems say that they have no room at all.
    if disk.total and disk.free < size + _LEAST_FREE:
        raise OSError(
            errno.ENOSPC,
            f"{disk.free:,} bytes are free, and {size + _LEAST_FREE:,} are needed",
            name,
        )


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
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
    """Return a new file beside the target, locked, after stale ones are removed."""
    prefix = _part_prefix(target)
    _remove_stale(target.parent, prefix)
    while True:
        # Random, as two threads may write the same file; and opened by name, not by
        # `tempfile`, which would hide it from other users.
        part = target.with_name(f"{prefix}{secrets.token_hex(_DIGITS // 2)}{_SUFFIX}")
        file = part.open("xb")
        _lock(file.fileno(), wait=True)
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return part, file
        # Somebody removed it before it was locked.
        file.close()  # pragma: no cover - a race


def _part_prefix(target: Path) -> str:
    """Return how the temporary name starts: with that of the target, if it fits."""
    try:
        most = os.pathconf(target.parent, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):
        most = _MOST_NAME
    prefix = f".{target.name}."
    if len(os.fsencode(prefix)) + _DIGITS + len(_SUFFIX) <= most:
        return prefix
    return f".{hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}."


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove what processes that were killed have left of a file.

    Whoever writes a file holds a lock on it, which the system takes back when the
    process ends, however it ends.
    """
    if fcntl is None:  # pragma: no cover - Windows
        return
    pattern = re.compile(
        rf"{re.escape(prefix)}[0-9a-f]{{{_DIGITS}}}{re.escape(_SUFFIX)}"
    )
    try:
        with os.scandir(folder) as entries:
            found = [
                entry.path
                for entry in entries
                if pattern.fullmatch(entry.name)
                and entry.is_file(follow_symlinks=False)
            ]
    except PermissionError:  # a folder that can be written to, but not listed
        return
    for stale in found:
        try:
            handle = os.open(stale, os.O_RDONLY)
        except OSError:  # gone, or of another user
            continue
        try:
            if _lock(handle, wait=False):
                os.unlink(stale)
        except OSError:  # somebody else was faster, or may
            continue
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file for as long as it is open, and say whether that was possible."""
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
