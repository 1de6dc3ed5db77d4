"""Steps before a clusterer as ONNX operators: scaling, gaps, projections, words.

All of them work in float64, whatever the type of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from sketchmeans.data.preparation import (
    BooleanEncoder,
    CategoryEncoder,
    OrdinalEncoder,
)
from sketchmeans.data.preparation.encoders import CYCLES, MISSING, OTHER, DateEncoder
from sketchmeans.data.preparation.values import (
    MISSING_WORDS,
)
from sketchmeans.numerics.linalg import Array
from sketchmeans.onnx.graph import Graph, join_columns
from sketchmeans.reduction.base import Reducer

#: Words of yes and no of columns that hold numbers, or true and false.
_NUMBER_WORDS = (("0", "1"), ("false", "true"))


def add_step(graph: Graph, x: str, name: str, step: Any) -> str:
    """Return rows after a step of a pipeline, or after a reducer."""
    if isinstance(step, Reducer):  # every sketch of features is linear
        matrix = step.transform(np.eye(step.n_features_in_))
        return graph.add("MatMul", x, np.asarray(matrix, np.float64))
    if isinstance(step, str):  # passthrough
        return x
    adders: dict[type, Callable[[Graph, str, Any], str]] = {
        StandardScaler: lambda g, x, s: _add_scaling(g, x, s.mean_, s.scale_),
        RobustScaler: lambda g, x, s: _add_scaling(g, x, s.center_, s.scale_),
        MaxAbsScaler: lambda g, x, s: _add_scaling(g, x, None, s.scale_),
        MinMaxScaler: _add_range,
        Normalizer: _add_unit_length,
        SimpleImputer: _add_imputer,
        PCA: _add_pca,
        TruncatedSVD: lambda g, x, s: g.add("MatMul", x, _wide(s.components_.T)),
    }
    add = adders.get(type(step))
    if add is None:
        known = ", ".join(cls.__name__ for cls in adders)
        raise ValueError(
            f"step {name!r} is a {type(step).__name__}, which cannot be expressed in "
            f"ONNX; these can: {known} and the reducers of sketchmeans."
        )
    return add(graph, x, step)


def _wide(values: Any) -> Array:
    array = np.asarray(values, np.float64)
    return array[None] if array.ndim == 1 else array


def _add_scaling(graph: Graph, x: str, center: Any, scale: Any) -> str:
    if center is not None:
        x = graph.add("Sub", x, _wide(center))
    return x if scale is None else graph.add("Div", x, _wide(scale))


def _add_range(graph: Graph, x: str, step: Any) -> str:
    x = graph.add("Add", graph.add("Mul", x, _wide(step.scale_)), _wide(step.min_))
    if step.clip:
        low, high = (np.array([[end]], np.float64) for end in step.feature_range)
        x = graph.add("Min", graph.add("Max", x, low), high)
    return x


def _add_unit_length(graph: Graph, x: str, step: Any) -> str:
    sizes = graph.add("Abs", x)
    if step.norm == "l2":
        length = graph.add("Sqrt", graph.sum_rows(graph.add("Mul", x, x)))
    elif step.norm == "l1":
        length = graph.sum_rows(sizes)
    else:
        length = graph.add("ReduceMax", sizes, axes=[1], keepdims=1)
    is_zero = graph.add("Equal", length, np.zeros((1, 1)))
    return graph.add("Div", x, graph.add("Where", is_zero, np.ones((1, 1)), length))


def _add_imputer(graph: Graph, x: str, step: Any) -> str:
    if step.missing_values == step.missing_values or step.add_indicator:
        raise ValueError(
            "SimpleImputer should have missing_values=nan and add_indicator=False to "
            "be expressed in ONNX."
        )
    if np.isnan(step.statistics_).any():
        raise ValueError(
            "SimpleImputer leaves out columns without values, which cannot be "
            "expressed in ONNX. Leave them out before."
        )
    return _add_filling(graph, x, step.statistics_)


def _add_pca(graph: Graph, x: str, step: Any) -> str:
    matrix = step.components_.T
    if step.whiten:
        matrix = matrix / np.sqrt(step.explained_variance_)
    return graph.add("MatMul", graph.add("Sub", x, _wide(step.mean_)), _wide(matrix))


def _add_filling(graph: Graph, x: str, fill: Any) -> str:
    return graph.add("Where", graph.add("IsNaN", x), _wide(fill), x)


# --- raw tables -----------------------------------------------------------------------


def takes_words(encoder: Any) -> bool:
    """Say whether the input of a column is text, not a number."""
    if isinstance(encoder, BooleanEncoder):
        return tuple(encoder.words) not in _NUMBER_WORDS
    return isinstance(encoder, CategoryEncoder | OrdinalEncoder)


def add_table(graph: Graph, model: Any, dtype: str) -> str:
    """Return the prepared rows of a `TableClusterer`, whose columns are inputs.

    A table without names is one input "X".
    """
    if model.plan_:
        x = join_columns(
            graph, [_add_column(graph, c) for c in model.plan_ if c.is_used]
        )
    elif hasattr(model, "feature_names_in_"):
        inputs = [graph.input(name, dtype, 1) for name in model.columns_]
        x = graph.cast(join_columns(graph, inputs), np.float64)
    else:
        is_whole = model.columns_ == list(range(len(model.columns_)))
        x = graph.input("X", dtype, len(model.columns_) if is_whole else None)
        if not is_whole:
            x = graph.add("Gather", x, np.array(model.columns_), axis=1)
        x = graph.cast(x, np.float64)
    if model.fill_ is not None:
        x = _add_filling(graph, x, model.fill_)
    return _add_scaling(graph, x, model.center_, model.scale_)


def _add_column(graph: Graph, column: Any) -> str:
    encoder = column.encoder
    if takes_words(encoder):
        codes, table = _list_words(encoder)
        x = graph.add(
            "LabelEncoder",
            graph.input(column.name, "str", 1),
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=len(table) - 2,
        )
        flat = graph.add("Squeeze", x, np.array([1]))
        return graph.add("Gather", table, flat, axis=0)
    if isinstance(encoder, BooleanEncoder):
        x = graph.input(column.name, "float64", 1)
        is_flag = graph.add(
            "Equal", graph.add("Mul", x, x), x
        )  # no number but 0 and 1 is its own square
        return graph.add("Where", is_flag, x, np.full((1, 1), np.nan))
    x = graph.input(column.name, "float64", 1)
    if isinstance(encoder, DateEncoder):
        return _add_date(graph, x, encoder)
    if encoder.day_start:
        is_early = graph.add("Less", x, np.array([[encoder.day_start]]))
        x = graph.add("Where", is_early, graph.add("Add", x, np.array([[24.0]])), x)
    for sentinel in encoder.sentinels:
        is_code = graph.add("Equal", x, np.array([[sentinel]]))
        x = graph.add("Where", is_code, np.full((1, 1), np.nan), x)
    if encoder.unit is None:
        return x
    x = graph.add("Sub", x, np.array([[encoder.shift]]))
    return _add_asinh(graph, graph.add("Div", x, np.array([[encoder.unit]])))


def _add_date(graph: Graph, x: str, encoder: DateEncoder) -> str:
    """Return age and cycles of days since 1970, as `DateEncoder.encode` has them."""
    day = graph.add("Floor", x)
    for sentinel in encoder.sentinels:
        is_code = graph.add("Equal", day, np.array([[sentinel]]))
        x = graph.add("Where", is_code, np.full((1, 1), np.nan), x)
    parts = [graph.add("Sub", np.array([[encoder.reference]]), x)]
    for cycle in encoder.cycles:
        shift, period, step = CYCLES[cycle]
        moved = graph.add("Add", x, np.array([[shift]]))
        turns = graph.add("Floor", graph.add("Div", moved, np.array([[period]])))
        place = graph.add("Sub", moved, graph.add("Mul", turns, np.array([[period]])))
        if step:
            place = graph.add("Floor", graph.add("Div", place, np.array([[step]])))
        full = 2.0 * np.pi / (round(period / step) if step else period)
        angle = graph.add("Mul", place, np.array([[full]]))
        # A cosine of float64 is not in every runtime.
        turned = graph.add("Add", angle, np.array([[0.5 * np.pi]]))
        parts += [graph.add("Sin", turned), graph.add("Sin", angle)]
    return join_columns(graph, parts)


def _add_asinh(graph: Graph, x: str) -> str:
    """Return ``sign(x) log(|x| + √(x² + 1))``; Asinh itself has no float64."""
    size, ones = graph.add("Abs", x), np.ones((1, 1))
    root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", x, x), ones))
    value = graph.add("Log", graph.add("Add", size, root))
    return graph.add("Mul", graph.add("Sign", x), value)


def _list_words(encoder: Any) -> tuple[dict[str, int], Array]:
    """Return the code of each known word, and the features of each code.

    The last but one code is that of new words, the last one that of missing ones.
    """
    if isinstance(encoder, BooleanEncoder):
        table = np.array([[0.0], [1.0], [np.nan], [np.nan]])
        known = {form: i for word, i in encoder.codes.items() for form in _spell(word)}
    elif isinstance(encoder, OrdinalEncoder):
        k = len(encoder.levels)
        table = np.append(np.arange(1.0, k + 1.0), [np.nan, np.nan])[:, None]
        known = dict.fromkeys(encoder.missing_words, k + 1)
        known |= {f: i for i, word in enumerate(encoder.levels) for f in _spell(word)}
    else:
        k = len(encoder.levels)
        table = np.vstack([np.eye(k), encoder.shares[None], np.full((1, k), np.nan)])
        known = {f: i for i, word in enumerate(encoder.levels) for f in _spell(word)}
        known |= {level: i for i, level in enumerate(encoder.levels)}
        for row, name in ((k, OTHER), (k + 1, MISSING)):
            if name in known:
                table[row] = table[known[name]]
    gaps = {form: len(table) - 1 for word in MISSING_WORDS for form in _spell(word)}
    return gaps | known, table


def _spell(word: str) -> set[str]:
    """Return the ways in which a word is usually written."""
    return {word, word.upper(), word.title(), word.capitalize()} | (
        {"NaN"} if word == "nan" else set()
    )
