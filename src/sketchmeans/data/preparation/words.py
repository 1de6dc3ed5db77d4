"""Columns of words: categories, yes and no, identifiers and free text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.data.preparation.column_plan import (
    LEFT_OUT,
    ColumnPlan,
    Rules,
    leave_out,
)
from sketchmeans.data.preparation.dates import are_compact_dates, find_kind_of_dates
from sketchmeans.data.preparation.encoders import (
    MISSING,
    OTHER,
    BooleanEncoder,
    CategoryEncoder,
    NumberEncoder,
)
from sketchmeans.data.preparation.numbers import find_kind_of_numbers, plan_times
from sketchmeans.data.preparation.ordinal import find_order, plan_ordinal
from sketchmeans.data.preparation.quantities import (
    CLOCK,
    FACTORS,
    are_pairs,
    find_writing,
)
from sketchmeans.data.preparation.values import (
    TRUE_WORDS,
    Words,
    find_date_format,
    find_missing_words,
    fold_word,
    to_booleans,
    to_floats,
    to_words,
)
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Most levels of a category; rarer ones than these, or than the share, are grouped.
MAX_LEVELS, MIN_SHARE = 30, 0.01
#: Share of the rows that the levels of a category should have at least.
_COVERED = 0.5
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_UUID = re.compile(r"\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?")
_URL = re.compile(r"(https?|ftp)://\S+|www\.\S+")
_WORD = re.compile(r"\S*[^\W\d_]\S*")
#: Words per value from which on a column of different values is text.
_TEXT_WORDS = 3.5


def find_kind_of_words(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the kind of a column of words."""
    words = to_words(column).fold()
    levels, counts = words.levels, words.counts()
    if not levels:
        return leave_out(name, "empty", "no value at all")
    is_whole = (words.codes >= 0).all()
    if len(levels) == 1 and len(words.codes) > 1 and is_whole:
        return leave_out(name, "constant", f"every value is {_shorten(levels[0])!r}")
    if len(levels) == 2 and to_booleans(column) is not None:
        return plan_booleans(name, column, rules)
    stray = find_missing_words(words)
    writing: tuple[str | None, str] = (None, "")
    numbers = to_floats(column, stray)
    if (
        numbers is None
        and len(levels) > 2
        and (found := find_writing([level for level in levels if level not in stray]))
    ):
        writing, numbers = found, to_floats(column, stray, *found)
    if numbers is not None and not are_compact_dates(column, numbers):
        return _plan_written_numbers(name, numbers, stray, writing, rules)
    if find_order(levels) is not None:
        return plan_ordinal(name, column, rules)
    if find_date_format(words) is not None:
        return find_kind_of_dates(name, column, rules)
    for pattern, what in (
        (_EMAIL, "e-mail addresses"),
        (_UUID, "UUIDs"),
        (_URL, "links"),
    ):
        if _share_matching(pattern, levels) > 0.9:
            return leave_out(name, "identifier", what)
    n_words = np.mean([len(_WORD.findall(level)) for level in levels[:2000]])
    share_different = len(levels) / counts.sum()
    if share_different > 0.9 and (len(levels) > 2 or len(levels) == counts.sum()):
        if are_pairs(levels):
            return _leave_out_pairs(name, levels[0])
        if n_words >= _TEXT_WORDS:
            return leave_out(name, "text", "free text")
        return leave_out(name, "identifier", "nearly every value is different")
    plan = plan_categories(name, column, rules)
    if not plan.is_used and are_pairs(levels):
        return _leave_out_pairs(name, levels[0])
    if not plan.is_used and n_words >= _TEXT_WORDS:
        return leave_out(name, "text", "free text")
    return plan


def _leave_out_pairs(name: str, example: str) -> ColumnPlan:
    reason = f"two numbers in each value, such as {_shorten(example)}, need two columns"
    return leave_out(name, "text", reason)


def _plan_written_numbers(
    name: str,
    numbers: Array,
    stray: tuple[str, ...],
    writing: tuple[str | None, str],
    rules: Rules,
) -> ColumnPlan:
    decimal, suffix = writing
    if decimal == CLOCK:
        return plan_times(name, numbers, rules, stray)
    plan = find_kind_of_numbers(name, numbers, rules)
    note = f"in {suffix}" if suffix else "stored as text"
    if suffix == FACTORS:
        note = "with factors such as 12k and 1.5M"
    if stray:
        note = f"missing where it says {' or '.join(map(repr, stray))}"
    reason = f"{plan.reason.removesuffix(LEFT_OUT)} ({note})"
    encoder = plan.encoder
    if encoder is None:
        return leave_out(name, plan.kind, reason)
    if isinstance(encoder, NumberEncoder):
        encoder = replace(encoder, missing_words=stray, decimal=decimal, suffix=suffix)
    return ColumnPlan(name, plan.kind, reason, encoder)


def _share_matching(pattern: re.Pattern[str], levels: list[str]) -> float:
    tried = levels[:500]
    return sum(pattern.fullmatch(level) is not None for level in tried) / len(tried)


def _shorten(word: str) -> str:
    return word if len(word) <= 30 else f"{word[:27]}..."


def plan_booleans(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column of yes and no, or of any two values."""
    values = to_booleans(column)
    words = to_words(column).fold()
    if not words.levels:
        return leave_out(name, "empty", "no value at all")
    if values is None and len(words.levels) != 2:
        return leave_out(
            name, "boolean", f"{len(words.levels):,} different values, not two"
        )
    if len(words.levels) == 1 and (words.codes >= 0).all() and len(words.codes) > 1:
        return leave_out(name, "constant", f"every value is {words.levels[0]!r}")
    pair = sorted(words.levels)
    if values is not None:
        is_true = [level.lower() in TRUE_WORDS for level in words.levels]
        first = words.levels[is_true.index(False)] if False in is_true else "false"
        last = words.levels[is_true.index(True)] if True in is_true else "true"
        pair = [first, last]
    reason = f"values are {_shorten(pair[0])} and {_shorten(pair[1])}"
    return ColumnPlan(name, "boolean", reason, BooleanEncoder((pair[0], pair[1])))


def plan_categories(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column of categories, of which rare ones are grouped."""
    written = to_words(column)
    words = written.fold()
    if not words.levels:
        return leave_out(name, "empty", "no value at all")
    n = len(words.codes)
    counts = words.counts()
    order = np.argsort(-counts, kind="stable")
    # A level of a single row is nothing that rows have in common.
    is_frequent = counts[order] >= max(MIN_SHARE * n, min(2, counts.max()))
    frequent = order[is_frequent][:MAX_LEVELS]
    n_rare = len(order) - len(frequent)
    covered = counts[frequent].sum() / counts.sum()
    if covered < _COVERED:
        return leave_out(
            name,
            "category",
            f"{len(words.levels):,} different values, most of them in less than "
            f"{MIN_SHARE:.0%} of the rows",
        )
    if n_rare == 1:  # a group of one gains nothing, unless there are many levels
        frequent = (
            order[: len(frequent) + 1] if len(frequent) < MAX_LEVELS else frequent
        )
        n_rare = len(order) - len(frequent)
    plan = _plan_levels(name, words, counts, frequent, n_rare, rules)
    return _say_folded(plan, written, words)


def _say_folded(plan: ColumnPlan, written: Words, words: Words) -> ColumnPlan:
    """Return a plan whose reason says which spellings count as one."""
    counts = written.counts()
    others = [i for i, w in enumerate(written.levels) if w not in words.levels]
    if not others or not plan.is_used:
        return plan
    other = written.levels[max(others, key=counts.__getitem__)]
    kept = next(w for w in words.levels if fold_word(w) == fold_word(other))
    note = f"{_shorten(other)!r} counts as {_shorten(kept)!r}"
    if len(others) > 1:
        note += f", and {len(others) - 1:,} more spellings as others"
    return replace(plan, reason=f"{plan.reason}; {note}")


def _plan_levels(
    name: str, words: Words, counts: Array, frequent: Array, n_rare: int, rules: Rules
) -> ColumnPlan:
    levels = [words.levels[i] for i in frequent]
    sizes = counts[frequent].tolist()
    n = len(words.levels)
    notes = [f"{n:,} level{'' if n == 1 else 's'}"]
    if n_rare:
        levels.append(OTHER)
        sizes.append(int(counts.sum() - sum(sizes)))
        notes.append(f"{n_rare:,} rare ones together")
    n_missing = int((words.codes < 0).sum())
    if rules.keeps_gaps and n_missing >= MIN_SHARE * len(words.codes):
        levels.append(MISSING)
        sizes.append(n_missing)
        notes.append("one more for missing values")
    shares = np.array(sizes, np.float64) / sum(sizes)
    if len(levels) == 1 and len(words.codes) > 1:
        return leave_out(name, "constant", f"nearly every value is {levels[0]!r}")
    encoder = CategoryEncoder(tuple(levels), shares)
    return ColumnPlan(name, "category", ", ".join(notes), encoder)
