"""What sets the rows of a cluster apart, column by column, in words.

The strength of a fact is how often a row of the cluster is above a row of the others,
less how often it is below (Cliff's delta): it depends on the order of values alone, so
skewed amounts need no special care, and for the level of a category it is the
difference of two shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.preparation import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    OrdinalEncoder,
    PreparedSource,
)
from sketchmeans.data.preparation.encoders import Encoder, Layout, NumberEncoder
from sketchmeans.data.rows import Rows, block_slices
from sketchmeans.data.sources.base import Block, is_csr, toarray
from sketchmeans.diagnostics.fitted import divide
from sketchmeans.diagnostics.members import Members
from sketchmeans.diagnostics.segment_wording import (
    format_date,
    format_percent,
    format_quantity,
    to_amount,
    to_few_words,
    to_time,
    to_words,
)
from sketchmeans.numerics.linalg import Array

#: Columns that are compared; of more, those whose means differ most.
_MOST_COLUMNS = 300
#: Facts that are weaker than this say nothing.
_WEAK = 0.15
#: Facts that are looked at for a name.
_MOST_FACTS = 6
#: Rows that are taken at a time.
_TAKEN_ROWS = 2_048
#: Words for yes and no.
_YES, _NO = ("yes", "true", "1", "y", "t"), ("no", "false", "0", "n", "f")


@dataclass(frozen=True)
class Fact:
    """What a column says of a cluster.

    Attributes
    ----------
    column : str
    level : str or None
        The value of a category that the share is of.
    strength : float
        From −1, all values are below those of other rows, to 1, all are above.
    value, overall : float or str
        Typical value, or share, in the cluster and in all rows; days and ordered
        words as texts.
    text : str
        The same in words.
    phrase : str
        Two or three words, of which names are made.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import describe_segments
    >>> X = np.repeat([[0.0, 1.0], [5.0, 1.0]], 50, axis=0)
    >>> found = describe_segments(SketchedKMeans(2, random_state=0).fit(X), X)
    >>> found.segments[0].facts[0].text
    'x0: about 5 (all: 2.5)'
    """

    column: str
    level: str | None
    strength: float
    value: float | str
    overall: float | str
    text: str
    phrase: str


@dataclass(frozen=True)
class _Column:
    """A column of the table: its name, how it was encoded, and its features."""

    name: str
    encoder: Encoder
    span: slice
    #: Of indicators that are one category together.
    levels: tuple[str, ...] = ()


def find_facts(
    source: Any, rows: Block, members: Members, names: Sequence[str]
) -> list[list[Fact]]:
    """Return the facts about each cluster, the strongest first.

    `rows` are those of the members in the units of the table, NaN where a value is
    missing.
    """
    columns = _join_indicators(_list_columns(source, names), rows)
    weights = members.weights
    if len(columns) > _MOST_COLUMNS:
        columns = _choose_columns(columns, rows, members, weights)
    compared = [
        _compare(column, toarray(rows[:, column.span]), members, weights)
        for column in columns
    ]
    if not compared:
        return [[] for _ in members.sizes]
    strengths = np.abs([one.strengths for one in compared])
    order = np.argsort(-strengths, axis=0, kind="stable")[:_MOST_FACTS]
    return [
        [compared[c].describe(j) for c in best if strengths[c, j] >= _WEAK]
        for j, best in enumerate(order.T.tolist())
    ]


def take_members(source: Any, rows: Rows, numbers: Array) -> Block:
    """Return rows in the units of the table: as encoded, with gaps, but not scaled.

    They are read in the order of the table and a few at a time, so that a file is
    passed over once.
    """
    order = np.argsort(numbers, kind="stable")
    parts = []
    for start, stop in block_slices(len(order), _TAKEN_ROWS):
        wanted = numbers[order[start:stop]]
        if isinstance(source, PreparedSource):
            parts.append(source.inner.take(source.numbers(wanted)))
        else:
            parts.append(rows.take(wanted))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    if is_csr(parts[0]):
        return sparse.vstack(parts, format="csr")[back]
    return np.concatenate(parts)[back]


def list_levels(source: Any) -> frozenset[int]:
    """Return the features that say whether a row has a level of a category."""
    words = BooleanEncoder | CategoryEncoder
    return frozenset(
        j
        for column in _list_columns(source, ())
        if isinstance(column.encoder, words)
        for j in range(column.span.start, column.span.stop)
    )


def name_features(source: Any, means: Array, names: Sequence[str]) -> list[str]:
    """Return the names of features, those of one-hot columns as levels: plan=free.

    `means` are those of each cluster, which add up to 1 as the rows do.
    """
    named = list(names)
    for column in _join_indicators(_list_columns(source, names), means):
        for j, level in enumerate(column.levels, start=column.span.start):
            named[j] = f"{column.name}={level}"
    return named


def _list_columns(source: Any, names: Sequence[str]) -> list[_Column]:
    encoders = source.preparation.encoders if hasattr(source, "preparation") else ()
    if not encoders:
        plain = NumberEncoder()
        return [_Column(name, plain, slice(j, j + 1)) for j, name in enumerate(names)]
    spans = Layout.of(encoders).slices()
    return [
        _Column(name, encoder, span)
        for (name, encoder), span in zip(encoders, spans, strict=True)
    ]


def _join_indicators(columns: list[_Column], rows: Block) -> list[_Column]:
    """Return columns such as plan_free and plan_pro as the category plan.

    Neighbours of zeros and ones whose names begin alike, up to a _ or =, and of which
    exactly one is 1 in each row.
    """
    joined: list[_Column] = []
    done = 0
    while done < len(columns):
        found = _find_category(columns[done:], rows)
        joined.append(columns[done] if found is None else found)
        done += len(joined[-1].levels) or 1
    return joined


def _find_category(columns: list[_Column], rows: Block) -> _Column | None:
    """Return the category that the first of some columns are the levels of, if any."""
    name = columns[0].name
    for end in (j for j in range(len(name) - 1, 0, -1) if name[j - 1] in "_="):
        flags = list(takewhile(partial(_is_level, name[:end]), columns))
        if len(flags) < 2:
            continue
        span = slice(flags[0].span.start, flags[-1].span.stop)
        if np.allclose(toarray(rows[:, span]).sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
            levels = tuple(flag.name[end:] for flag in flags)
            return _Column(name[: end - 1], flags[0].encoder, span, levels)
    return None


def _is_level(start: str, column: _Column) -> bool:
    encoder = column.encoder
    is_flag = isinstance(encoder, BooleanEncoder) and encoder.words[1].lower() in _YES
    return is_flag and column.name.startswith(start) and len(column.name) > len(start)


def _choose_columns(
    columns: list[_Column], rows: Block, members: Members, weights: Array
) -> list[_Column]:
    """Return the columns whose means differ most between clusters."""
    k, n = len(members.sizes), len(members.labels)
    shares = np.zeros((k, n))
    shares[members.labels, np.arange(n)] = 1.0
    shares = divide(shares, shares.sum(axis=1, keepdims=True), 0.0)
    block: Any = rows if is_csr(rows) else np.nan_to_num(np.asarray(rows, np.float64))
    means = toarray(shares @ block)
    total = members.sizes @ means / members.sizes.sum()
    squares = block.multiply(block) if is_csr(rows) else block * block
    spread = np.sqrt(
        np.maximum(toarray(weights @ squares).ravel() / weights.sum() - total**2, 0.0)
    )
    distance = divide(np.abs(means - total), spread, 0.0).max(axis=0)
    strength = [float(distance[column.span].max()) for column in columns]
    chosen = np.sort(np.argsort(-np.array(strength), kind="stable")[:_MOST_COLUMNS])
    return [columns[j] for j in chosen.tolist()]


def _compare(
    column: _Column, values: Array, members: Members, weights: Array
) -> _Levels | _Numbers:
    """Return how the clusters differ in a column."""
    encoder, values = column.encoder, np.asarray(values, np.float64)
    if column.levels:
        return _Levels(column, values, column.levels, members, weights)
    if isinstance(encoder, BooleanEncoder):
        both = np.column_stack([1.0 - values, values])
        return _Levels(column, both, encoder.words, members, weights)
    if isinstance(encoder, CategoryEncoder):
        return _Levels(column, values, encoder.levels, members, weights)
    return _Numbers(column, encoder.restore(values)[:, 0], members, weights)


class _Levels:
    """The shares of the levels of a category, by cluster."""

    def __init__(
        self,
        column: _Column,
        indicators: Array,
        levels: Sequence[str],
        members: Members,
        weights: Array,
    ) -> None:
        self._column, self._levels = column, levels
        known = ~np.isnan(indicators[:, 0])
        labels, mass = members.labels[known], weights[known]
        k = len(members.sizes)
        counts = np.bincount(labels, mass, k)
        sums = np.stack(
            [np.bincount(labels, mass * one, k) for one in indicators[known].T], axis=1
        )
        total = sums.sum(axis=0)
        self._overall = total / max(counts.sum(), np.finfo(float).tiny)
        self._shares = divide(sums, counts[:, None], self._overall)
        others = divide(total - sums, (counts.sum() - counts)[:, None], self._overall)
        differences = self._shares - others
        self._best = differences.argmax(axis=1)
        self.strengths = differences.max(axis=1)

    def describe(self, cluster: int) -> Fact:
        """Return the level that a cluster has more often than others."""
        best = int(self._best[cluster])
        name, level = self._column.name, self._levels[best]
        share, overall = float(self._shares[cluster, best]), float(self._overall[best])
        said, phrase = self._make_words(level, "mostly" if share >= 0.5 else "often")
        return Fact(
            name,
            level,
            float(self.strengths[cluster]),
            share,
            overall,
            f"{to_words(name)}: {format_percent(share)} {said} "
            f"(all: {format_percent(overall)})",
            phrase,
        )

    def _make_words(self, level: str, often: str) -> tuple[str, str]:
        """Return the level in words, 1 as yes, and a phrase with the column."""
        name = to_few_words(self._column.name)
        is_flag = isinstance(self._column.encoder, BooleanEncoder)
        is_flag = is_flag and not self._column.levels
        if is_flag and level.lower() in _YES:
            return "yes", f"{often} {name}"
        if is_flag and level.lower() in _NO:
            return "no", f"{often} not {name}"
        return to_words(level), f"{often} {to_few_words(level)} {name}"


class _Numbers:
    """The values of a column of numbers or days, by cluster."""

    def __init__(
        self, column: _Column, values: Array, members: Members, weights: Array
    ) -> None:
        known = np.isfinite(values)
        values, k = values[known], len(members.sizes)
        whole = np.round(values)
        # Numbers on a logarithmic scale were rounded on the way.
        is_near = np.abs(values - whole) <= 1e-9 * np.maximum(np.abs(values), 1.0)
        self._values = np.where(is_near, whole, values)
        self._column, self._is_whole = column, bool(is_near.all())
        self._mass, labels = weights[known], members.labels[known]
        self._edges = np.searchsorted(labels, np.arange(k + 1))
        self.strengths = np.zeros(k)
        if len(values):
            self.strengths = measure_dominance(self._values, labels, self._mass, k)

    @cached_property
    def _median(self) -> float:
        order = np.argsort(self._values, kind="stable")
        total = np.cumsum(self._mass[order])
        # The last value with at most half of the rows below, and the first with more.
        half = 0.5 * total[-1] * (1.0 + np.array([-1e-12, 1e-12]))
        middle = np.minimum(np.searchsorted(total, half), len(order) - 1)
        return float(self._values[order[middle]].mean())

    @cached_property
    def _mean(self) -> float:
        return float(np.average(self._values, weights=self._mass))

    @cached_property
    def _usual_size(self) -> float:
        return float(np.median(np.abs(self._values)))

    def _format(self, value: float) -> str:
        """Return a level, or three digits; 0 where it is tiny beside most others."""
        if isinstance(self._column.encoder, OrdinalEncoder):
            return to_words(self._column.encoder.decode(np.array([[value]]))[0])
        value = 0.0 if abs(value) < 0.01 * self._usual_size else value
        return format_quantity(value, self._is_whole and value.is_integer())

    def describe(self, cluster: int) -> Fact:
        """Return a typical value: the median, or the mean where medians are equal."""
        column, strength = self._column, float(self.strengths[cluster])
        own = self._values[self._edges[cluster] : self._edges[cluster + 1]]
        name, is_high = to_words(column.name), strength > 0.0
        typical, overall = float(np.median(own)), self._median
        if isinstance(column.encoder, DateEncoder):  # by age
            reference, span = column.encoder.reference, float(np.ptp(self._values))
            day, usual = (format_date(reference - v, span) for v in (typical, overall))
            phrase = to_time(column.name, is_early=is_high)
            text = f"{name}: about {day} (all: {usual})"
            return Fact(column.name, None, -strength, day, usual, text, phrase)
        how, after = "about ", ""
        shown, usual = self._format(typical), self._format(overall)
        is_ordinal = isinstance(column.encoder, OrdinalEncoder)
        if shown == usual and not is_ordinal:
            typical, overall = float(own.mean()), self._mean
            how, after = "", " on average"
            shown, usual = self._format(typical), self._format(overall)
        text = f"{name}: {how}{shown}{after} (all: {usual})"
        phrase = to_amount(column.name, is_high, self._is_whole and not is_ordinal)
        value, middle = (shown, usual) if is_ordinal else (typical, overall)
        return Fact(column.name, None, strength, value, middle, text, phrase)


def measure_dominance(values: Array, labels: Array, mass: Array, k: int) -> Array:
    """Return P(inside > outside) − P(inside < outside) for each cluster.

    Examples
    --------
    >>> values, labels = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    >>> measure_dominance(values, labels, np.ones(4), 2)
    array([-0.75,  0.75])
    """
    levels, places = np.unique(values, return_inverse=True)
    counts = np.bincount(places, mass, len(levels))
    total = counts.sum()
    # The share of all rows below a value, half of the equal ones among them.
    ranks = (np.cumsum(counts) - 0.5 * counts) / total
    sizes = np.bincount(labels, mass, k)
    mean = divide(np.bincount(labels, mass * ranks[places], k), sizes, 0.5)
    # A cluster against itself has a mean rank of one half.
    return divide(2.0 * mean - 1.0, 1.0 - sizes / total, 0.0)
