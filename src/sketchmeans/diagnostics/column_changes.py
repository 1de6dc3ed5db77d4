"""Columns then and now: distributions of numbers, shares of levels, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.cluster.reference import LEVELS, ColumnCounts, ColumnSpan, Reference
from sketchmeans.data.preparation import DateEncoder, OrdinalEncoder
from sketchmeans.data.rows import Block
from sketchmeans.diagnostics.two_samples import compare_bins, compare_counts
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.results import Result, format_value

#: Smallest share of the rows by which a distribution has to change for an alarm, and
#: that of values that the fit did not have.
_LEAST_SHIFT, _LEAST_NEW = 0.02, 0.005


@dataclass(frozen=True, repr=False)
class ColumnChange(Result):
    """A column then and now.

    Attributes
    ----------
    name : str
    what : {"values", "levels", "missing", "new levels"}
        What is compared: the distribution of numbers or dates, the shares of levels,
        that of missing values, or of values that the fit did not have.
    old, new : str
        The medians, or the shares of the level that changed most.
    distance : float
        The largest difference of the two distributions: a share of the rows.
    p_value : float
        In a `Drift` adjusted for the number of all tests.
    is_alarm : bool

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import drift
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> drift(model, X + [0.0, 1.0], X_old=X).columns[0]
    ColumnChange
      name       x1
      what       values
      old        -0.01792
      new        0.9877
      distance   0.3843
      p_value    3.535e-192
      is_alarm   yes
    """

    name: str
    what: str
    old: str
    new: str
    distance: float
    p_value: float
    is_alarm: bool = False

    @property
    def is_material(self) -> bool:
        """Whether the change is large enough to care."""
        return self.distance >= (
            _LEAST_NEW if self.what == "new levels" else _LEAST_SHIFT
        )

    @property
    def sentence(self) -> str:
        """The change in words."""
        if self.what == "values" and self.new == self.old:
            return f"{self.name} moved: typically {self.new} as before, others changed"
        start = {
            "values": f"{self.name} moved: typically {self.new}",
            "levels": f"{self.name} moved: {self.new}",
            "missing": f"{self.name} is missing in {self.new} of the rows",
            "new levels": f"{self.name} has new values in {self.new} of the rows",
        }[self.what]
        return f"{start}, against {self.old} in the fit"

    @property
    def contrast(self) -> str:
        """Some rows against those of the fit, in words."""
        words = {"missing": "missing in ", "new levels": "new values in "}
        now = f"{words.get(self.what, '')}{self.new}"
        return f"{self.name}: {now}, against {self.old} in the fit"


def compare_columns(
    columns: Sequence[ColumnSpan],
    reference: Reference,
    new: ColumnCounts,
    rows: Block | None = None,
) -> list[ColumnChange]:
    """Compare the columns of a fit with counts of new rows.

    `rows` are the new rows, if they are few: their medians are exact then.
    """
    assert reference.columns is not None
    old = reference.columns
    number = level = 0
    found = []
    for j, column in enumerate(columns):
        missing = int(old.missing[j]), int(new.missing[j])
        if any(missing):
            found.append(_compare_shares(column, "missing", missing, old, new))
        if column.levels is None:
            assert reference.edges is not None
            pair = _rows_of(old.bins, number), _rows_of(new.bins, number)
            edges = reference.edges[number]
            found.append(_compare_numbers(column, edges, *pair, rows))
            number += 1
            continue
        span = slice(level, level + len(column.levels) + 1)
        level = span.stop
        pair = _rows_of(old.levels, span), _rows_of(new.levels, span)
        found += _compare_levels(column, *pair)
    return found


def _rows_of(values: Array | None, place: int | slice) -> Array:
    assert values is not None
    return np.asarray(values[place])


def _compare_shares(
    column: ColumnSpan,
    what: str,
    counts: tuple[int, int],
    old: ColumnCounts,
    new: ColumnCounts,
) -> ColumnChange:
    shares = counts[0] / old.n_rows, counts[1] / new.n_rows
    p = compare_counts(counts[0], old.n_rows, counts[1], new.n_rows)
    old_words, new_words = (f"{share:.1%}" for share in shares)
    gap = abs(shares[1] - shares[0])
    return ColumnChange(column.name, what, old_words, new_words, gap, p)


def _compare_numbers(
    column: ColumnSpan, edges: Array, old: Array, new: Array, rows: Block | None
) -> ColumnChange:
    distance, p = compare_bins(old, new)
    # Rows of the fit above a level, where many have the same value, are above it now.
    ties = np.cumsum(old[: len(LEVELS)]) / max(old.sum(), 1) - LEVELS
    medians = [_find_median(edges, counts, ties) for counts in (old, new)]
    if rows is not None and new.sum():
        values = toarray(rows[:, [column.features.start]])
        medians[1] = float(np.nanmedian(values))
    is_whole = _are_whole(column, edges)
    before, now = (format_number(column, median, is_whole) for median in medians)
    return ColumnChange(column.name, "values", before, now, distance, p)


def _find_median(edges: Array, counts: Array, ties: Array) -> float | None:
    """Return the median from counts between edges; None if there are no values.

    `ties` are the shares of rows of the fit that have the value of an edge and are
    above its level.
    """
    if not counts.sum():
        return None
    shares = np.cumsum(counts[: len(LEVELS)]) / counts.sum() - ties
    return float(np.interp(0.5, np.maximum.accumulate(shares), edges))


def _are_whole(column: ColumnSpan, edges: Array) -> bool:
    """Whether the quantiles are whole numbers, up to the rounding of an encoder."""
    if isinstance(column.encoder, DateEncoder | OrdinalEncoder):
        return False
    values = column.encoder.restore(edges[:, None])
    return np.allclose(values, np.round(values), rtol=1e-9, atol=1e-9)


def format_number(
    column: ColumnSpan, encoded: float | None, is_whole: bool = False
) -> str:
    """Return an encoded number in the unit of its column, a date or a level."""
    if encoded is None or np.isnan(encoded):
        return "nothing"
    value: Any = np.array([[encoded]])
    if isinstance(column.encoder, DateEncoder | OrdinalEncoder):
        shown = str(column.encoder.decode(value)[0])
        return shown[:10] if isinstance(column.encoder, DateEncoder) else shown
    number = float(column.encoder.restore(value)[0, 0])
    number = float(round(number)) if is_whole else number
    is_large = 1e4 <= abs(number) < 1e15
    return f"{number:,.0f}" if is_large else format_value(number)


def _compare_levels(
    column: ColumnSpan, old: Array, new: Array
) -> Iterator[ColumnChange]:
    """Compare the shares of levels; that of unknown ones is a change of its own."""
    assert column.levels is not None
    n_old, n_new = int(old.sum()), int(new.sum())
    if not n_old or not n_new:
        return
    p_values = [
        compare_counts(int(a), n_old, int(b), n_new)
        for a, b in zip(old, new, strict=True)
    ]
    gaps = np.abs(old / n_old - new / n_new)
    j = int(gaps[:-1].argmax())
    before, now = (f"{column.levels[j]} {n[j] / n.sum():.1%}" for n in (old, new))
    p = min(1.0, len(column.levels) * min(p_values[:-1]))
    yield ColumnChange(column.name, "levels", before, now, float(gaps[j]), p)
    if new[-1]:
        before, now = (f"{n[-1] / n.sum():.1%}" for n in (old, new))
        gap, p = float(gaps[-1]), p_values[-1]
        yield ColumnChange(column.name, "new levels", before, now, gap, p)
