"""Progress of what is no fit: rows that are read, methods, steps of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

from sketchmeans.cli.bars import Bars, StageCallback, display
from sketchmeans.cli.screen import Screen
from sketchmeans.data.preparation import Column, Table
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.base import Block
from sketchmeans.data.sources.derived import WrappedSource
from sketchmeans.numerics.linalg import Array


class Stage:
    """A piece of work with a bar of its own."""

    def __init__(self, shown: StageCallback | None, key: int) -> None:
        self._shown, self._key = shown, key

    def expect(self, n_parts: int) -> None:
        """Note how many parts it has."""
        if self._shown is not None:
            self._shown.expect(self._key, n_parts)

    def advance(self, n_parts: int = 1) -> None:
        """Note that some parts are done."""
        if self._shown is not None:
            self._shown.part(self._key, count=n_parts)


class Stages:
    """The stages of a command: bars, lines, or nothing at all.

    Parts that are done count for the stage that `next` began.
    """

    def __init__(self, shown: StageCallback | None) -> None:
        self._shown = shown
        self._keys = count(-1, -1)  # fits have theirs above
        self._last: tuple[int, Stage] | None = None

    def watch(self, estimator: Any) -> Any:
        """Return an estimator whose fits show their stages, too."""
        return (
            estimator if self._shown is None else estimator.set_callbacks(self._shown)
        )

    @contextmanager
    def stage(self, title: str, n_parts: int | None = None) -> Iterator[Stage]:
        """Show a stage of so many parts; None if that is not known."""
        key = self._begun(title, n_parts)
        yield Stage(self._shown, key)
        self._ended(key)

    def next(self, title: str, n_parts: int | None = None) -> None:
        """End the stage before, and begin another."""
        self.finish()
        key = self._begun(title, n_parts)
        self._last = key, Stage(self._shown, key)

    def finish(self) -> None:
        """End the stage that `next` began."""
        if self._last is not None:
            self._ended(self._last[0])
            self._last = None

    def expect(self, n_parts: int) -> None:
        """Note how many parts the stage has."""
        if self._last is not None:
            self._last[1].expect(n_parts)

    def advance(self, n_parts: int = 1) -> None:
        """Note that some parts of the stage are done."""
        if self._last is not None:
            self._last[1].advance(n_parts)

    def tidy(self) -> None:
        """Take away bars that are full, such as those of a fit among several."""
        if isinstance(self._shown, Bars):
            self._shown.tidy()

    def _begun(self, title: str, n_parts: int | None) -> int:
        key = next(self._keys)
        if self._shown is not None:
            self._shown.begin(key, title, n_parts)
        return key

    def _ended(self, key: int) -> None:
        if self._shown is not None:
            self._shown.end(key)


@contextmanager
def stages(screen: Screen) -> Iterator[Stages]:
    """Yield what shows the stages of a command.

    Results are printed after the block: bars are drawn on the lines below.
    """
    shown = display(screen)
    with shown.held() if isinstance(shown, Bars) else nullcontext():
        yield Stages(shown)


class WatchedTable(Table):
    """A table that tells a stage of the rows that are read.

    Parameters
    ----------
    table : Table
    stage : Stage or Stages
    n_passes : int
        How often the rows are gone through.
    """

    def __init__(self, table: Table, stage: Stage | Stages, n_passes: int = 1) -> None:
        self.path, self.types = table.path, table.types
        self._table, self._stage, self._n_passes = table, stage, n_passes

    def open(self, columns: Sequence[Column] | None) -> Source:
        source = self._table.open(columns)
        self._stage.expect(self._n_passes * len(source))
        return _WatchedSource(source, self._stage)

    def values(self, column: Column) -> Array:
        return self._table.values(column)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        alike = self._table.like_fit(zero_based, n_features)
        return WatchedTable(alike, self._stage, self._n_passes)


class _WatchedSource(WrappedSource):
    def __init__(self, inner: Source, stage: Stage | Stages) -> None:
        super().__init__(inner)
        self._stage, self.order = stage, inner.order

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self.inner.read(start, stop, out)
        self._stage.advance(stop - start)
        return block

    def take(self, indices: Array) -> Block:
        return self.inner.take(indices)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        alike = self.inner.like_fit(zero_based, n_features)
        return _WatchedSource(alike, self._stage)
