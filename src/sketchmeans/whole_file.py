"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes its name when the block ends without an error.

    It is written under another name in the same folder, flushed to the disk and
    renamed, so whoever looks finds the old file or the new one.  After an error the
    old one is left, and nothing else.

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
    path = Path(os.path.realpath(path))  # a link stays one
    # Random, as two threads may write the same file; and opened by name, not by
    # `tempfile`, which would hide it from other users.
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():  # who may read it is the user's choice
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Put the new name on the disk, too, where folders can be opened."""
    if os.name != "posix":
        return  # pragma: no cover - Windows
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
