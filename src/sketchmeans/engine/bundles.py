"""Blocks of which only a few rows are worked on: several of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sketchmeans.numerics.linalg import Array


@dataclass(frozen=True)
class Bundle:
    """Consecutive blocks, and which of some ascending row numbers are theirs.

    Attributes
    ----------
    first : int
        Number of the first block.
    edges : tuple of int
        Where the row numbers of each block begin, and where those of the last end.
    """

    first: int
    edges: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.edges) - 1

    @property
    def span(self) -> slice:
        """The place of the row numbers of all blocks."""
        return slice(self.edges[0], self.edges[-1])

    def parts(self) -> Iterator[tuple[int, slice, slice]]:
        """Yield the blocks that have any rows: number, place, and place in the span."""
        begin = self.edges[0]
        for number, (start, stop) in enumerate(pairwise(self.edges), self.first):
            if start < stop:
                yield number, slice(start, stop), slice(start - begin, stop - begin)


def bundled(
    numbers: Array, n_blocks: int, height: int, most_blocks: int
) -> Iterator[Bundle]:
    """Yield all blocks in bundles of few rows: half as many as a block has, at most.

    A block that has more is by itself.

    Examples
    --------
    >>> import numpy as np
    >>> list(bundled(np.array([1, 2, 9, 13]), 4, height=4, most_blocks=2))
    [Bundle(first=0, edges=(0, 2, 2)), Bundle(first=2, edges=(2, 3, 4))]
    """
    edges = np.searchsorted(numbers, np.arange(n_blocks + 1) * height).tolist()
    first = 0
    for last in range(1, n_blocks + 1):
        is_full = last - first == most_blocks or last == n_blocks
        if is_full or edges[last + 1] - edges[first] > height // 2:
            yield Bundle(first, tuple(edges[first : last + 1]))
            first = last
