"""What a model keeps of its fit: sizes, typical distances, quantiles of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.cluster.reference import (
    MOST_COLUMNS,
    TAIL_SHARES,
    Reference,
    column_spans,
)
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import PreparedSource
from sketchmeans.data.rows import Block, Rows, as_rows
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.derived import ArraySource
from sketchmeans.diagnostics.column_counts import count_columns, find_edges
from sketchmeans.diagnostics.fitted import divide
from sketchmeans.diagnostics.scoring import (
    ScoredBlock,
    ScoredRows,
    fitted_estimator,
    join_blocks,
)
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_integer

#: Values of a sample that are looked at, and the fewest rows.
_SAMPLE_VALUES, _LEAST_ROWS = 2**22, 2_000
#: Rows of the overall spread that are added to a segment: small ones have a scale, too.
_PRIOR_ROWS = 10.0


def calibrate(
    model: Any, X: Any, *, sample_size: int = 20_000, random_state: Any = 0
) -> Reference:
    """Keep what other rows are compared with, from a sample of the rows of the fit.

    Sets ``model.reference_``, which model files keep, and which a new `fit` drops:

    - ``variance``, the σ² of `soft_membership`: the mean of
      ``((‖φ(x) − c_l‖² − ‖φ(x) − c_j‖² − D_jl) / 2√D_jl)²`` over rows of j and all
      other centres l, with ``D_jl = ‖c_j − c_l‖²``: the variance of the rows of a
      segment along the lines to other centres;
    - ``scales`` and ``tail``, beyond which `score_rows` calls a row unusual;
    - sizes of segments, and quantiles or shares of levels of up to 1,000 columns, for
      `drift`.

    Costs n·m·(d + k) for the rows of the sample.

    Parameters
    ----------
    model : fitted estimator or TableClusterer
    X : table
        The rows of the fit.
    sample_size : int, default=20_000
        Rows to look at; fewer where rows are wide or centres many.
    random_state : int, Generator or None, default=0

    See Also
    --------
    score_rows : Uses what is learned here for new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans, diagnostics
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = NystromKMeans(4, random_state=0).fit(X)
    >>> calibrate(model, X).sizes.sum()
    np.int64(2000)
    >>> diagnostics.score_rows(model, X).unusual.mean().round(2)
    np.float64(0.01)
    """
    sample_size = check_integer("sample_size", sample_size, low=2)
    inner = fitted_estimator(model)
    columns = column_spans(model)
    n_clusters = len(getattr(inner, "cluster_sizes_", ()))
    widest = max(inner.n_features_in_, n_clusters, 1)
    size = min(sample_size, max(_LEAST_ROWS, _SAMPLE_VALUES // widest))
    n_rows, raw, table = _sample(model, X, size, as_generator(random_state))
    with Workers(inner.n_jobs) as workers:
        rows = ScoredRows(inner, table, workers)
        found = join_blocks(rows.blocks(0, len(rows.rows)), inner)
    scales = _find_scales(found)
    tail = np.quantile(found.score(scales), 1.0 - TAIL_SHARES, method="inverted_cdf")
    edges = counts = None
    if len(columns) <= MOST_COLUMNS:
        edges = find_edges(columns, raw)
        counts = count_columns(columns, edges, raw)
    model.reference_ = Reference(
        n_rows=n_rows,
        n_sampled=len(found.squared),
        sizes=_count_sizes(inner, n_rows, found.nearest.labels),
        variance=_find_variance(found),
        scales=scales,
        tail=tail,
        edges=edges,
        columns=counts,
    )
    return model.reference_


def _sample(
    model: Any, X: Any, size: int, rng: np.random.Generator
) -> tuple[int, Block, Any]:
    """Return the number of rows, raw rows of a sample, and these as they are fitted."""
    source: PreparedSource | None = None
    rows: Source | Rows
    if isinstance(model, TableClusterer):
        source = X if isinstance(X, PreparedSource) else model.prepare(X)
        n_rows, rows = len(source), source.inner
    else:
        with Workers(1) as workers:
            rows = as_rows(validate_input(model, X, reset=False), workers)
        n_rows = len(rows)
    numbers = np.arange(n_rows)
    if n_rows > size:
        numbers = np.sort(rng.choice(n_rows, size, replace=False))
    raw = rows.take(numbers if source is None else source.numbers(numbers))
    inner = getattr(model, "estimator_", model)
    sample: Source = ArraySource(raw, getattr(inner, "feature_names_in_", None))
    if source is not None:
        sample = PreparedSource(sample, source.preparation)
    return n_rows, raw, sample


def _count_sizes(model: Any, n_rows: int, labels: Array) -> Array:
    """Return the rows of each cluster: all of them if that is known.

    Sizes of a fit with weights are sums of these; those of a sample then have to do.
    """
    sizes = np.round(model.cluster_sizes_)
    if (sizes == model.cluster_sizes_).all() and sizes.sum() == n_rows:
        return np.asarray(sizes.astype(np.int64))
    return np.bincount(labels, minlength=len(sizes)).astype(np.int64)


def _find_scales(found: ScoredBlock) -> Array:
    """Return the typical distance of a row by cluster."""
    k = found.squared.shape[1]
    counts = np.bincount(found.nearest.labels, minlength=k)
    sums = np.bincount(found.nearest.labels, found.reach**2, k)
    overall = max(sums.sum() / counts.sum(), np.finfo(np.float64).tiny)
    return np.sqrt((sums + _PRIOR_ROWS * overall) / (counts + _PRIOR_ROWS))


def _find_variance(found: ScoredBlock) -> float:
    """Return the variance of rows about their centre, along lines to other centres."""
    labels, squared = found.nearest.labels, found.squared
    k = squared.shape[1]
    excess = squared - squared[np.arange(len(labels)), labels, None]
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    sums = np.array([np.bincount(labels, column, k) for column in excess.T]).T
    # A centre is the mean of its rows: so much farther are these from another one.
    between = np.maximum(divide(sums, counts[:, None], 0.0), 0.0)
    apart = between[labels]
    terms = divide((excess - apart) ** 2, 4.0 * apart, 0.0)
    n_terms = int((apart > 0.0).sum())
    if not n_terms:
        return 1.0
    # Rows that all lie at their centres belong to these alone.
    least = 1e-9 * float(between.max())
    return max(float(terms.sum()) / n_terms, least)
