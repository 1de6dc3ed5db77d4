"""Sparse rows as text: the format of SVMlight and LIBSVM."""

from __future__ import annotations

from copy import copy
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from sketchmeans.data.sources.base import (
    BatchedSource,
    Block,
    LoadedBatches,
    ReadOptions,
    Source,
)
from sketchmeans.data.sources.files import (
    PIECE_BYTES,
    FileState,
    Piece,
    last_line_end,
    split_text,
)
from sketchmeans.numerics.linalg import Array

#: Bytes in memory for a byte of text, at most: "1:2 " is four bytes, an entry twelve.
_EXPANSION = 4


class SvmlightSource(BatchedSource):
    """Rows of one or several files, which share the numbering of their features.

    Features are counted from 1, as the format says, unless a feature 0 occurs in one of
    the files, or the user says so.  One pass over the files finds how many rows and
    features there are.
    """

    is_sparse = True
    #: The lines of a piece and what the parser makes of them.
    thread_memory = (1 + 2 * _EXPANSION) * PIECE_BYTES

    def __init__(
        self, path: str, states: list[FileState], options: ReadOptions
    ) -> None:
        dtype, zero_based = options.dtype, options.zero_based
        self.path, self.dtype = path, np.dtype(np.float64 if dtype is None else dtype)
        self._pieces: list[Piece] = []
        lowest, highest, self._largest = 1, 0, 0
        for state in states:
            row = 0
            for offset, text in split_text(state, last_line_end):
                X = _parse(text, self.dtype, state.path, row)[0]
                if X.shape[0]:  # not only comments
                    piece = Piece(state, offset, len(text), row, X.shape[0])
                    self._pieces.append(piece)
                row += X.shape[0]
                self.nnz += X.nnz
                lowest = min(lowest, int(X.indices.min(initial=lowest)))
                highest = max(highest, int(X.indices.max(initial=highest)))
                size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
                self._largest = max(self._largest, size)
        self._edges = np.cumsum([0, *(piece.n_rows for piece in self._pieces)])
        self._lowest, self._highest = lowest, highest
        self._is_said = zero_based is not None
        if zero_based is False and lowest == 0:
            raise ValueError(
                f"{path} has a feature 0, and zero_based=False says that features are "
                "counted from 1."
            )
        self._number(lowest == 0 if zero_based is None else zero_based)

    def _number(self, zero_based: bool, n_features: int = 0) -> None:
        """Count features from 0 or 1; there may be more than these files have."""
        self.zero_based = zero_based
        n_features = max(n_features, self._highest + zero_based)
        self.shape = (int(self._edges[-1]), n_features)
        pieces, dtype, base = self._pieces, self.dtype, int(not zero_based)

        def load(number: int) -> Block:
            X = _parse_piece(pieces[number], dtype)[0]
            parts = (X.data, X.indices - base, X.indptr)
            return sparse.csr_array(parts, shape=(X.shape[0], n_features))

        self._use(LoadedBatches(self._edges, self._largest, load))

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        if zero_based is None or self._is_said:
            zero_based = bool(self.zero_based)
        elif not zero_based and self._lowest == 0:
            raise ValueError(
                f"{self.path} has a feature 0, and those of the fit were counted from "
                "1: say zero_based=True or zero_based=False where the files of both "
                "are opened."
            )
        other = copy(self)
        other._number(zero_based, n_features)
        return other

    def labels(self) -> Array:
        """Return the labels, which stand first on a line."""
        return np.concatenate(
            [_parse_piece(piece, self.dtype)[1] for piece in self._pieces]
        )

    def locate(self, row: int) -> tuple[str, int]:
        number = self._find_part(row)
        piece = self._pieces[number]
        return piece.state.path, piece.first + row - int(self._edges[number])


def _parse_piece(piece: Piece, dtype: npt.DTypeLike) -> tuple[Any, Array]:
    return _parse(piece.text(), dtype, piece.state.path, piece.first)


def _parse(
    text: bytes, dtype: npt.DTypeLike, path: str, first: int
) -> tuple[Any, Array]:
    """Return a CSR matrix, with features as the text numbers them, and the labels."""

    def parse(lines: bytes) -> tuple[Any, Array]:
        X, y = load_svmlight_file(BytesIO(lines), dtype=dtype, zero_based=True)
        return X, y

    try:
        return parse(text)
    except (ValueError, OverflowError) as error:
        row, reason = first, error
    for line in text.splitlines():
        try:
            row += parse(line)[0].shape[0]
        except (ValueError, OverflowError) as error:
            reason = error
            break
    raise ValueError(
        f"{path} cannot be read at row {row}: {reason}. A line should be 'label "
        "number:value number:value ...'."
    )
