"""Where passes run: the threads of this process, or wherever rows come from."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows
from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.space import Space
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.numerics.linalg import Array


class Backend(Protocol):
    """Runs reductions over rows; what they leave with the rows stays there."""

    rows: Rows
    space: Space

    def run(self, reduction: Reduction, *values: Any) -> tuple[Any, Any]:
        """Return what a pass leaves with the rows, and its result.

        `values` are what earlier passes left, or labels.
        """
        ...

    def map_rows(self, reduction: Reduction, width: tuple[int, ...], dtype: Any) -> Any:
        """Return a value of this width for every row, in the form that users get."""
        ...

    def labels(self, state: Any, n_restarts: int) -> Any:
        """Return the labels (n, R) that a pass has left with the rows."""
        ...

    def place(self, labels: Array) -> Any:
        """Return labels (n, R) that are given here, brought to the rows."""
        ...

    def prefetch(self, other_rows: int = 0) -> AbstractContextManager[None]:
        """Compute kernel blocks while other work needs the memory of `other_rows`."""
        ...


class LocalBackend:
    """Passes in the threads of this process."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks
        self.rows, self.space = blocks.rows, blocks.space
        self.prefetch = blocks.prefetch

    def run(self, reduction: Reduction, *values: Any) -> tuple[Any, Any]:
        found, summary = reduction.chunk(self.blocks, *values)
        return found, None if summary is None else reduction.finalize(summary)

    def map_rows(
        self, reduction: Reduction, width: tuple[int, ...], dtype: Any
    ) -> Array:
        found: Array = self.run(reduction)[0]
        return found

    def labels(self, state: RowState, n_restarts: int) -> Array:
        return state.labels

    def place(self, labels: Array) -> Array:
        return labels


def new_backend(rows: Rows, space: Space, budget: int = 0) -> Backend:
    """Return where passes over these rows run.

    Kernel blocks are kept there if they fit into `budget` bytes.
    """
    adapter = find_adapter(rows)
    if adapter is None:
        return LocalBackend(KernelBlocks(rows, space, budget))
    backend: Backend = adapter.as_backend(rows, space, budget)
    return backend
