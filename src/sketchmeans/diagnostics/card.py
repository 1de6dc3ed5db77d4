"""A model card: what a model is, what it was made from, and what it is not for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.cluster.within import find_clusterer
from sketchmeans.diagnostics.fitted import check_any_model
from sketchmeans.numerics.escape import escape_line

#: Most clusters and columns that are listed.
_MOST = 50
#: Characters that Markdown, or HTML in it, would act on.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")


def model_card(model: Any, *, title: str | None = None) -> str:
    """Return a description of a fitted model in Markdown, to keep beside its file.

    It names the segments with their sizes, the columns and what is done with them, the
    method and its parameters, and what to know before the model is used or handed on.

    Costs nothing: what a fitted model keeps is all that it reads.

    Parameters
    ----------
    model : KernelKMeans, NystromKMeans, SketchedKMeans or SpectralKMeans
        Fitted; also in a `TableClusterer`, or at the end of a `Pipeline`.
    title : str, optional
        Default is "Model card".

    See Also
    --------
    describe_segments : The segments alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> model = SketchedKMeans(2, random_state=0).fit(np.arange(20.0).reshape(10, 2))
    >>> print(model_card(model, title="Ten rows"))
    # Ten rows
    <BLANKLINE>
    2 segments of 10 rows, found by SketchedKMeans of sketchmeans ...
    """
    inner = check_any_model(find_clusterer(model))
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    sizes = inner.cluster_sizes_
    parts = [
        f"# {_text('Model card' if title is None else title)}",
        f"{len(sizes):,} segments of {sizes.sum():,.12g} rows, found by "
        f"{type(inner).__name__} of sketchmeans {version('sketchmeans')}.",
        "## Segments",
        _list_segments(segment_names(last), sizes),
        "## Columns",
        _list_columns(model, last, inner),
        "## Method",
        _table(("what", "value"), _describe_method(model, inner)),
        "## Before you use it",
        _list_limits(last, inner),
        "## How to use it",
        "```python\nimport sketchmeans\n\nmodel = sketchmeans.load("
        '"model.skm")\nlabels = model.predict(table)\n```',
    ]
    return "\n\n".join(parts) + "\n"


def _list_segments(names: Sequence[str], sizes: Any) -> str:
    order = np.argsort(-sizes, kind="stable")
    total = float(sizes.sum()) or 1.0
    rows = [
        (str(j), names[j], f"{sizes[j]:,.12g}", f"{sizes[j] / total:.1%}")
        for j in order[:_MOST].tolist()
    ]
    more = len(sizes) - len(rows)
    text = _table(("label", "segment", "rows", "share"), rows)
    return text if more <= 0 else f"{text}\n\nand {more:,} smaller ones."


def _list_columns(model: Any, last: Any, inner: Any) -> str:
    if isinstance(last, TableClusterer) and last.plan_:
        rows: list[tuple[str, ...]] = [
            (c.name, c.kind, "yes" if c.is_used else "no", c.reason)
            for c in last.plan_[:_MOST]
        ]
        more = len(last.plan_) - len(rows)
        text = _table(("column", "kind", "used", "what is done"), rows)
    else:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            return f"{model.n_features_in_:,} columns without names."
        rows = [(str(name),) for name in names[:_MOST]]
        more = len(names) - len(rows)
        text = _table(("column",), rows)
    return text if more <= 0 else f"{text}\n\nand {more:,} more."


def _describe_method(model: Any, inner: Any) -> list[tuple[str, str]]:
    rows = []
    if isinstance(model, Pipeline):
        steps = [type(step).__name__ for _, step in model.steps]
        rows.append(("steps", ", ".join(steps)))
    if hasattr(inner, "kernel_"):
        rows.append(("kernel", repr(inner.kernel_)))
    if getattr(inner, "landmarks_", None) is not None:
        rows.append(("landmarks", f"{inner.landmarks_.shape[0]:,}"))
    rows.append(("cost (mean squared distance)", f"{inner.cost_:.6g}"))
    if hasattr(inner, "ncut_"):
        rows.append(("normalised cut", f"{inner.ncut_:.6g}"))
    passes = f"{inner.n_iter_:,}{'' if inner.converged_ else ', not converged'}"
    rows.append(("passes over all rows", passes))
    rows.append(("random_state", repr(inner.random_state)))
    rows.append(("parameters", " ".join(repr(inner).split())))
    return rows


def _list_limits(last: Any, inner: Any) -> str:
    holds = "landmarks and typical rows"
    if hasattr(inner, "X_fit_"):
        holds = "all rows"
    lines = [
        f"The file of this model holds {holds} of the training data: think of that "
        "before you hand it on.",
        "Every row gets the label of the nearest segment, also one that is unlike all "
        "rows of the fit.",
        "Segments describe the rows of the fit. They do not say why a row is as it is, "
        "and should not alone decide about a person.",
    ]
    if isinstance(last, TableClusterer):
        if last.missing == "drop":
            lines.append("Rows with a missing value have the label −1.")
        elif last.fill_ is None:  # "auto", too, where columns have no names
            lines.append("A missing value is an error.")
        else:
            lines.append(
                "Missing values are filled in as in the fit. "
                f"{last.n_filled_:,} rows of the fit had some."
            )
    return "\n".join(f"- {line}" for line in lines)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *([_text(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: str) -> str:
    """Return a text on one line in which nothing is read as markup."""
    return _SIGNS.sub(r"\\\1", escape_line(value))
