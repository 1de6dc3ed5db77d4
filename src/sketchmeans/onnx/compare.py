"""Labels of an ONNX graph beside those of the model that it was made from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sketchmeans.cluster.table import TableClusterer
from sketchmeans.cluster.within import find_clusterer
from sketchmeans.data.preparation import as_table, match_columns
from sketchmeans.data.preparation.encoders import DateEncoder, NumberEncoder
from sketchmeans.data.preparation.values import to_days, to_floats, to_words
from sketchmeans.data.rows import float_type
from sketchmeans.numerics.linalg import Array
from sketchmeans.onnx.steps import takes_words
from sketchmeans.theory.results import Result

#: Relative difference of the squared distances to two centres below which a row is on
#: their border, by float type.
_BORDER = {"float32": 1e-3, "float64": 1e-9}


@dataclass(frozen=True, repr=False)
class OnnxComparison(Result):
    """Labels by onnxruntime and by `predict`.

    Attributes
    ----------
    n_rows : int
    rows : ndarray
        Numbers of the rows whose labels differ.
    gaps : ndarray
        For each of these, by how much the squared distances to the two centres differ,
        as a share of the larger one.
    n_border : int
        How many of these are on a border: their gap is no more than rounding.
    size : int
        Bytes of the graph.
    seconds, onnx_seconds : float
        Wall time of `predict` and of onnxruntime for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.onnx import compare_onnx
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> compare_onnx(SketchedKMeans(2, random_state=0).fit(X), X).is_equal
    True
    """

    n_rows: int
    rows: Array
    gaps: Array
    n_border: int
    size: int
    seconds: float
    onnx_seconds: float

    @property
    def is_equal(self) -> bool:
        """Whether labels are the same but for rows on a border."""
        return len(self.rows) == self.n_border


def compare_onnx(model: Any, X: Any, graph: Any = None) -> OnnxComparison:
    """Label a table by a model and by its ONNX graph, and list where they differ.

    A row whose two squared distances a and b have ``|a − b|/max(a, b)`` of no more than
    rounding is on a border.

    Costs `predict` and a run of the graph, with all rows in memory.

    Parameters
    ----------
    model : fitted estimator
        As in `to_onnx`.
    X : table
        As in ``model.predict``.
    graph : onnx.ModelProto, optional
        What `to_onnx` returned, if you have it.

    See Also
    --------
    to_onnx : The graph.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> compare_onnx(NystromKMeans(2, random_state=0).fit(X), X).n_rows
    100
    """
    from sketchmeans.onnx import to_onnx

    try:
        from onnxruntime import InferenceSession
    except ImportError:
        raise ImportError(
            "compare_onnx needs onnxruntime, which is not installed: "
            "pip install sketchmeans[onnx]"
        ) from None
    content = (to_onnx(model) if graph is None else graph).SerializeToString()
    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    feeds = onnx_inputs(model, X)
    start = time.perf_counter()
    labels = np.asarray(model.predict(X))
    middle = time.perf_counter()
    (found,) = session.run(["label"], feeds)
    end = time.perf_counter()
    rows = np.flatnonzero(labels != found)
    gaps = np.full(len(rows), np.inf)
    if len(rows) and (labels[rows] >= 0).all() and (found[rows] >= 0).all():
        squared = np.square(np.asarray(model.transform(X), np.float64)[rows])
        ours, theirs = (squared[np.arange(len(rows)), v[rows]] for v in (labels, found))
        gaps = np.abs(ours - theirs) / np.maximum(np.maximum(ours, theirs), 1e-300)
    border = _BORDER[_compute_type(model).name]
    return OnnxComparison(
        n_rows=len(labels),
        rows=rows,
        gaps=gaps,
        n_border=int((gaps <= border).sum()),
        size=len(content),
        seconds=middle - start,
        onnx_seconds=end - middle,
    )


def _compute_type(model: Any) -> np.dtype[Any]:
    inner = find_clusterer(model)
    points = getattr(inner, "landmarks_", inner.exemplars_)
    return float_type(points.dtype)


def onnx_inputs(model: Any, X: Any) -> dict[str, Array]:
    """Return a table as the inputs of the graph that `to_onnx` makes of a model.

    Costs a look at each row, and memory for all of them.

    See Also
    --------
    to_onnx : The graph, and what its inputs are.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> onnx_inputs(SketchedKMeans(2, random_state=0).fit(X), X)["X"].shape
    (4, 2)
    """
    if isinstance(model, Pipeline) and len(model.steps) == 1:
        return onnx_inputs(model.steps[0][1], X)
    dtype = float_type(find_clusterer(model).exemplars_.dtype)
    if not isinstance(model, TableClusterer):
        return {"X": np.ascontiguousarray(X, dtype=dtype)}
    if not hasattr(model, "feature_names_in_"):
        source = as_table(X).open(None)
        rows = source.read(0, len(source))
        return {"X": np.ascontiguousarray(rows, dtype=dtype)}
    table = as_table(X, like=getattr(model, "dialect_", None))
    names = match_columns(table, model.columns_, of_any_type=True)
    records = table.records(names)
    whole = records.read(0, len(records))
    encoders = {column.name: column.encoder for column in model.plan_}
    return {
        str(own): _read_column(whole.column(str(name)), encoders.get(own), dtype)
        for own, name in zip(model.columns_, names, strict=True)
    }


def _read_column(column: Any, encoder: Any, dtype: np.dtype[Any]) -> Array:
    if takes_words(encoder):
        words = to_words(column)
        levels = np.array([*words.levels, ""], dtype=object)
        return np.asarray(levels[words.codes][:, None])
    if isinstance(encoder, DateEncoder):
        days = to_days(column, encoder.written or "year-month-day")
        assert days is not None  # predict has raised
        return days[:, None]
    is_number = isinstance(encoder, NumberEncoder)
    values = encoder.read_numbers(column) if is_number else to_floats(column)
    assert values is not None  # predict has raised
    return values.astype(dtype if encoder is None else np.float64)[:, None]
