"""Files on disk: those that a path stands for, changes of them, and their pieces."""

from __future__ import annotations

import glob
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    from sketchmeans.data.sources.copies import Copy

#: Endings of compressed files, after the one that says what is in them.
PACKINGS = (".gz", ".bz2", ".xz", ".zst")
#: Bytes of text in a piece: enough that a parser's start does not count.
PIECE_BYTES = 2**20
#: Maximum number of bytes of a record: 2 million columns, say, or a quote that is never
#: closed.
_RECORD_BYTES = 16 * 2**20


def find_files(name: str, suffixes: Collection[str]) -> list[str]:
    """Return the files that a path stands for, sorted: one, a folder's or a pattern's.

    A folder stands for all files below it that have one of the suffixes.  Names that
    start with a dot or an underscore are left out: writers use them for themselves
    (_SUCCESS, .crc).
    """
    if os.path.isdir(name):
        files = _files_below(name, suffixes)
        if not files:
            raise FileNotFoundError(
                f"The folder {name} has no file that ends in one of {sorted(suffixes)}."
            )
    elif os.path.exists(name):
        files = [name]
    else:
        files = []
        for found in sorted(set(glob.glob(name, recursive=True))):
            if not os.path.isdir(found):
                files.append(found)
            elif "**" not in name:  # which matches the files of a folder, too
                files += _files_below(found, suffixes)
        if not files:
            raise FileNotFoundError(f"There is no file {name}.")
    seen: dict[str, str] = {}
    for file in files:
        other = seen.setdefault(os.path.realpath(file), file)
        if other != file:
            raise ValueError(
                f"{name} holds the same file twice: {other} and {file}. Its rows would "
                "count double."
            )
    return sorted(files)


def suffix_of(name: str) -> str:
    """Return the end of a file's name, in small letters; that within a compressed file.

    Examples
    --------
    >>> suffix_of("rows.CSV.gz")
    '.csv'
    """
    path = Path(name)
    if path.suffix.lower() in PACKINGS and Path(path.stem).suffix:
        path = Path(path.stem)
    return path.suffix.lower()


def _files_below(folder: str, suffixes: Collection[str]) -> list[str]:
    files = []
    parents = {folder: {os.path.realpath(folder)}}
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in folders:
            path = os.path.join(place, name)
            real = os.path.realpath(path)
            if real in parents[place]:
                raise ValueError(f"The folder {path} is a link to one that it is in.")
            parents[path] = parents[place] | {real}
        wanted = [
            name
            for name in names
            if name[0] not in "._" and suffix_of(name) in suffixes
        ]
        files += [os.path.join(place, name) for name in wanted]
    # Notes on a table are not part of it.
    return [file for file in files if suffix_of(file) != ".txt"] or files


@dataclass(frozen=True)
class FileState:
    """What distinguishes a file from a later one of the same name.

    A fit reads its rows many times, and a mixture of two files has labels of neither.
    Readers call `check` after they have read: what came before a change is right.
    `path` is what users call the file; its bytes are at `place`, which differs if they
    are read from a copy.
    """

    path: str
    device: int
    inode: int
    size: int
    modified: int
    copy: Copy | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, path: str, copy: Copy | None = None) -> FileState:
        """Return the state of a file, or of the copy that is read, as it is now."""
        found = os.stat(path if copy is None else copy.path)
        about = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        return cls(path, *about, copy)

    @property
    def place(self) -> str:
        """Where the bytes are."""
        return self.path if self.copy is None else self.copy.path

    def check(self) -> None:
        """Raise if the file has changed."""
        if self.copy is not None and self.copy.origin is not None:
            self.copy.origin.check()
        try:
            now = FileState.of(self.path, self.copy)
        except OSError as error:
            reason = f"it can no longer be found ({error.strerror})"
        else:
            if now == self:
                return
            if (now.device, now.inode) != (self.device, self.inode):
                reason = "another file has taken its place"
            elif now.size != self.size:
                reason = f"it had {self.size:,} bytes and has {now.size:,}"
            else:
                reason = "it was written to"
        raise ValueError(
            f"{self.path} has changed since it was opened: {reason}. All passes should "
            "read the same rows; start again with a file that stays as it is."
        )

    def error(self, what: str, cause: Exception) -> ValueError:
        """Return an error about the file; if it has changed, raise that instead."""
        self.check()
        return ValueError(f"{self.path} {what}: {cause}")


class DiskFile:
    """A file that several threads read at given places, opened when it is needed."""

    def __init__(self, state: FileState) -> None:
        self.state = state
        self._handle: _Handle | None = None

    def release(self) -> None:
        """Close the file until it is needed again."""
        self._handle = None

    def fill(self, out: Array, offset: int) -> None:
        """Fill a contiguous array with the bytes from a place on.

        The caller checks the state when all that it needs is read.
        """
        handle = self._handle
        if handle is None:
            self._handle = handle = _Handle(self.state)
        flat: Any = out.reshape(-1, order="A").view(np.uint8)
        left = memoryview(flat)
        while left:
            count = handle.read(left, offset)
            if count == 0:
                self.state.check()
                raise ValueError(
                    f"{self.state.path} ends at byte {offset}, {len(left)} bytes too "
                    "early."
                )
            left, offset = left[count:], offset + count


class _Handle:
    """An open file, which is closed with the last reference: no reader loses it."""

    def __init__(self, state: FileState) -> None:
        try:
            flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
            self._number = os.open(state.place, flags)
        except OSError:
            state.check()
            raise
        weakref.finalize(self, os.close, self._number)
        self._lock = threading.Lock()

    def read(self, out: Any, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._number, [out], offset)
        with self._lock:  # pragma: no cover - Windows has no read at a place
            os.lseek(self._number, offset, os.SEEK_SET)
            data = os.read(self._number, len(out))
            out[: len(data)] = data
            return len(data)


@dataclass(frozen=True)
class Piece:
    """Whole records of a file, and the rows that they hold; the first by its number."""

    state: FileState
    offset: int
    size: int
    first: int
    n_rows: int

    def text(self) -> bytes:
        """Return the records."""
        data = np.empty(self.size, np.uint8)
        DiskFile(self.state).fill(data, self.offset)
        self.state.check()
        return data.tobytes()


def split_text(
    state: FileState,
    last_end: Callable[[bytes], int],
    offset: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the text of pieces of whole records, from `offset` to `stop`.

    `last_end` returns where the last whole record of a text ends; 0 if none does.
    """
    with open(state.place, "rb") as file:
        file.seek(offset)
        text = b""
        left = (state.size if stop is None else stop) - offset
        while more := file.read(min(PIECE_BYTES, max(left, 0))):
            text += more
            left -= len(more)
            end = last_end(text)
            if end:
                yield offset, text[:end]
                text, offset = text[end:], offset + end
            elif len(text) > _RECORD_BYTES:
                raise ValueError(
                    f"{state.path} cannot be read as text: what starts at byte "
                    f"{offset:,} has no end within {_RECORD_BYTES:,} bytes. A line is "
                    "too long, or a quote is not closed."
                )
    state.check()
    if text:
        yield offset, text


def last_line_end(text: bytes) -> int:
    """Return where the last whole line ends."""
    return text.rfind(b"\n") + 1
