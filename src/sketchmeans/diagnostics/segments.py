"""Who the clusters are: names, sizes, facts, typical rows, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.cluster.segment_names import check_segment_names, segment_names
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import Column, PreparedSource
from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics.described import Described, open_described
from sketchmeans.diagnostics.fitted import has_given_kernel
from sketchmeans.diagnostics.members import (
    Members,
    draw_members,
    members_per_cluster,
)
from sketchmeans.diagnostics.segment_facts import Fact, find_facts, take_members
from sketchmeans.diagnostics.segment_wording import format_percent, name_segments
from sketchmeans.diagnostics.stability import measure_stability, rows_per_cluster
from sketchmeans.diagnostics.summary import ClusterSummary, summarize_members
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator
from sketchmeans.theory.results import Result

#: Facts about a segment that are shown.
N_FACTS = 3
#: Words for how likely a segment is found again, from the least value on.
_VERDICTS = (
    (0.85, "stable", "another sample would show it again"),
    (0.75, "rather stable", "another sample would show about the same"),
    (0.6, "uncertain", "its borders may move in another sample"),
    (0.0, "unstable", "another sample may not show it"),
)


@dataclass(frozen=True, repr=False)
class Segment(Result):
    """A cluster in words.

    Attributes
    ----------
    label : int
        The label of its rows.
    name : str
    size : int
        Number of its rows, and `share` of all.
    share : float
    facts : tuple of Fact
        What sets it apart, the strongest first.
    typical : tuple of str
        The rows nearest to the centre, by their id or their number.
    stability : float or None
        Mean Jaccard coefficient with the most similar cluster of resampled rows.

    Examples
    --------
    >>> from sketchmeans import NystromKMeans, TableClusterer, diagnostics
    >>> from sketchmeans.datasets import make_customers
    >>> table, _ = make_customers(800)
    >>> model = TableClusterer(NystromKMeans(4, random_state=0)).fit(table)
    >>> segments = diagnostics.describe_segments(model, table).segments
    >>> max(segments, key=lambda segment: segment.size).name
    'Low revenue, signed up recently'
    """

    label: int
    name: str
    size: int
    share: float
    facts: tuple[Fact, ...]
    typical: tuple[str, ...]
    stability: float | None

    @property
    def headline(self) -> str:
        """Name, share and the strongest facts in a line."""
        start = f"{self.name}, {format_percent(self.share)}"
        facts = ", ".join(fact.text for fact in self.facts[:2])
        return f"{start}: {facts}" if facts else start

    @property
    def verdict(self) -> tuple[str, str] | None:
        """How sure the segment is: in a word, and in a sentence."""
        if self.stability is None or not self.stability >= 0.0:
            return None
        return next(v[1:] for v in _VERDICTS if self.stability >= v[0])

    def to_dict(self) -> dict[str, Any]:
        """Return all values in types for JSON, with the words that they have."""
        facts = [
            {"column": f.column, "level": f.level, "strength": f.strength}
            | {"value": f.value, "overall": f.overall, "text": f.text}
            for f in self.facts
        ]
        sure = self.verdict
        return super().to_dict() | {
            "facts": facts,
            "headline": self.headline,
            "verdict": None if sure is None else sure[0],
        }


@dataclass(frozen=True, repr=False)
class Segments(Result):
    """All clusters of a model in words.

    Attributes
    ----------
    segments : tuple of Segment
        In the order of labels.
    n_rows, n_sampled : int
        Rows of the table, and those of which the facts are: of each segment up to a
        number, chosen at random.
    id_column : str or None
        The column that names typical rows; None for row numbers.
    note : str

    Examples
    --------
    >>> from sketchmeans import NystromKMeans, TableClusterer
    >>> from sketchmeans.datasets import make_customers
    >>> from sketchmeans.diagnostics import describe_segments
    >>> table, _ = make_customers(800)
    >>> model = TableClusterer(NystromKMeans(4, random_state=0)).fit(table)
    >>> sum(segment.size for segment in describe_segments(model, table).segments)
    800
    """

    segments: tuple[Segment, ...]
    n_rows: int
    n_sampled: int
    id_column: str | None
    note: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the order of labels."""
        return tuple(segment.name for segment in self.segments)

    def by_size(self) -> list[Segment]:
        """Return the segments, the largest first."""
        return sorted(self.segments, key=lambda segment: -segment.size)

    def _lines(self) -> list[tuple[str, str]]:
        return [("", segment.headline) for segment in self.by_size()]


def describe_segments(
    model: Any,
    X: Any,
    *,
    id_column: str | int | None = None,
    feature_names: Sequence[str] | None = None,
    random_state: Any = 0,
) -> Segments:
    """Describe the clusters of a fitted model in words, and in the units of a table.

    A name is made of what sets a cluster apart, unless ``model.segment_names_`` has
    one.  Facts compare medians, or shares of categories, with those of all rows; those
    of large tables come from up to 20,000 rows, of each cluster the same number.  They
    are ranked by Cliff's delta, ``P(x > y) − P(x < y)`` of a row x of the cluster and a
    row y of the others.  The stability of a cluster is its mean Jaccard coefficient,
    ``(rows in both)/(rows in either)``, with the most similar cluster of each of 20
    fits (4 of a `SpectralKMeans`) to resampled rows, 1,500 at a time.

    Costs a pass over the rows.

    Parameters
    ----------
    model : TableClusterer, KernelKMeans, NystromKMeans, SketchedKMeans or \
SpectralKMeans
        Fitted; also at the end of a `Pipeline`, whose segments are described by the
        columns that are given to it.
    X : DataFrame, array-like, sparse matrix, path or `Source`
        As a rule the table of the fit.
    id_column : str or int, optional
        Column that names rows, for typical ones; a number where columns have no names.
        Default is the first that the fit
        took for an identifier, or else row numbers.
    feature_names : sequence of str, optional
        Names of the columns where they have none.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from sketchmeans import NystromKMeans, TableClusterer
    >>> from sketchmeans.datasets import make_customers
    >>> table, _ = make_customers(800)
    >>> model = TableClusterer(NystromKMeans(4, random_state=0)).fit(table)
    >>> found = describe_segments(model, table)
    >>> len(set(found.names)), found.id_column
    (4, 'customer_id')
    """
    opened = open_described(model, X, feature_names)
    id_column = find_id_column(opened, id_column)
    summary, members = summarize_members(opened)
    return describe_members(
        opened,
        members,
        summary.exemplar_indices,
        ids=read_ids(opened, id_column, summary),
        rng=as_generator(random_state),
    )


def name_fitted(model: TableClusterer, X: Any) -> Segments:
    """Name the clusters of a fit from its labels: without a pass over all rows.

    Sets ``segment_names_``; how stable the segments are is not measured.
    """
    opened = open_described(model, X)
    labels = opened.source.select(np.asarray(model.labels_))
    k = len(model.cluster_sizes_)
    members = draw_members(labels, k, members_per_cluster(k, len(opened.names)))
    typical = np.asarray(model.exemplar_indices_)[:, None]
    found = describe_members(opened, members, typical)
    model.segment_names_ = check_segment_names(found.names, k)
    return found


@dataclass(frozen=True)
class Ids:
    """What typical rows are called: the column, and its values by row number."""

    column: str
    values: dict[int, str]


def find_id_column(opened: Described, column: Column | None) -> Column | None:
    """Return the column that names rows, given or found; None if there is none."""
    if opened.table is None:
        if column is not None:
            raise ValueError(
                f"id_column={column!r} should be None: X holds features alone. A "
                "TableClusterer or a Pipeline takes a table with other columns."
            )
        return None
    columns = opened.table.columns
    if column is not None:
        if column not in columns:
            known = ", ".join(map(str, columns[:20]))
            raise ValueError(f"id_column={column!r} should be a column of X: {known}.")
        return column
    found = [plan.name for plan in opened.plan if plan.kind == "identifier"]
    return next((name for name in found if name in columns), None)


def read_ids(
    opened: Described, column: Column | None, summary: ClusterSummary
) -> Ids | None:
    """Return the ids of typical rows."""
    if opened.table is None or column is None:
        return None
    from sketchmeans.data.sources.arrow import to_values

    numbers = np.unique(summary.exemplar_indices[summary.exemplar_indices >= 0])
    records = opened.table.records([column]).take(numbers)
    pairs = zip(numbers.tolist(), to_values(records.column(0)), strict=True)
    texts = {n: _format_id(value) for n, value in pairs if value is not None}
    return Ids(records.schema.names[0], texts)


def _format_id(value: Any) -> str:
    """Return an id as text; one that is kept as a float has no decimals."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def describe_members(
    opened: Described,
    members: Members,
    typical: Array,
    *,
    ids: Ids | None = None,
    are_images: bool = False,
    rng: np.random.Generator | None = None,
) -> Segments:
    """Return the segments of which members are known; their stability with an `rng`.

    Of images there are no facts: a pixel says nothing.
    """
    inner, source = opened.inner, opened.source
    facts: list[list[Fact]] = [[] for _ in members.sizes]
    stability = None
    if not has_given_kernel(inner):
        with Workers(inner.n_jobs) as workers:
            rows = as_rows(validate_input(inner, source, reset=False), workers)
            block = take_members(opened.units, rows, members.numbers)
            names = [] if are_images else opened.names
            facts = find_facts(opened.units, block, members, names)
            if rng is not None:
                places = members.first(rows_per_cluster(len(members.sizes)))
                few = members.select(places)
                if opened.units is not source:
                    drawn = rows.take(few.numbers)
                elif isinstance(source, PreparedSource):
                    drawn = source.prepare(block[places])
                else:
                    drawn = block[places]
                stability = measure_stability(
                    inner, drawn, few.labels, few.weights, rng
                )
    found = name_segments(facts, members.sizes.tolist())
    if any(hasattr(one, "segment_names_") for one in (opened.model, inner)):
        found = list(segment_names(opened.model))
    n = int(members.sizes.sum())
    return Segments(
        tuple(
            Segment(
                label=j,
                name=found[j],
                size=int(size),
                share=float(size) / max(n, 1),
                facts=tuple(facts[j][:N_FACTS]),
                typical=_name_rows(typical[j], ids),
                stability=None if stability is None else float(stability[j]),
            )
            for j, size in enumerate(members.sizes.tolist())
        ),
        n_rows=n,
        n_sampled=len(members.numbers),
        id_column=None if ids is None else ids.column,
        note=_describe_sample(members, stability),
    )


def _name_rows(numbers: Array, ids: Ids | None) -> tuple[str, ...]:
    known = {} if ids is None else ids.values
    return tuple(known.get(n, f"row {n:,}") for n in numbers.tolist() if n >= 0)


def _describe_sample(members: Members, stability: Array | None) -> str:
    """Say what the facts are of, and how it was found how sure the segments are."""
    texts = []
    if not members.are_all:
        most = int(np.bincount(members.labels).max())
        texts.append(
            f"Facts are of a random sample of {len(members.numbers):,} rows, up to "
            f"{most:,} of each segment; sizes are of all rows."
        )
    if stability is not None:
        size = len(members.first(rows_per_cluster(len(members.sizes))))
        texts.append(
            f"Stability: {size:,} rows were resampled and clustered again several "
            "times; it is the share of rows that a segment and the most similar new "
            "one have in common (mean Jaccard coefficient; below 0.6, do not rely on "
            "it)."
        )
    return " ".join(texts)
