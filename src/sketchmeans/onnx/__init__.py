"""Fitted models as ONNX graphs, for services in any language.

``pip install sketchmeans[onnx]`` brings what this needs: onnx, and onnxruntime to
compare.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

if find_spec("onnx") is None:
    raise ImportError(
        "sketchmeans.onnx needs onnx, which is not installed: "
        "pip install sketchmeans[onnx]",
        name="onnx",
    )

import onnx

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.cluster.within import find_clusterer
from sketchmeans.data.rows import as_rows, float_type
from sketchmeans.kernels import is_given
from sketchmeans.numerics.parallel import Workers
from sketchmeans.onnx.compare import OnnxComparison, compare_onnx, onnx_inputs
from sketchmeans.onnx.graph import Graph
from sketchmeans.onnx.kernels import add_labels
from sketchmeans.onnx.steps import add_step, add_table

__all__ = ["OnnxComparison", "compare_onnx", "onnx_inputs", "to_onnx"]


def to_onnx(model: Any) -> onnx.ModelProto:
    """Return a fitted model as one ONNX graph: preparation, kernel row and arg-min.

    The output "label" is the cluster of each row, −1 where a value is missing that the
    model does not fill, or infinite.  The input is one table "X" in the float type of
    the fit; that of a `TableClusterer` with named columns is one column of shape (n, 1)
    for each column that is used: float64 for numbers and for yes or no, with NaN for
    gaps, and text for categories, with "" for gaps.

    A row has the label ``argmin_j ‖c_j‖² − 2 Σ_i α_ij k(x, z_i)`` for landmarks z_i.
    Labels are those of `predict`, but where two centres are equally near up to
    rounding; `compare_onnx` counts such rows.

    Costs a copy of what the model keeps, m·(d + k) numbers.

    Parameters
    ----------
    model : NystromKMeans, KernelKMeans or SketchedKMeans
        Fitted; also in a `TableClusterer`, or at the end of a `Pipeline` of the steps
        that model files know.  Kernels are rbf, linear, polynomial, laplacian, cosine
        and sigmoid.

    Returns
    -------
    model : onnx.ModelProto
        ``SerializeToString()`` gives the bytes of a file.

    Raises
    ------
    ValueError
        If a part cannot be expressed: another kernel or step.

    See Also
    --------
    compare_onnx : Whether the graph gives the labels of the model.
    onnx_inputs : A table as the graph takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = NystromKMeans(3, random_state=0).fit(X)
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label']
    """
    check_is_fitted(model)
    inner = _check_clusterer(model)
    dtype = float_type(inner.exemplars_.dtype)
    graph = Graph()
    x = _add_preparation(graph, model, dtype)
    with Workers(1) as workers:
        rows = as_rows(np.zeros((1, inner.n_features_in_), dtype), workers)
        if isinstance(inner, NystromKMeans) and inner.reducer_ is not None:
            x = _add_reducer(graph, x, inner)
        result = add_labels(graph, x, inner, inner._view(rows))
    words = (
        f"{type(model).__name__} of sketchmeans, {len(inner.cluster_sizes_)} clusters"
    )
    return graph.finish(result, words)


def _check_clusterer(model: Any) -> Any:
    inner = find_clusterer(model)
    if not isinstance(inner, NystromKMeans | KernelKMeans | SketchedKMeans):
        raise ValueError(
            f"model={type(inner).__name__} cannot be expressed in ONNX; these can: "
            "NystromKMeans, KernelKMeans and SketchedKMeans."
        )
    check_is_fitted(inner, "cluster_sizes_")
    if is_given(getattr(inner, "kernel_", None)):
        raise ValueError(
            "kernel='precomputed' cannot be expressed in ONNX: there are no features."
        )
    return inner


def _add_preparation(graph: Graph, model: Any, dtype: np.dtype[Any]) -> str:
    """Return the rows that the clusterer sees; adds the inputs."""
    if isinstance(model, TableClusterer):
        return add_table(graph, model, dtype.name)
    if not isinstance(model, Pipeline):
        return graph.input("X", dtype.name, model.n_features_in_)
    if isinstance(model.steps[-1][1], TableClusterer) and len(model.steps) > 1:
        raise ValueError(
            f"step {model.steps[-1][0]!r} is a TableClusterer behind other steps, "
            "which cannot be expressed in ONNX: it prepares tables itself."
        )
    if len(model.steps) == 1:
        return _add_preparation(graph, model.steps[0][1], dtype)
    x = graph.input("X", dtype.name, model.n_features_in_)
    x = graph.cast(x, np.float64)
    for name, step in model.steps[:-1]:
        x = add_step(graph, x, name, step)
    return x


def _add_reducer(graph: Graph, x: str, model: NystromKMeans) -> str:
    x = graph.cast(x, np.float64)
    shift = getattr(model, "_shift", None)
    if shift is not None:
        x = graph.add("Sub", x, np.asarray(shift, np.float64)[None])
    return add_step(graph, x, "reducer", model.reducer_)
