"""Text files of one row a line, in pieces that can be read by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchmeans.sources.files import FileState, OpenFile

#: Bytes of text in a piece: enough that a parser's start does not count.
PIECE_BYTES = 2**20


@dataclass(frozen=True)
class Piece:
    """Whole lines of a file, and the rows that they hold; the first by its number."""

    path: str
    offset: int
    size: int
    first: int
    n_rows: int

    def text(self) -> bytes:
        """Return the lines."""
        data = np.empty(self.size, np.uint8)
        OpenFile(FileState.of(self.path)).fill(data, self.offset)
        return data.tobytes()


def lines_in_pieces(path: str, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the text of pieces that end with a line."""
    with open(path, "rb") as file:
        file.seek(offset)
        while text := file.read(PIECE_BYTES):
            text += file.readline()
            yield offset, text
            offset += len(text)
