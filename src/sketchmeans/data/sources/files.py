"""Bytes of a file at a given place, and whether it is still the same file."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.numerics.linalg import Array


@dataclass(frozen=True)
class FileState:
    """What tells a file from a later one of the same name.

    A fit reads its rows many times, and rows of two files mixed give labels of neither.
    Readers call `check` after they have read: what came before a change is right.
    """

    path: str
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: str) -> FileState:
        """Return the state of a file as it is now."""
        found = os.stat(path)
        return cls(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise where the file is not what it was."""
        try:
            now = FileState.of(self.path)
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


class OpenFile:
    """A file that is read at given places, by several threads at once.

    It is closed with the last reference, so that a thread in the middle of a read
    keeps it open.
    """

    def __init__(self, state: FileState) -> None:
        self.state = state
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        try:
            self._number = os.open(state.path, flags)
        except OSError:
            state.check()
            raise
        weakref.finalize(self, os.close, self._number)
        self._lock = threading.Lock()

    def fill(self, out: Array, offset: int) -> None:
        """Read from a place on until a contiguous array is full.

        The caller checks the state when all that it needs is read.
        """
        flat: Any = out.reshape(-1, order="A").view(np.uint8)
        left = memoryview(flat)
        while left:
            count = self._read(left, offset)
            if count == 0:
                self.state.check()
                raise ValueError(
                    f"{self.state.path} ends at byte {offset}, {len(left)} bytes too "
                    "early."
                )
            left, offset = left[count:], offset + count

    def _read(self, out: Any, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._number, [out], offset)
        with self._lock:  # pragma: no cover - Windows has no read at a place
            os.lseek(self._number, offset, os.SEEK_SET)
            data = os.read(self._number, len(out))
            out[: len(data)] = data
            return len(data)
