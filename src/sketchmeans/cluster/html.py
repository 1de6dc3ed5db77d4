"""A fitted model in a notebook: scikit-learn's diagram, and the segments below it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.numerics.escape import escape_line
from sketchmeans.numerics.linalg import Array

#: Maximum numbers of clusters and columns of the table, and characters of a cell.
_MOST_ROWS, _MOST_COLUMNS, _MOST_LETTERS = 12, 6, 28
#: Width and height of the line of costs, in pixels.
_WIDTH, _HEIGHT = 96, 22
# Colours are those of the notebook around it, light or dark.
_STYLE = """<style>
.sketchmeans{font:13px/1.45 system-ui,sans-serif;margin:.6em 0;max-width:100%;
overflow-x:auto;color:inherit}
.sketchmeans table{border-collapse:collapse;margin:.4em 0;font-size:12px}
.sketchmeans th,.sketchmeans td{padding:2px 10px 2px 0;text-align:left;
border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent);
white-space:nowrap;background:none;color:inherit}
.sketchmeans .n{text-align:right;font-variant-numeric:tabular-nums}
.sketchmeans svg{vertical-align:middle;color:#3a7bd5}
.sketchmeans .dim{opacity:.65}
</style>"""


class FittedHTML:
    """Adds the segments of a fitted model to scikit-learn's HTML."""

    @property
    def _repr_html_(self) -> Any:
        """What notebooks call, unless scikit-learn is configured to show text."""
        if get_config()["display"] != "diagram":
            raise AttributeError(
                "_repr_html_ is only defined when the 'display' configuration option "
                "is set to 'diagram'"
            )
        return lambda: describe_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = describe_html(self)
        return bundle


def describe_html(model: Any) -> str:
    """Return scikit-learn's HTML of an estimator, and its segments once it is fitted.

    Everything that comes from the data is escaped.
    """
    diagram = str(estimator_html_repr(model))
    inner = getattr(model, "estimator_", model)
    sizes = getattr(inner, "cluster_sizes_", None)
    return diagram if sizes is None else diagram + _segments_html(model, inner, sizes)


def _segments_html(model: Any, inner: Any, sizes: Array) -> str:
    total, order = float(sizes.sum()), np.argsort(-sizes, kind="stable")
    names, columns, rows = segment_names(model), *_typical_rows(model, len(sizes))
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    lines = []
    for j in order[:_MOST_ROWS].tolist():
        share = sizes[j] / total if total > 0.0 else 0.0
        cells = "".join(f"<td>{_text(_show(value))}</td>" for value in rows[j])
        lines.append(
            f'<tr><td class="n">{j}</td><td>{_text(names[j])}</td>'
            f'<td class="n">{sizes[j]:,.6g}</td><td class="n">{share:.1%}</td>'
            f"<td>{_bar(share)}</td>{cells}</tr>"
        )
    more = len(sizes) - len(lines)
    rest = f'<p class="dim">and {more:,} smaller ones</p>' if more > 0 else ""
    path = np.asarray(getattr(inner, "cost_path_", []), np.float64)
    span = f'<th colspan="{len(columns)}">typical row</th>' if columns else ""
    return (
        f'{_STYLE}<div class="sketchmeans"><b>{len(sizes):,} clusters</b> of '
        f"{total:,.6g} rows, cost {inner.cost_:.4g} {_line(path)}"
        f'<table><thead><tr><th colspan="5"></th>{span}</tr>'
        '<tr><th class="n">label</th>'
        '<th>segment</th><th class="n">rows</th><th class="n">share</th><th></th>'
        f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{rest}</div>"
    )


def _typical_rows(model: Any, k: int) -> tuple[list[str], Sequence[Any]]:
    """Return names of a few columns, and the values of each cluster's typical row."""
    rows = getattr(model, "exemplars_", None)
    if rows is None:
        return [], [()] * k
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(rows.shape[1])])
    columns = [str(name) for name in names[:_MOST_COLUMNS]]
    return columns, rows[:, : len(columns)].tolist()


def _show(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.4g}"


def _text(value: Any) -> str:
    """Return a text of the data, made safe and not too long."""
    line = escape_line(str(value))
    cut = f"{line[: _MOST_LETTERS - 1]}…" if len(line) > _MOST_LETTERS else line
    return escape(cut)


def _bar(share: float) -> str:
    width = max(round(_WIDTH * min(share, 1.0)), 1)
    return (
        f'<svg width="{_WIDTH}" height="9" role="img" aria-label="{share:.1%}">'
        f'<rect width="{width}" height="9" rx="2" fill="currentColor"/></svg>'
    )


def _line(costs: Array) -> str:
    """Return the cost of each pass as a small line; nothing for a single one."""
    if len(costs) < 2 or not np.isfinite(costs).all():
        return ""
    low, high = float(costs.min()), float(costs.max())
    x = np.linspace(2.0, _WIDTH - 2.0, len(costs))
    is_flat = not high > low
    heights = np.full(len(costs), 0.5) if is_flat else (high - costs) / (high - low)
    y = 2.0 + (_HEIGHT - 4.0) * heights
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    words = f"cost over {len(costs)} passes, from {costs[0]:.4g} to {costs[-1]:.4g}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}">'
        f"<title>{words}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" '
        'stroke-width="1.6"/></svg>'
    )
