"""What is learned from a table: centre, scale, and what fills a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.finite import find_not_finite
from sketchmeans.data.preparation.encoders import Encoder, Layout, NumberEncoder
from sketchmeans.data.rows import block_height, block_slices
from sketchmeans.data.sources.base import Block, Source, is_csr, toarray
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: Values up to which medians are those of all rows; of more, those of a sample.
EXACT_VALUES = 2**22
#: A column whose spread is below this many roundings of its centre is constant.
_CONSTANT_ROUNDINGS = 16.0

#: What to do about gaps in the table of a fit, and in a new one.
_IN_FIT = (
    ". Leave out such rows with missing='drop', or fill in the mean with "
    "missing='mean'."
)
IN_NEW_ROWS = (
    ", and the model was fitted with missing='error'. Fill the gap, or fit again with "
    "missing='mean', which fills in the mean, or missing='drop', which leaves out such "
    "rows."
)
#: What fills gaps rather than leaving out rows or raising.
_FILLING = ("mean", "fill")


@dataclass(frozen=True)
class Preparation:
    """What turns raw rows into prepared ones: x becomes (x − center) / scale.

    `fill` takes the place of missing values, in `n_filled` rows of the fit;
    the scale was found from `n_scale_rows` rows; `variance` is that of the prepared
    features.  `encoders` have turned named columns into features.
    """

    center: Array
    scale: Array
    fill: Array | None
    n_scale_rows: int
    variance: Array | None = None
    n_filled: int = 0
    encoders: tuple[tuple[str, Encoder], ...] = ()

    def inverse_transform(self, rows: Block) -> Block:
        """Return prepared rows in the units of the table."""
        if is_csr(rows):  # these were not centred
            return sparse.csr_array(rows.multiply(self.scale))
        features = np.asarray(rows) * self.scale + self.center
        for span, encoder in self._spans():
            features[..., span] = encoder.restore(features[..., span])
        return features

    def weigh_columns(self, layout: Layout | None) -> Array:
        """Return the share of each column in the variance of the prepared rows."""
        assert self.variance is not None  # of a fit
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.variance.sum()
            shares = self.variance / (total if total > 0.0 else 1.0)
        shares = np.nan_to_num(shares)
        return shares if layout is None else np.bincount(layout.column, shares)

    def inverse_deviation(self, mean: Array, deviation: Array) -> Array:
        """Return standard deviations around a prepared mean in the units of the table.

        On a logarithmic scale: half the distance of what is one deviation above and
        below.
        """
        found = deviation * self.scale
        high, low = (self.inverse_transform(mean + s * deviation) for s in (1.0, -1.0))
        for span, encoder in self._spans():
            if isinstance(encoder, NumberEncoder) and encoder.unit is not None:
                found[span] = (high[span] - low[span]) / 2.0
        return np.asarray(found)

    def decode(self, rows: Array) -> Array:
        """Return prepared rows as the values of the columns: words, dates, numbers."""
        features = np.asarray(rows) * self.scale + self.center
        columns = [encoder.decode(features[:, span]) for span, encoder in self._spans()]
        values = np.empty((len(features), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            values[:, j] = column
        return values

    def _spans(self) -> Iterator[tuple[slice, Encoder]]:
        if self.encoders:
            spans = Layout.of(self.encoders).slices()
            for span, (_, encoder) in zip(spans, self.encoders, strict=True):
                yield span, encoder


@dataclass(frozen=True)
class ColumnMoments:
    """Weight of the values, mean and sum of squared deviations, by column."""

    count: Array
    mean: Array
    squares: Array

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """Return the moments of both together, without a loss of digits."""
        count = self.count + other.count
        share = other.count / np.where(count > 0.0, count, 1.0)
        step = other.mean - self.mean
        return ColumnMoments(
            count,
            self.mean + step * share,
            self.squares + other.squares + step * step * self.count * share,
        )


def fit_scaling(
    source: Source,
    scaling: str,
    missing: str,
    workers: Workers,
    on_block: Callable[[], Any] = lambda: None,
    weights: Array | None = None,
    layout: Layout | None = None,
) -> tuple[Preparation, Array | None]:
    """Return the preparation of a table, and which rows are kept if some are not.

    `on_block` is called after each of the `n_blocks` blocks.  A `layout` says which
    features are scaled together; without one, each is scaled separately.
    """
    if source.is_sparse:
        _check_sparse(scaling, missing)
    moments, complete = _scan(source, missing, workers, on_block, weights)
    kept = np.flatnonzero(complete) if not complete.all() else None
    if missing in _FILLING:
        kept = None
        _check_some_value(source, moments)
    n_rows = len(source) if kept is None else len(kept)
    if n_rows == 0:
        raise ValueError(
            f"{source.path} has a missing value in every row: missing='drop' leaves "
            "none. Use missing='mean', or leave out columns."
        )
    # A filled value is the mean: it adds nothing to the squares.
    total = (
        n_rows
        if weights is None
        else weights[slice(None) if kept is None else kept].sum()
    )
    if missing == "fill":  # few values are not stretched by many gaps
        total = moments.count
    deviation = np.sqrt(moments.squares / total)
    if scaling != "none":
        _check_finite(source, deviation)
    spread = np.where(_is_constant(deviation, moments.mean), 0.0, deviation)
    measured = np.ones(source.shape[1], bool) if layout is None else layout.is_measured
    fill, quartiles = None, None
    if missing in _FILLING:
        fill = moments.mean.copy()
    if scaling == "robust" or missing == "fill":
        filled = fill if missing == "mean" else None
        quartiles, n_quartile_rows = _find_quartiles(
            source, kept, filled, weights, measured
        )
        quartiles = np.where(np.isnan(quartiles), moments.mean, quartiles)
        if missing == "fill" and fill is not None:
            fill[measured] = quartiles[1][measured]
    center, scale = np.zeros(len(spread)), np.ones(len(spread))
    if scaling != "none":
        scale = scale_parts(spread, layout)
        if not source.is_sparse:
            center = moments.mean.copy()
    if scaling == "robust" and quartiles is not None:
        low, middle, high = quartiles
        # A column most of whose values are equal has no range between the quartiles:
        # its standard deviation takes the place.
        ranges = np.where(_is_constant(high - low, middle), scale, high - low)
        center[measured], scale[measured] = middle[measured], ranges[measured]
        n_rows = n_quartile_rows
    with np.errstate(over="ignore"):
        variance = np.square(spread / scale)
    n_filled = 0 if fill is None else int(np.count_nonzero(~complete))
    return Preparation(center, scale, fill, n_rows, variance, n_filled), kept


def _check_finite(source: Source, deviation: Array) -> None:
    if not np.isfinite(deviation).all():
        column = _name(source, int(np.flatnonzero(~np.isfinite(deviation))[0]))
        raise ValueError(
            f"{source.path} has values in column {column!r} that are too large to "
            "scale; their squares overflow."
        )


def scale_parts(spread: Array, layout: Layout | None) -> Array:
    """Return the scale of each feature that makes the variance of its part the weight.

    It is 1 for constants.
    """
    if layout is None:
        return np.where(spread > 0.0, spread, 1.0)
    largest = np.zeros(len(layout.weight))
    np.maximum.at(largest, layout.part, spread)
    largest = np.where(largest > 0.0, largest, 1.0)
    # In units of the largest, whose square cannot vanish.
    shares = np.square(spread / largest[layout.part])
    total = np.bincount(layout.part, shares, minlength=len(layout.weight))
    scale = largest * np.sqrt(np.where(total > 0.0, total / layout.weight, 1.0))
    return np.asarray(scale[layout.part])


def column_moments(source: Source, workers: Workers) -> ColumnMoments:
    """Return number, mean and squares of the values of each column that are there."""
    return _scan(source, "mean", workers)[0]


def n_blocks(source: Source) -> int:
    """Return the number of blocks of a pass."""
    return len(_slices(source))


def find_complete_rows(source: Source, workers: Workers) -> Array | None:
    """Return the numbers of the rows without a missing value; None if all are."""

    def complete(span: tuple[int, int]) -> Array:
        gaps: Array = np.isnan(toarray(source.read(*span)))
        return np.logical_not(gaps.any(axis=1))

    found = np.concatenate(list(workers.map(complete, _slices(source))))
    return None if found.all() else np.flatnonzero(found)


def _slices(source: Source) -> list[tuple[int, int]]:
    return block_slices(len(source), block_height(source.shape[1], 0))


def _scan(
    source: Source,
    missing: str,
    workers: Workers,
    on_block: Callable[[], Any] = lambda: None,
    weights: Array | None = None,
) -> tuple[ColumnMoments, Array]:
    """Return the moments, and which rows have a value everywhere, in one pass."""

    def scan(span: tuple[int, int]) -> tuple[ColumnMoments, Array]:
        block = source.read(*span)
        own = None if weights is None else weights[slice(*span)]
        check_values(source, block, span[0], missing)
        if source.is_sparse:
            return _sparse_moments(block, own), np.ones(block.shape[0], bool)
        gaps = np.isnan(block)
        complete: Array = np.logical_not(gaps.any(axis=1))
        if missing == "drop":
            block, gaps = block[complete], gaps[complete]
            own = None if own is None else own[complete]
        return _dense_moments(block, gaps, own), complete

    parts, moments = [], None
    for part, complete in workers.map(scan, _slices(source)):
        parts.append(complete)
        moments = part if moments is None else moments.merge(part)
        on_block()
    assert moments is not None  # a source has at least one row
    return moments, np.concatenate(parts)


def _dense_moments(block: Array, gaps: Array, weights: Array | None) -> ColumnMoments:
    # In one order whatever the table has, as the bits of a sum depend on it; columns
    # that lie together are summed in pairs, which keeps constant ones constant.
    values = block.astype(np.float64, order="F")
    values[gaps] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is None:
            count = len(values) - gaps.sum(axis=0).astype(np.float64)
            mean = values.sum(axis=0) / np.maximum(count, 1.0)
        else:
            count = weights @ ~gaps
            mean = (weights @ values) / np.where(count > 0.0, count, 1.0)
        values -= mean
        values[gaps] = 0.0
        if weights is None:
            return ColumnMoments(count, mean, np.einsum("ij,ij->j", values, values))
        return ColumnMoments(count, mean, weights @ np.square(values))


def _sparse_moments(block: Block, weights: Array | None) -> ColumnMoments:
    wide = sparse.csr_array(block, dtype=np.float64)
    ones = np.ones(wide.shape[0]) if weights is None else weights
    n = ones.sum()
    mean = np.asarray(ones @ wide) / max(n, np.finfo(float).tiny)
    squares = np.asarray(ones @ wide.multiply(wide)) - n * mean**2
    return ColumnMoments(np.full(wide.shape[1], n), mean, np.maximum(squares, 0.0))


def _find_quartiles(
    source: Source,
    kept: Array | None,
    fill: Array | None,
    weights: Array | None,
    measured: Array,
) -> tuple[Array, int]:
    """Return the quartiles of measured features, of all rows or a sample, and how many.

    Gaps are filled, if there is something to fill them with, and not counted otherwise;
    NaN for a feature that is not measured or has no value in the sample.
    """
    numbers = np.arange(len(source)) if kept is None else kept
    if weights is not None:
        numbers = numbers[weights[numbers] > 0.0]
    most = max(EXACT_VALUES // source.shape[1], 1_000)
    if len(numbers) > most:
        drawn = np.random.default_rng(0).choice(len(numbers), most, replace=False)
        numbers = numbers[np.sort(drawn)]
    wanted = np.flatnonzero(measured)
    values = np.empty((len(wanted), len(numbers)))
    height = block_height(source.shape[1], 0)
    for start, stop in block_slices(len(numbers), height):  # a block takes little
        rows = numbers[start:stop]
        is_run = rows[-1] - rows[0] == len(rows) - 1
        block = source.read(rows[0], rows[-1] + 1) if is_run else source.take(rows)
        values[:, start:stop] = toarray(block)[:, wanted].T
    found = np.full((3, source.shape[1]), np.nan)
    points = [0.25, 0.5, 0.75]
    for j, column in zip(wanted.tolist(), values, strict=True):
        gaps = np.isnan(column)
        if fill is not None:
            column[gaps] = fill[j]
            gaps[:] = False
        own = column[~gaps] if gaps.any() else column
        if not len(own):
            continue
        if weights is None:
            found[:, j] = np.quantile(own, points, overwrite_input=True)
        else:
            found[:, j] = np.quantile(
                own, points, weights=weights[numbers][~gaps], method="inverted_cdf"
            )
    return found, len(numbers)


def _is_constant(spread: Array, center: Array) -> Array:
    noise = _CONSTANT_ROUNDINGS * np.finfo(np.float64).eps * np.abs(center)
    return np.asarray(spread <= noise)


def _check_sparse(scaling: str, missing: str) -> None:
    if scaling == "robust":
        raise ValueError(
            "scale='robust' should be 'standard' or 'none' for a sparse table: most of "
            "its values are zero, and so are the medians."
        )
    if missing != "error":
        raise ValueError(
            f"missing={missing!r} should be 'error' for a sparse table: what is not "
            "stored is zero."
        )


def check_values(
    source: Source, block: Block, first: int, missing: str, advice: str = _IN_FIT
) -> None:
    """Raise where a value is infinite, or missing although that is an error."""
    found = find_not_finite(block, allow_nan=missing != "error")
    if found is not None:
        i, j, kind = found
        path, row = source.locate(first + i)
        where = f"row {row}, column {_name(source, j)!r}"
        if kind == "infinity":
            raise ValueError(f"{path} has an infinite value in {where}.")
        raise ValueError(f"{path} has no value (NaN) in {where}{advice}")


def _check_some_value(source: Source, moments: ColumnMoments) -> None:
    empty = np.flatnonzero(moments.count == 0.0)
    if len(empty):
        names = [_name(source, int(j)) for j in empty]
        raise ValueError(
            f"{source.path} has no value at all in {names}: there is no mean to fill "
            "in. Leave out such columns with exclude=."
        )


def _name(source: Source, j: int) -> str | int:
    columns = getattr(source, "column_names", None)
    if columns is not None:
        return str(columns[j])
    return j if source.feature_names is None else source.feature_names[j]
