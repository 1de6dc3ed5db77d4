"""Sums whose bits do not depend on who added up which part of them."""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array


class TreeSum:
    """The sum of numbered terms, along the binary tree over their numbers.

    Terms 2i and 2i + 1 are added first, then these pairs in pairs, and so on.  Parts of
    the sum may be formed in any order, on any machine, and merged: the additions are
    always the same.  At most log₂(terms) partial sums are kept for terms that come in
    order.

    Examples
    --------
    >>> import numpy as np
    >>> left, right = TreeSum(), TreeSum()
    >>> for number in range(3):
    ...     left.add(number, np.array([1.0]))
    >>> right.add(3, np.array([4.0]))
    >>> right.merge(left)
    >>> right.total()
    array([7.])
    """

    def __init__(self) -> None:
        #: Sums of whole subtrees: (level, number of the subtree) → sum.
        self._nodes: dict[tuple[int, int], Array] = {}

    def add(self, number: int, term: Array, first: int | None = None) -> None:
        """Add the term of this number; each is added once, and may be overwritten.

        If `first` is given, terms come in order from there, and numbers that were left
        out before this one count as zero: nothing waits for them.
        """
        self._insert(0, number, term, is_ours=True)
        if first is not None:
            self._close(first, number + 1)

    def _close(self, first: int, stop: int) -> None:
        """Let no partial sum wait for a partner among numbers from `first` to `stop`.

        Low levels first: what is there of the partner is then complete.
        """
        waiting = True
        while waiting:
            waiting = False
            for level, number in sorted(self._nodes):
                start = (number ^ 1) << level
                if first <= start and start + (1 << level) <= stop:
                    term = self._nodes.pop((level, number))
                    self._insert(level + 1, number >> 1, term)
                    waiting = True
                    break

    def merge(self, other: TreeSum) -> None:
        """Add the terms of another sum, which stays as it is."""
        for (level, number), term in other._nodes.items():
            self._insert(level, number, term)

    def _insert(
        self, level: int, number: int, term: Array, *, is_ours: bool = False
    ) -> None:
        while (partner := self._nodes.pop((level, number ^ 1), None)) is not None:
            if is_ours and isinstance(term, np.ndarray):
                # Fresh pages cost more than the sum.
                np.add(partner, term, out=term)
            else:
                term, is_ours = partner + term, True
            level, number = level + 1, number >> 1
        self._nodes[level, number] = term

    def total(self) -> Array:
        """Return the sum of all terms; numbers that were left out count as zero."""
        rest = TreeSum()
        rest._nodes = dict(self._nodes)
        while len(rest._nodes) > 1:
            level, number = lowest = min(rest._nodes)
            rest._insert(level + 1, number >> 1, rest._nodes.pop(lowest))
        (total,) = rest._nodes.values()
        return total


def merge_sums(parts: list[TreeSum]) -> TreeSum:
    """Return sums over several places."""
    total = TreeSum()
    for part in parts:
        total.merge(part)
    return total
