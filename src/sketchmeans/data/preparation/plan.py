"""The plan for a table: which columns are used, as what, and which are left out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchmeans.data.input import check_weights
from sketchmeans.data.preparation.column_plan import (
    LEFT_OUT,
    USED_KINDS,
    ColumnPlan,
    Rules,
)
from sketchmeans.data.preparation.dependence import weigh_columns
from sketchmeans.data.preparation.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    Layout,
    NumberEncoder,
)
from sketchmeans.data.preparation.kinds import PLANNERS, find_kind, force_kind
from sketchmeans.data.preparation.tables import Table
from sketchmeans.data.preparation.values import is_number, to_words
from sketchmeans.data.sources.derived import check_known, shorten_list, show_names
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

    from sketchmeans.data.sources.records import Records

#: Rows that are read to find the kinds of columns, and how many values at most.
SAMPLE_ROWS, _SAMPLE_VALUES = 50_000, 2**23
#: Columns of this correlation are redundant, if this share of their values is in the
#: same rows; searched in this many rows and columns.
_SAME, _SHARED, _PAIR_ROWS, _PAIR_COLUMNS = 0.9999, 0.9, 5_000, 2_000
_WORDS = (BooleanEncoder, CategoryEncoder)
#: What a forced column may be where its kind is not given.
_KEPT_ANYWAY = ("identifier", "code", "constant")
#: Rows at the end among which a row of totals stands out.
_LAST_ROWS = 100


def check_as_kinds(as_kinds: Any) -> dict[str, str]:
    """Return the kinds that a user gave columns, by name; raise if some are wrong."""
    if as_kinds is None:
        return {}
    if not isinstance(as_kinds, Mapping):
        raise ValueError(
            f"as_kinds={as_kinds!r} should be a dictionary such as "
            "{'zip': 'category'}, or None."
        )
    for name, kind in as_kinds.items():
        if kind not in USED_KINDS:
            raise ValueError(
                f"as_kinds={{{name!r}: {kind!r}}} should be one of {USED_KINDS}."
            )
    return dict(as_kinds)


def plan_table(
    table: Table,
    columns: Sequence[str],
    *,
    named: bool = False,
    as_kinds: Mapping[str, str] | None = None,
    scale: str = "auto",
    missing: str = "fill",
    sample_weight: Any = None,
) -> list[ColumnPlan]:
    """Return the plan for each of some columns of a table that has names.

    The kinds are those of all rows, or of a random sample of `SAMPLE_ROWS`.  Columns
    that the user `named` are used if they can be, whatever they look like.
    """
    wanted = check_as_kinds(as_kinds)
    check_known(table.path, list(wanted), table.columns)
    aside = [name for name in wanted if name not in columns]
    if aside:
        raise ValueError(
            f"as_kinds={dict(wanted)!r} should name columns that are clustered by; "
            f"{show_names(aside)} is left out."
        )
    records = table.records(list(columns))
    if not len(records):
        raise ValueError(f"{table.path} has no rows.")
    if table.dialect is None:  # of text, such a line is left out
        _warn_of_total(table.path, records)
    sample = _draw_sample(records, check_weights(sample_weight, len(records)))
    rules = Rules(len(records), scale, keeps_gaps=missing in ("fill", "mean"))
    plans = []
    for name in columns:
        column = sample.column(name)
        if name in wanted:
            plan = force_kind(name, column, wanted[name], rules)
        else:
            plan = find_kind(name, column, rules)
            if named and not plan.is_used:
                plan = _use_anyway(table.path, plan, column, rules)
        plans.append(plan)
    free = [] if named else [name for name in columns if name not in wanted]
    plans = _leave_out_duplicates(plans, sample, free)
    return weigh_columns(plans, sample, free) if scale == "auto" else plans


def check_usable(path: str, plans: Sequence[ColumnPlan]) -> None:
    """Raise if no column of a plan is used, and say why each is not."""
    if not any(plan.is_used for plan in plans):
        reasons = [f"{p.name!r} ({p.reason.removesuffix(': left out')})" for p in plans]
        raise ValueError(
            f"{path} has no column to cluster by: {shorten_list(reasons)}. Name "
            "columns with columns=, or their kinds with as_kinds=."
        )


def used(plans: Sequence[ColumnPlan]) -> list[ColumnPlan]:
    """Return the columns that clusters depend on."""
    return [plan for plan in plans if plan.is_used]


def layout_of(plans: Sequence[ColumnPlan]) -> Layout:
    """Return which features the used columns of a plan become."""
    layout = Layout.of([(p.name, p.encoder) for p in plans if p.encoder is not None])
    weights = np.array([plan.weight for plan in used(plans)])
    _, first = np.unique(layout.part, return_index=True)
    return replace(layout, weight=layout.weight * weights[layout.column[first]])


def _draw_sample(records: Records, weights: Array | None) -> pa.Table:
    """Return all records, or a random sample in the order of the table."""
    n = len(records)
    most = max(min(SAMPLE_ROWS, _SAMPLE_VALUES // max(len(records.schema), 1)), 100)
    numbers = np.arange(n) if weights is None else np.flatnonzero(weights > 0.0)
    if len(numbers) > most:
        drawn = np.random.default_rng(0).choice(len(numbers), most, replace=False)
        numbers = numbers[np.sort(drawn)]
    if len(numbers) == n:
        return records.read(0, n)
    return records.take(numbers)


def _warn_of_total(path: str, records: Records) -> None:
    """Warn if the last row seems to sum up the others."""
    from sketchmeans.data.sources.arrow import to_values
    from sketchmeans.data.sources.trim import is_total

    n = len(records)
    last = records.read(max(n - _LAST_ROWS, 0), n)
    columns = [map(str, to_values(column)) for column in last.itercolumns()]
    words = list(map(list, zip(*columns, strict=True)))
    cells = ["" if word in ("None", "nan") else word for word in words[-1]]
    if is_total(cells, words[:-1]):
        warnings.warn(
            f"The last row of {path} seems to sum up the others "
            f"({shorten_list([cell for cell in cells if cell])}), and is clustered as "
            "one of them: leave it out.",
            UserWarning,
            stacklevel=2,
        )


def _use_anyway(
    path: str, plan: ColumnPlan, column: pa.ChunkedArray, rules: Rules
) -> ColumnPlan:
    """Return a plan that uses a column in spite of its looks, as the user named it."""
    why = plan.reason.removesuffix(LEFT_OUT)
    kind = "numeric" if is_number(column.type) else "date"
    forced = PLANNERS[kind](plan.name, column, rules)
    if plan.kind in _KEPT_ANYWAY and forced.is_used:
        reason = f"{forced.reason}; used as it was named, in spite of: {why}"
        return ColumnPlan(plan.name, kind, reason, forced.encoder)
    raise ValueError(
        f"columns={[plan.name]} of {path} cannot be clustered by: {why}. Leave it out, "
        f"or give its kind with as_kinds={{{plan.name!r}: ...}}, one of {USED_KINDS}."
    )


# --- columns that say the same --------------------------------------------------------


def _leave_out_duplicates(
    plans: list[ColumnPlan], sample: pa.Table, free: Sequence[str]
) -> list[ColumnPlan]:
    """Return the plans without columns that say the same as one before them.

    Only columns in `free` are left out; of two, the one that is not free stays.
    """
    sample = sample.slice(0, _PAIR_ROWS)
    numbers = {
        plan.name: plan
        for plan in used(plans)
        if not isinstance(plan.encoder, CategoryEncoder)
    }
    same = {**_same_numbers(list(numbers.values()), sample, free)}
    words = [p for p in used(plans) if isinstance(p.encoder, _WORDS)]
    same |= _same_words([p for p in words if p.name not in same], sample, free)
    return [
        plan
        if plan.name not in same
        else ColumnPlan(
            plan.name, "duplicate", f"says the same as {same[plan.name]!r}: left out"
        )
        for plan in plans
    ]


def _same_numbers(
    plans: Sequence[ColumnPlan], sample: pa.Table, free: Sequence[str]
) -> dict[str, str]:
    """Return which columns follow from others by a factor and a shift."""
    n = sample.num_rows
    if n < 3 or not 1 < len(plans) <= _PAIR_COLUMNS:
        return {}
    values = np.empty((n, len(plans)))
    for j, plan in enumerate(plans):
        assert plan.encoder is not None
        # On the axis as it is stored: two columns of one amount may be scaled apart.
        encoder = plan.encoder
        if isinstance(encoder, NumberEncoder):
            encoder = replace(encoder, unit=None, shift=0.0)
        width = layout_of([plan]).column.size
        out = np.empty((n, width))
        encoder.encode(sample.column(plan.name), out)
        values[:, j] = out[:, 0]
    return _pick_same([plan.name for plan in plans], _correlate(values) > _SAME, free)


def _correlate(values: Array) -> Array:
    """Return the size of the correlation of each pair of columns where both are there.

    It is 0 where many of the values of one have none of the other beside them.
    """
    is_there = np.isfinite(values)
    there, count = is_there.astype(np.float64), is_there.sum(axis=0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        centred = np.where(is_there, values, 0.0)
        centred -= centred.sum(axis=0) / np.maximum(count, 1)
        centred[~is_there] = 0.0
        size = np.abs(centred).max(axis=0)
        centred /= np.where(size > 0.0, size, 1.0)  # squares cannot vanish
        both, sums = there.T @ there, centred.T @ there
        covariance = centred.T @ centred - sums * sums.T / both
        variance = np.square(centred).T @ there - np.square(sums) / both
        found = np.abs(covariance) / np.sqrt(variance * variance.T)
    is_shared = both >= _SHARED * np.maximum(count, count[:, None])
    return np.where(is_shared, np.nan_to_num(found), 0.0)


def _same_words(
    plans: Sequence[ColumnPlan], sample: pa.Table, free: Sequence[str]
) -> dict[str, str]:
    """Return which columns are categories of others by other words."""
    if sample.num_rows < 3 or len(plans) < 2:
        return {}
    codes = [to_words(sample.column(plan.name)).fold().codes for plan in plans]
    alike = np.zeros((len(plans), len(plans)), bool)
    for i, j in combinations(range(len(plans)), 2):
        alike[i, j] = alike[j, i] = _is_renamed(codes[i], codes[j])
    return _pick_same([plan.name for plan in plans], alike, free)


def _is_renamed(codes: Array, others: Array) -> bool:
    """Say whether each code goes with one of the others, and the other way round."""
    n_levels = int(codes.max(initial=-1)) + 1
    if n_levels != others.max(initial=-1) + 1:
        return False
    here, there = codes >= 0, others >= 0
    both = here & there
    if both.sum() < max(_SHARED * max(here.sum(), there.sum()), 1):
        return False
    pairs = np.bincount(codes[both] * n_levels + others[both], minlength=n_levels**2)
    table = pairs.reshape(n_levels, n_levels) > 0
    return bool((table.sum(axis=0) <= 1).all() and (table.sum(axis=1) <= 1).all())


def _pick_same(
    names: Sequence[str], alike: Array, free: Sequence[str]
) -> dict[str, str]:
    same: dict[str, str] = {}
    aside = set(free)
    for j, name in enumerate(names):
        for i in np.flatnonzero(alike[j]).tolist():
            other = names[i]
            is_first = i < j or (other not in aside and name in aside)
            if i != j and is_first and name in aside and other not in same:
                same[name] = other
                break
    return same
