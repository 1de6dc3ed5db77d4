"""A made-up table of customers, with four planted segments."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from sketchmeans.numerics.atomic_file import open_atomic
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import as_generator, check_integer

PLANS = "free", "basic", "plus", "business"
REGIONS = "north", "south", "east", "west", "abroad"
#: The first and the last day of the table.
_START, _END = np.datetime64("2018-01-01"), np.datetime64("2024-12-31")
#: Share of the ages and of the days since the last order that nobody knows.
_UNKNOWN = 0.03


@dataclass(frozen=True)
class _Segment:
    """What the customers of a segment have in common, and their share of all."""

    name: str
    share: float
    plans: tuple[float, ...]
    regions: tuple[float, ...]
    #: Mean and standard deviation.
    years: tuple[float, float]
    age: tuple[float, float]
    #: Mean number; median.
    orders: float
    basket: float
    days_since_order: float
    #: Shares of yes.
    newsletter: float
    churned: float


_SEGMENTS = (
    _Segment(
        "bargain hunters",
        0.36,
        plans=(0.68, 0.27, 0.04, 0.01),
        regions=(0.3, 0.3, 0.2, 0.15, 0.05),
        years=(2.0, 0.8),
        age=(29.0, 6.0),
        orders=6.0,
        basket=16.0,
        days_since_order=50.0,
        newsletter=0.85,
        churned=0.2,
    ),
    _Segment(
        "regulars",
        0.3,
        plans=(0.04, 0.36, 0.57, 0.03),
        regions=(0.25, 0.2, 0.3, 0.2, 0.05),
        years=(4.8, 0.8),
        age=(50.0, 9.0),
        orders=42.0,
        basket=34.0,
        days_since_order=14.0,
        newsletter=0.7,
        churned=0.04,
    ),
    _Segment(
        "companies",
        0.12,
        plans=(0.01, 0.04, 0.15, 0.8),
        regions=(0.15, 0.1, 0.1, 0.25, 0.4),
        years=(3.3, 1.2),
        age=(43.0, 7.0),
        orders=130.0,
        basket=260.0,
        days_since_order=7.0,
        newsletter=0.1,
        churned=0.03,
    ),
    _Segment(
        "drifting away",
        0.22,
        plans=(0.4, 0.55, 0.04, 0.01),
        regions=(0.2, 0.3, 0.2, 0.2, 0.1),
        years=(5.2, 0.8),
        age=(38.0, 9.0),
        orders=4.0,
        basket=52.0,
        days_since_order=420.0,
        newsletter=0.12,
        churned=0.85,
    ),
)


def make_customers(
    n_samples: int = 3_000, *, random_state: Any = 0
) -> tuple[Any, Array]:
    """Make a table of customers as a shop would export it, with four segments in it.

    Costs a few draws for each value.

    Parameters
    ----------
    n_samples : int, default=3,000
        Number of customers.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    table : DataFrame
        Of pandas; a table of pyarrow or a dict of lists where pandas is missing.

        - "customer_id", "email": identifiers;
        - "plan", "region": categories;
        - "signed_up": a date;
        - "age", "days_since_order": numbers, with gaps;
        - "orders": a count;
        - "revenue": an amount, of which few customers have most;
        - "newsletter", "churned": yes or no.
    segments : ndarray of shape (n_samples,)
        The name of the segment of each customer.

    See Also
    --------
    write_customers : The same in a file.

    Examples
    --------
    >>> table, segments = make_customers(500)
    >>> len(table), sorted(set(segments.tolist()))
    (500, ['bargain hunters', 'companies', 'drifting away', 'regulars'])
    """
    columns, segments = _make_columns(n_samples, random_state)
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:  # pragma: no cover - tests have pandas
        return _without_pandas(columns), segments
    return pd.DataFrame(columns), segments


def write_customers(
    path: str | os.PathLike[str], n_samples: int = 3_000, *, random_state: Any = 0
) -> Array:
    """Write the table of `make_customers` to a CSV file; return the segments.

    Costs the table and its text in memory.

    Parameters
    ----------
    path : str or PathLike
        A file that exists is replaced.
    n_samples, random_state
        As in `make_customers`.

    See Also
    --------
    make_customers : The same as a data frame.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "customers.csv")
    ...     segments = write_customers(path, 20)
    ...     print(path.read_text().splitlines()[0])
    customer_id,email,plan,region,signed_up,age,orders,revenue,days_since_order,newsletter,churned
    """
    columns, segments = _make_columns(n_samples, random_state)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    writer.writerows([_format_cell(value) for value in row] for row in rows)
    with open_atomic(os.fspath(path)) as file:
        file.write(text.getvalue().encode())
    return segments


def _format_cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, float):  # ages and days are floats for the sake of gaps
        return "" if value != value else f"{value:.15g}"
    return str(value)


def _make_columns(n_samples: int, random_state: Any) -> tuple[dict[str, Array], Array]:
    n = check_integer("n_samples", n_samples)
    rng = as_generator(random_state)
    shares = [segment.share for segment in _SEGMENTS]
    number = rng.choice(len(_SEGMENTS), size=n, p=shares)

    def each(name: str) -> Array:
        return np.array([getattr(segment, name) for segment in _SEGMENTS])[number]

    def draw_level(levels: tuple[str, ...], name: str) -> Array:
        limits = each(name).cumsum(axis=1)
        drawn = (rng.random((n, 1)) > limits).sum(axis=1)
        return np.array(levels, dtype=object)[np.minimum(drawn, len(levels) - 1)]

    def draw_normal(name: str) -> Array:
        mean, deviation = each(name).T
        return rng.normal(mean, deviation)

    def draw_yes(name: str) -> Array:
        return np.where(rng.random(n) < each(name), "yes", "no").astype(object)

    days = (np.clip(draw_normal("years"), 0.05, 6.9) * 365.25).astype(int)
    orders = 1 + rng.poisson(each("orders") * rng.lognormal(-0.06, 0.35, n))
    basket = each("basket") * rng.lognormal(0.0, 0.35, n)
    since = np.ceil(each("days_since_order") * rng.lognormal(0.0, 0.5, n))
    age = np.clip(np.round(draw_normal("age")), 18, 90)
    for column in (age, since):
        column[rng.random(n) < _UNKNOWN] = np.nan
    ids = 10_000 + rng.permutation(n)
    columns = {
        "customer_id": np.array([f"C-{one}" for one in ids], dtype=object),
        "email": np.array([f"user{one}@example.com" for one in ids], dtype=object),
        "plan": draw_level(PLANS, "plans"),
        "region": draw_level(REGIONS, "regions"),
        "signed_up": np.maximum(_END - days, _START).astype("datetime64[s]"),
        "age": age,
        "orders": orders,
        "revenue": np.round(orders * basket, 2),
        "days_since_order": since,
        "newsletter": draw_yes("newsletter"),
        "churned": draw_yes("churned"),
    }
    names = np.array([segment.name for segment in _SEGMENTS])
    return columns, names[number]


def _without_pandas(columns: dict[str, Array]) -> Any:  # pragma: no cover
    lists = {name: column.tolist() for name, column in columns.items()}
    try:
        import pyarrow as pa
    except ImportError:
        return lists
    return pa.table(lists)
