"""Why a row is in its segment, and what the nearest other one would need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.cluster.reference import ColumnSpan, column_spans
from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import NumberEncoder
from sketchmeans.data.rows import as_rows
from sketchmeans.data.sources.derived import ArraySource
from sketchmeans.diagnostics.column_changes import format_number
from sketchmeans.diagnostics.fitted import has_given_kernel
from sketchmeans.diagnostics.scoring import fitted_estimator
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.results import Result

#: Orders in which columns are exchanged, each forwards and backwards; fewer where rows
#: are so wide that these would have more values.
_ORDERS, _VALUES = 16, 2**21
#: Steps in which the smallest change of the last column is looked for.
_STEPS = 1_024


@dataclass(frozen=True, repr=False)
class ColumnReason(Result):
    """What a column says for the segment of a row, against the next one.

    Attributes
    ----------
    name : str
    value, other : str
        Of the row, and of the typical row of the next segment.
    contribution : float
        Share in the difference of squared distances; negative if the column speaks for
        the next segment.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import explain_row
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [9.0, 1.0], [10.0, 0.0]])
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> explain_row(model, X, 1).reasons[0]
    ColumnReason
      name           x0
      value          1
      other          9
      contribution   1
    """

    name: str
    value: str
    other: str
    contribution: float


@dataclass(frozen=True, repr=False)
class RowExplanation(Result):
    """Why a row is in its segment.

    Attributes
    ----------
    row : int
    label, next_label : int
    segment, next_segment : str
    distance, next_distance : float
        To the two centres, as the kernel measures it.
    reasons : tuple of ColumnReason
        All columns, those that speak most for the segment first.
    changes : tuple of (str, str, str)
        Column, value and new value: what would move the row to the next segment.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import explain_row
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [9.0, 1.0], [10.0, 0.0]])
    >>> found = explain_row(SketchedKMeans(2, random_state=0).fit(X), X, 1)
    >>> round(found.distance, 2), round(found.next_distance, 2)
    (0.71, 8.51)
    """

    row: int
    label: int
    next_label: int
    segment: str
    next_segment: str
    distance: float
    next_distance: float
    reasons: tuple[ColumnReason, ...]
    changes: tuple[tuple[str, str, str], ...]

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            ("row", f"{self.row:,}"),
            ("segment", f"{self.segment} (distance {self.distance:.4g})"),
            ("next", f"{self.next_segment} (distance {self.next_distance:.4g})"),
        ]
        for reason in self.reasons[:5]:
            lines.append((reason.name, f"{reason.value} ({reason.contribution:+.0%})"))
        moves = "; ".join(f"{name}: {a} → {b}" for name, a, b in self.changes)
        return [*lines, ("to move", moves)]


def explain_row(model: Any, X: Any, row: int) -> RowExplanation:
    """Say why a row is in its segment, and what the nearest other one would need.

    Columns are ranked by their Shapley values of ``‖φ(x) − c_next‖² − ‖φ(x) − c_own‖²``
    between the row and the typical row of the next segment: what the difference loses
    when the column takes the value of that row, on average over up to 32 orders of the
    columns.  For plain k-means this is the exact share of the column.  The changes are
    found by giving columns these values one by one, the strongest first, until the row
    changes its segment; the last number is changed no further than needed, and stays
    whole if both numbers are.

    Costs a pass over the rows for the typical ones, and up to 33 predictions for each
    column.

    Parameters
    ----------
    model : fitted estimator or TableClusterer
        With at least two clusters.
    X : table, as in ``model.predict``
    row : int
        Its number in the table, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [9.0, 1.0], [10.0, 0.0]])
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> found = explain_row(model, X, 0)
    >>> found.reasons[0].name, found.changes
    ('x0', (('x0', '0', '6'),))
    """
    estimator = fitted_estimator(model)
    if has_given_kernel(estimator):
        raise ValueError("Rows of a precomputed kernel have no columns to explain.")
    if len(estimator.cluster_sizes_) < 2:
        raise ValueError("The model has one cluster only: there is nothing to explain.")
    x, raw = _find_row(model, X, row)
    distances = _distances(model, x)[0]
    own, other = np.argsort(distances, kind="stable")[:2].tolist()
    case = _Case(model, x, raw, own, other)
    values = case.shapley()
    scale = float(np.abs(values).sum()) or 1.0
    order = np.argsort(-values, kind="stable").tolist()
    names = segment_names(model)
    return RowExplanation(
        row=int(row),
        label=own,
        next_label=other,
        segment=names[own],
        next_segment=names[other],
        distance=float(distances[own]),
        next_distance=float(distances[other]),
        reasons=tuple(
            ColumnReason(
                case.columns[j].name,
                case.show(j, x, is_own=True),
                case.show(j, case.target),
                float(values[j]) / scale,
            )
            for j in order
        ),
        changes=case.find_changes(order),
    )


def _find_row(model: Any, X: Any, row: int) -> tuple[Array, Array]:
    """Return a row as the estimator sees it, and before gaps are filled; (1, d)."""
    row = check_integer("row", row, low=0)
    if not isinstance(model, TableClusterer):
        with Workers(1) as workers:
            rows = as_rows(validate_input(model, X, reset=False), workers)
            _check_number(row, len(rows))
            x = toarray(rows.take(np.array([row]))).astype(np.float64)
        return x, x
    source = model.prepare(X)
    _check_number(row, source.n_table_rows)
    place = np.array([row])
    if len(source) < source.n_table_rows:
        kept = source.numbers(np.arange(len(source)))
        place = np.searchsorted(kept, place)
        if place[0] == len(kept) or kept[place[0]] != row:
            raise ValueError(f"row={row} has missing values, and so no segment.")
    raw = toarray(source.inner.take(np.array([row]))).astype(np.float64)
    return toarray(source.take(place)).astype(np.float64), raw


def _check_number(row: int, n_rows: int) -> None:
    if row >= n_rows:
        raise ValueError(f"row={row} should be below {n_rows}, the number of rows.")


def _distances(model: Any, rows: Array) -> Array:
    """Return distances of prepared rows to all centres."""
    estimator = getattr(model, "estimator_", model)
    names = getattr(estimator, "feature_names_in_", None)
    return np.asarray(estimator.transform(ArraySource(rows, names)), dtype=np.float64)


class _Case:
    """A row between the centre of its segment and that of another one."""

    def __init__(self, model: Any, x: Array, raw: Array, own: int, other: int) -> None:
        self._model, self._x, self._raw = model, x, raw
        self._own, self._other = own, other
        self.columns: list[ColumnSpan] = column_spans(model)
        exemplars = getattr(model, "estimator_", model).exemplars_
        #: The typical row of the other segment.
        self.target = toarray(exemplars[[other]]).astype(np.float64)

    def _difference(self, rows: Array) -> Array:
        """Return how much nearer rows are to their own segment than to the other."""
        squared = _distances(self._model, rows) ** 2
        return np.asarray(squared[:, self._other] - squared[:, self._own])

    def _exchange(self, order: Sequence[int]) -> Array:
        """Return the row, and what it becomes as columns take on the other's values."""
        rows = np.repeat(self._x, len(order) + 1, axis=0)
        for i, j in enumerate(order):
            span = self.columns[j].features
            rows[i + 1 :, span] = self.target[:, span]
        return rows

    def shapley(self) -> Array:
        """Return what each column adds to the difference, on average over orders."""
        d = len(self.columns)
        rng = np.random.default_rng(0)
        values = np.zeros(d)
        n_orders = max(1, min(_ORDERS, _VALUES // d**2))
        for _ in range(n_orders):
            order = rng.permutation(d)
            for path in (order, order[::-1]):
                steps = self._difference(self._exchange(path.tolist()))
                values[path] -= np.diff(steps)
        return values / (2 * n_orders)

    def find_changes(self, order: Sequence[int]) -> tuple[tuple[str, str, str], ...]:
        """Return the changes that lead to the other segment; none if that is empty."""
        rows = self._exchange(order)
        beyond = np.flatnonzero(self._difference(rows) < 0.0)
        if not len(beyond):
            return ()
        count = int(beyond[0])
        last = order[count - 1]
        changed = rows[[count]]
        encoder = self.columns[last].encoder
        if isinstance(encoder, NumberEncoder):
            span = self.columns[last].features
            steps = np.repeat(changed, _STEPS, axis=0)
            steps[:, span] = self._find_steps(last, encoder)
            changed = steps[[np.flatnonzero(self._difference(steps) < 0.0)[0]]]
        changes = []
        for j in order[:count]:
            name = self.columns[j].name
            before, after = self.show(j, self._x, is_own=True), self.show(j, changed)
            if before != after:
                changes.append((name, before, after))
        return tuple(changes)

    def _find_steps(self, j: int, encoder: NumberEncoder) -> Array:
        """Return numbers on the way to the typical row: whole between whole ones."""
        span = self.columns[j].features
        both = np.vstack([row[:, span] for row in (self._x, self.target)])
        shares = np.arange(1, _STEPS + 1)[:, None] / _STEPS
        steps = both[0] + shares * (both[1] - both[0])
        start, end = values = encoder.restore(self._to_units(j, both))[:, 0]
        if np.allclose(values, np.round(values), rtol=1e-9, atol=1e-9):
            way = np.ceil(shares[:-1, 0] * np.abs(end - start))
            whole = np.round(start) + np.sign(end - start) * way
            encoder.encode_numbers(whole)
            whole = self._from_units(j, whole[:, None])
            steps[:-1] = np.where(np.isnan(whole), steps[:-1], whole)  # no codes
        return np.asarray(steps)

    def _to_units(self, j: int, values: Array) -> Array:
        """Return prepared features of a column as its encoder made them."""
        model, span = self._model, self.columns[j].features
        if isinstance(model, TableClusterer):
            return np.asarray(values * model.scale_[span] + model.center_[span])
        return values

    def _from_units(self, j: int, encoded: Array) -> Array:
        model, span = self._model, self.columns[j].features
        if isinstance(model, TableClusterer):
            return np.asarray((encoded - model.center_[span]) / model.scale_[span])
        return encoded

    def show(self, j: int, row: Array, *, is_own: bool = False) -> str:
        """Return the value of a column in its own unit."""
        column = self.columns[j]
        if is_own and np.isnan(self._raw[0, column.features]).any():
            return "missing"
        encoded = self._to_units(j, row[:, column.features])
        if column.levels is None:
            return format_number(column, float(encoded[0, 0]))
        return str(column.encoder.decode(encoded)[0] or "missing")
