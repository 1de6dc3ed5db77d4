"""What has changed since the fit: sizes of segments, columns, new kinds of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans.cluster.reference import ColumnSpan, Reference, column_spans
from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.diagnostics.calibration import calibrate
from sketchmeans.diagnostics.column_changes import ColumnChange, compare_columns
from sketchmeans.diagnostics.column_counts import ColumnCounter, count_columns
from sketchmeans.diagnostics.scoring import ScoredRows, check_reference
from sketchmeans.diagnostics.two_samples import adjust_holm, compare_counts
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.results import Result

#: Smallest change of a segment, as a share of its size, that is worth an alarm, and
#: the share of it that is left where it has dissolved.
_LEAST_GROWTH, _DISSOLVED = 0.1, 0.2
#: Share of unusual rows in the fit, and how many times more are worth an alarm.
_UNUSUAL, _LEAST_UNUSUAL = 0.01, 1.5
#: Unusual rows that are looked at, that are listed, and columns that describe them.
_EXTREMES, _LISTED, _TELLING = 200, 10, 3


@dataclass(frozen=True, repr=False)
class SegmentChange(Result):
    """A segment then and now.

    Attributes
    ----------
    label : int
    name : str
    old_rows, new_rows : int
        In the table of the fit, about, and in the new one.
    old_share, new_share : float
    p_value : float
        Adjusted for the number of all tests.
    verdict : {"as before", "grew", "shrank", "dissolved"}

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import drift
    >>> X = np.arange(2000.0)[:, None] % 2
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> sorted(s.verdict for s in drift(model, X[::2], X_old=X).segments)
    ['dissolved', 'grew']
    """

    label: int
    name: str
    old_rows: int
    new_rows: int
    old_share: float
    new_share: float
    p_value: float
    verdict: str


@dataclass(frozen=True, repr=False)
class UnusualRows(Result):
    """Rows unlike those of the fit.

    Attributes
    ----------
    n_rows : int
    old_share, new_share : float
    p_value : float
        Adjusted for the number of all tests.
    is_alarm : bool
        Whether there are more than can be explained by chance: a new kind of rows.
    segments : ndarray of shape (k,)
        Such rows by the nearest segment.
    row_numbers : tuple of int
        Those farthest out, the first 10.
    columns : tuple of ColumnChange
        In what those farthest out differ most from the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import drift
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> drift(model, X * 3, X_old=X).unusual.is_alarm
    True
    """

    n_rows: int
    old_share: float
    new_share: float
    p_value: float
    is_alarm: bool
    segments: Array
    row_numbers: tuple[int, ...]
    columns: tuple[ColumnChange, ...]


@dataclass(frozen=True, repr=False)
class Drift(Result):
    """What has changed since the fit.

    Attributes
    ----------
    n_old, n_new : int
        Rows of the table of the fit, and of the new one.
    level : float
        Chance of any alarm if nothing has changed, at most.
    segments : tuple of SegmentChange
    columns : tuple of ColumnChange
        Those that moved first.
    unusual : UnusualRows

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import drift
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> drift(model, X + 1.0, X_old=X).has_changed
    True
    """

    n_old: int
    n_new: int
    level: float
    segments: tuple[SegmentChange, ...]
    columns: tuple[ColumnChange, ...]
    unusual: UnusualRows

    @property
    def has_changed(self) -> bool:
        """Whether there is any alarm."""
        return bool(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The alarms in words."""
        found = []
        if self.unusual.is_alarm:
            found.append(
                f"New kinds of rows: {self.unusual.n_rows:,} rows "
                f"({self.unusual.new_share:.1%}) are unlike those of the fit, of which "
                f"{self.unusual.old_share:.1%} were"
            )
        found += [
            f"{part.name} {part.verdict}: {part.new_share:.1%} of the rows, "
            f"against {part.old_share:.1%} in the fit"
            for part in self.segments
            if part.verdict != "as before"
        ]
        return found + [column.sentence for column in self.columns if column.is_alarm]

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "alarms": self.sentences}

    def _lines(self) -> list[tuple[str, str]]:
        rows = [("rows", f"{self.n_old:,} in the fit, {self.n_new:,} now")]
        words = self.sentences or [f"No change at a level of {self.level:.0%}"]
        return rows + [("", text) for text in words]


def drift(model: Any, X: Any, *, X_old: Any = None, level: float = 0.01) -> Drift:
    """Say what has changed in new rows since the fit of a model.

    Compares the sizes of segments (Fisher's exact test), the values of columns
    (Kolmogorov–Smirnov, ``max |F_new − F_old|`` at 23 quantiles, Fisher's for each
    level and for gaps), and the share of unusual rows (see `score_rows`) with what
    `calibrate` has kept.  p-values are adjusted for the number of all tests (Holm): if
    the rows are drawn as those of the fit were, the chance of any alarm is at most
    `level`.  A change that is certain but small does not raise an alarm either: less
    than a tenth of a segment, than 2% of the rows in a column, or than half as many
    unusual rows again.

    One pass of n·m·(d + k) over the new rows, which may be in a file larger than
    memory.

    Parameters
    ----------
    model : fitted estimator or TableClusterer
    X : table
        New rows.
    X_old : table, optional
        The rows of the fit; for a model that was not calibrated.
    level : float, default=0.01

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = NystromKMeans(2, random_state=0).fit(X)
    >>> drift(model, X[::2], X_old=X).has_changed
    False
    >>> drift(model, X + [0.0, 0.5], X_old=X).columns[0].name
    'x1'
    """
    if not isinstance(level, float | int) or not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} should be a number between 0 and 1.")
    reference = _find_reference(model, X_old)
    columns = column_spans(model) if reference.columns is not None else []
    is_dropping = getattr(model, "missing", None) == "drop"
    counter = ColumnCounter(columns, reference.edges, is_dropping=is_dropping)
    with Workers(getattr(model, "estimator_", model).n_jobs) as workers:
        rows = ScoredRows(model, X, workers, counter if columns else None)
        if not len(rows.rows):
            raise ValueError("The new table has no rows to compare.")
        seen = _Seen(rows, reference)
        extremes = rows.take_raw(seen.extremes)
        numbers = rows.numbers(seen.extremes[:_LISTED]).tolist()
    changes = []
    if columns:
        assert counter.counts is not None
        changes = compare_columns(columns, reference, counter.counts)
    found = Drift(
        reference.n_rows,
        len(rows.rows),
        level,
        _compare_sizes(segment_names(model), reference, seen.sizes),
        tuple(changes),
        replace(
            _compare_unusual(reference, seen, len(rows.rows)),
            row_numbers=tuple(numbers),
            columns=_describe_extremes(columns, reference, extremes),
        ),
    )
    return _judge(found)


def _find_reference(model: Any, X_old: Any) -> Reference:
    if X_old is None:
        return check_reference(model)
    before = vars(model).get("reference_")
    found = calibrate(model, X_old)
    if before is None:
        del model.reference_
    else:
        model.reference_ = before
    return found


class _Seen:
    """What a pass over new rows finds: sizes, unusual rows, and the farthest out."""

    def __init__(self, rows: ScoredRows, reference: Reference) -> None:
        k = len(reference.sizes)
        threshold = reference.threshold(_UNUSUAL)
        self.sizes = np.zeros(k, np.int64)
        self.unusual = np.zeros(k, np.int64)
        far, numbers = np.empty(0), np.empty(0, np.int64)
        start = 0
        for part in rows.blocks(0, len(rows.rows)):
            labels, scores = part.nearest.labels, part.score(reference.scales)
            self.sizes += np.bincount(labels, minlength=k)
            places = np.flatnonzero(scores > threshold)
            self.unusual += np.bincount(labels[places], minlength=k)
            far = np.append(far, scores[places])
            numbers = np.append(numbers, start + places)
            kept = np.lexsort((numbers, -far))[:_EXTREMES]
            far, numbers = far[kept], numbers[kept]
            start += len(labels)
        self.extremes = numbers


def _compare_sizes(
    names: tuple[str, ...], reference: Reference, new: Array
) -> tuple[SegmentChange, ...]:
    old = reference.sizes
    n_old, n_new = int(old.sum()), int(new.sum())
    return tuple(
        SegmentChange(
            j,
            names[j],
            round(reference.n_rows * int(old[j]) / n_old),
            int(new[j]),
            float(old[j] / n_old),
            float(new[j] / n_new),
            compare_counts(int(old[j]), n_old, int(new[j]), n_new),
            "as before",
        )
        for j in range(len(old))
    )


def _compare_unusual(reference: Reference, seen: _Seen, n_new: int) -> UnusualRows:
    n_old, count = reference.n_sampled, int(seen.unusual.sum())
    return UnusualRows(
        count,
        _UNUSUAL,
        count / n_new,
        compare_counts(round(_UNUSUAL * n_old), n_old, count, n_new),
        False,
        seen.unusual,
        (),
        (),
    )


def _describe_extremes(
    columns: list[ColumnSpan], reference: Reference, extremes: Any
) -> tuple[ColumnChange, ...]:
    """Return the columns in which the rows farthest out differ most."""
    if not columns or not extremes.shape[0]:
        return ()
    counts = count_columns(columns, reference.edges, extremes)
    found = compare_columns(columns, reference, counts, extremes)
    found.sort(key=lambda change: -change.distance)
    return tuple(found[:_TELLING])


def _judge(found: Drift) -> Drift:
    """Adjust all p-values together, and say which changes are alarms."""
    unusual = found.unusual
    p_values = [segment.p_value for segment in found.segments]
    p_values += [column.p_value for column in found.columns]
    adjusted = iter(adjust_holm([*p_values, unusual.p_value]))
    segments = tuple(
        _judge_segment(part, adjusted, found.level) for part in found.segments
    )
    columns = []
    for column in found.columns:
        p = next(adjusted)
        is_alarm = p <= found.level and column.is_material
        columns.append(replace(column, p_value=p, is_alarm=is_alarm))
    columns.sort(key=lambda column: (not column.is_alarm, -column.distance))
    p = next(adjusted)
    more = unusual.new_share >= _LEAST_UNUSUAL * unusual.old_share
    unusual = replace(unusual, p_value=p, is_alarm=more and p <= found.level)
    return replace(found, segments=segments, columns=tuple(columns), unusual=unusual)


def _judge_segment(
    part: SegmentChange, adjusted: Iterator[float], level: float
) -> SegmentChange:
    p, change = next(adjusted), part.new_share - part.old_share
    verdict = "as before"
    if p <= level and abs(change) >= _LEAST_GROWTH * part.old_share:
        verdict = "grew" if change > 0.0 else "shrank"
        if part.new_share < _DISSOLVED * part.old_share:
            verdict = "dissolved"
    return replace(part, p_value=p, verdict=verdict)
