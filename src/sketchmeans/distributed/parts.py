"""What workers do: the block functions of the local engine, on one partition.

Nothing here changes its arguments: a worker that is lost takes its results with it, and
the scheduler runs their tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.rows import Block, Rows, block_slices, by_block
from sketchmeans.distributed.table import Declared, as_block, as_declared
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.bounds import RowBounds, Steps
from sketchmeans.engine.lloyd import Centers
from sketchmeans.engine.looks import Look
from sketchmeans.engine.spaces import Space, landmark_space
from sketchmeans.kernels import Kernel
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers, process_buffers
from sketchmeans.numerics.sums import TreeSum


@dataclass(frozen=True)
class Place:
    """Where a partition is among all rows.

    Attributes
    ----------
    row, block : int
        Numbers of its first row and block.
    checked : bool
        Whether all values are known to be finite.
    name : str
        What errors call the table.
    declared : Declared or None
        Number, rows (None if unknown) and features of the partition, where they are
        still to be checked.
    """

    row: int
    block: int = 0
    checked: bool = False
    name: str = "Input X"
    declared: Declared | None = None


@dataclass(frozen=True)
class Plan:
    """The space of the centres, in a form that travels: the landmarks.

    Attributes
    ----------
    kernel : Kernel
    landmarks : ndarray or CSR matrix of shape (m, d)
    dtype : dtype
        Float type of the kernel blocks.
    stored : dtype
        Type in which dataframes are read.
    """

    kernel: Kernel
    landmarks: Block
    dtype: np.dtype[Any]
    stored: np.dtype[Any]

    def engine(self, part: Any, weights: Array | None, place: Place) -> BlockEngine:
        """Return the local engine of a partition, or of its coordinates."""
        workers = process_buffers()
        space = landmark_space(self.kernel, self.landmarks, self.dtype, workers)
        if isinstance(part, Coordinates):
            return _StoredEngine(part, weights, space, workers)
        return BlockEngine(part_rows(part, weights, place, self.stored), space)


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a partition, block by block, and ``‖φ(x)‖²`` of its rows."""

    blocks: list[Array]
    norms: list[Array | float]
    length: int


class _StoredEngine(BlockEngine):
    """Passes over coordinates, without the rows."""

    def __init__(
        self,
        stored: Coordinates,
        weights: Array | None,
        space: Space,
        workers: Workers,
    ) -> None:
        nothing = np.empty((stored.length, 0), dtype=space.dtype)
        super().__init__(Rows(nothing, workers, weights), space)
        self._stored = stored

    def coordinates(self, span: tuple[int, int]) -> Array:
        return self._stored.blocks[span[0] // self.space.height]

    def _norms(self, span: tuple[int, int]) -> Array | float:
        return self._stored.norms[span[0] // self.space.height]


@dataclass(frozen=True)
class Summary:
    """What partitions tell of a pass: small, and added up along a tree.

    Attributes
    ----------
    terms : TreeSum
    changed : ndarray of shape (R,)
        Whether a label changed.
    active : int
        Rows that may change cluster.
    waiting : bool
        Whether such rows of a partition were not looked at.
    """

    terms: TreeSum
    changed: Array
    active: int = 0
    waiting: bool = False


@dataclass(frozen=True)
class Passed:
    """What stays with a partition after a pass.

    Attributes
    ----------
    labels : ndarray of shape (n, R)
    summary : Summary
    upper, lower : ndarray of shape (n,) or None
        Bounds on distances, for one restart.
    active : ndarray or None
        Rows that may change cluster and were not looked at.
    """

    labels: Array
    summary: Summary | None = None
    upper: Array | None = None
    lower: Array | None = None
    active: Array | None = None

    def bounds(self) -> RowBounds:
        """Return a copy of the bounds."""
        assert self.upper is not None
        assert self.lower is not None
        return RowBounds(self.labels[:, 0], self.upper.copy(), self.lower.copy())


def part_rows(
    part: Any, weights: Array | None, place: Place, stored: np.dtype[Any]
) -> Rows:
    """Return the rows of a partition, numbered as among all rows in errors."""
    if place.declared is not None:
        part = as_declared(part, place.declared)
    block = as_block(part, stored)
    return Rows(
        block,
        process_buffers(),
        weights,
        first=place.row,
        name=place.name,
        checked=place.checked,
    )


def moment_sums(
    part: Any, weights: Array | None, shift: Array, stored: Any, row: int, block: int
) -> TreeSum:
    """Return the sums that give the moments of all rows."""
    with Workers(1):
        rows = part_rows(part, weights, Place(row), stored)
        return rows.moment_sums(shift, block)


def merged_terms(parts: list[TreeSum]) -> TreeSum:
    """Return sums over several partitions."""
    terms = TreeSum()
    for part in parts:
        terms.merge(part)
    return terms


def taken(part: Any, stored: Any, numbers: Array) -> Block:
    """Return a few rows of a partition."""
    return as_block(part, stored)[numbers]


def mapped(
    part: Any, stored: Any, function: Callable[[Block], Any], height: int, place: Place
) -> list[Any]:
    """Return what a function returns for each block of a partition."""
    with Workers(1):
        rows = part_rows(part, None, place, stored)
        return [function(rows.block(*span)) for span in block_slices(len(rows), height)]


def mapped_some(
    part: Any,
    stored: Any,
    function: Callable[[Block], Any],
    height: int,
    place: Place,
    numbers: Array,
) -> list[Any]:
    """Return what a function returns for groups of single rows of a partition."""
    with Workers(1):
        rows = part_rows(part, None, place, stored)
        groups = by_block(numbers, height)
        return [function(rows.take(numbers[slice(*span)])) for _, span in groups]


def coordinates(part: Any, plan: Plan, place: Place) -> Coordinates:
    """Return the coordinates of a partition."""
    with Workers(1):
        engine = plan.engine(part, None, place)
        edges = block_slices(len(engine.rows), engine.space.height)
        norms = [engine._norms(span) for span in edges]
        blocks = [
            engine.space.coordinates(
                engine.rows.block(start, stop),
                np.empty((stop - start, engine.space.n_coordinates), plan.dtype),
            )
            for start, stop in edges
        ]
        return Coordinates(blocks, norms, len(engine.rows))


def sweep(
    part: Any,
    weights: Array | None,
    plan: Plan,
    centers: Centers,
    place: Place,
    before: Passed | None,
    columns: list[int] | None,
) -> Passed:
    """Make a full pass; `columns` are the restarts of the pass before that go on."""
    with Workers(1):
        found = plan.engine(part, weights, place).sweep(centers, place.block)
    changed = np.ones(len(centers), dtype=bool)
    if before is not None and columns is not None:
        changed = _changed(before.labels[:, columns], found.labels, weights)
    summary = Summary(found.terms, changed)
    if found.bounds is None:
        return Passed(found.labels, summary)
    return Passed(found.labels, summary, found.bounds.upper, found.bounds.lower)


def loosened(passed: Passed, steps: Steps) -> Passed:
    """Find the rows that may change cluster after these steps of the centres."""
    bounds = passed.bounds()
    active = bounds.loosen(steps)
    return Passed(
        passed.labels,
        Summary(TreeSum(), np.zeros(1, dtype=bool), len(active), waiting=True),
        bounds.upper,
        bounds.lower,
        active,
    )


def follow(
    part: Any,
    weights: Array | None,
    plan: Plan,
    centers: Centers,
    place: Place,
    passed: Passed,
    steps: Steps,
) -> Passed:
    """Find the same rows, and look at each of them if they are few."""
    found = loosened(passed, steps)
    assert found.active is not None
    look = Look.at(len(found.active), len(found.labels), plan.landmarks.shape[1])
    if look is Look.ALL:
        return found
    return look_again(part, weights, plan, centers, place, found, look)


def look_again(
    part: Any,
    weights: Array | None,
    plan: Plan,
    centers: Centers,
    place: Place,
    found: Passed,
    look: Look,
) -> Passed:
    """Look at the rows that may change cluster, unless that was done."""
    if found.active is None:
        return found
    bounds = found.bounds()
    with Workers(1):
        engine = plan.engine(part, weights, place)
        own, terms = engine.look_again(bounds, found.active, centers, look, place.block)
    labels = own[:, None]
    changed = _changed(found.labels, labels, weights)
    summary = Summary(terms, changed, len(found.active))
    return Passed(labels, summary, bounds.upper, bounds.lower)


def summary_of(passed: Passed) -> Summary | None:
    """Return what goes up the tree."""
    return passed.summary


def merged_summaries(parts: list[Summary]) -> Summary:
    """Return the summary of several partitions."""
    changed = np.any([part.changed for part in parts], axis=0)
    terms = merged_terms([part.terms for part in parts])
    return Summary(
        terms,
        changed,
        sum(part.active for part in parts),
        any(part.waiting for part in parts),
    )


def partition_terms(
    part: Any, weights: Array | None, plan: Plan, place: Place, given: Passed, k: int
) -> TreeSum:
    """Return the sums over the clusters of a given partition of the rows."""
    with Workers(1):
        engine = plan.engine(part, weights, place)
        return engine.partition_terms(given.labels, k, place.block)


@dataclass(frozen=True)
class Nearest:
    """For each centre the nearest row of a partition.

    Attributes
    ----------
    strange : ndarray of shape (k,)
        Whether it is not of the centre's cluster, as the partition has no such row.
    distances : ndarray of shape (k,)
    rows : ndarray of shape (k,)
        Numbers among all rows.
    """

    strange: Array
    distances: Array
    rows: Array


def nearest_rows(
    part: Any,
    weights: Array | None,
    plan: Plan,
    centers: Centers,
    place: Place,
    passed: Passed,
    best: Passed,
    column: int,
    steps: Steps,
    drift: Array,
) -> Nearest:
    """Return for each centre the nearest row of its cluster, as `best` has it."""
    labels = best.labels[:, column]
    bounds = passed.bounds()
    bounds.loosen(steps)
    with Workers(1):
        engine = plan.engine(part, weights, place)
        rows, squared = engine.candidate_distances(bounds, drift, centers, labels)
    member = labels[rows, None] == np.arange(len(drift))
    if weights is not None:
        member &= weights[rows, None] > 0.0
    strange = ~member.any(axis=0)
    squared[~member & ~strange] = np.inf
    nearest = squared.argmin(axis=0)
    distances = squared[nearest, np.arange(len(drift))]
    return Nearest(strange, distances, place.row + rows[nearest])


def costliest(
    part: Any,
    weights: Array | None,
    plan: Plan,
    centers: Centers,
    place: Place,
    passed: Passed,
    column: int,
    size: int,
) -> tuple[Array, Array]:
    """Return the costs and numbers of the costliest rows of a partition."""
    with Workers(1):
        engine = plan.engine(part, weights, place)
        costs = engine.own_costs(passed.labels[:, column], centers)
    rows = np.argsort(-costs, kind="stable")[:size]
    return costs[rows], place.row + rows


def labels_at(passed: Passed, column: int, numbers: Array) -> Array:
    """Return the labels of a few rows of a partition."""
    return passed.labels[numbers, column]


def labels_of(passed: Passed, column: int) -> Array:
    """Return the labels of a partition."""
    return np.ascontiguousarray(passed.labels[:, column])


def predict(part: Any, plan: Plan, centers: Centers, place: Place) -> Array:
    """Return the nearest centre of each row."""
    with Workers(1):
        return plan.engine(part, None, place).predict(centers)


def distances(part: Any, plan: Plan, centers: Centers, place: Place) -> Array:
    """Return the distances of all rows to all centres."""
    with Workers(1):
        return plan.engine(part, None, place).all_distances(centers)


def cost_terms(
    part: Any, weights: Array | None, plan: Plan, centers: Centers, place: Place
) -> TreeSum:
    """Return the squared distances of rows to their centres, added up."""
    with Workers(1):
        engine = plan.engine(part, weights, place)
        return engine.cost_terms(centers, place.block)


def _changed(before: Array, after: Array, weights: Array | None) -> Array:
    """Return for each restart whether the label of a row that counts changed."""
    different = before != after
    if weights is not None:
        different &= (weights > 0.0)[:, None]
    return np.asarray(different.any(axis=0))
