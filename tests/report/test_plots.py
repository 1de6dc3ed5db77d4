"""Plots take a model and a table, as scikit-learn's displays do."""

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.cluster.segment_names import rename_segments
from sketchmeans.diagnostics import cluster_summary, row_map
from sketchmeans.report import (
    plot_agreement,
    plot_cost_path,
    plot_features,
    plot_map,
    plot_margins,
    plot_residual,
    plot_sizes,
)

X, Y = make_blobs(150, 4, centers=3, random_state=0)


def test_names_of_segments_are_text_and_have_room():
    model = NystromKMeans(3, random_state=0).fit(X)
    rename_segments(model, {0: r"$\frac$ & <b>", 1: "a rather long name " * 4})
    for plot in (plot_sizes, plot_features):
        ax = plot(model, X, ax=Figure().add_subplot())
        FigureCanvasAgg(ax.figure).draw()  # which would read formulas
    rows = [text.get_text() for text in ax.get_yticklabels()]
    assert any("$" in text for text in rows)
    assert max(text.count("\n") for text in rows) == 1
    assert any(text.endswith("…") for text in rows)


@pytest.mark.parametrize("wrap", ["plain", "pipeline", "table"])
def test_plots_take_a_model_and_a_table(wrap):
    frame = pd.DataFrame(X, columns=[f"col {j}" for j in range(X.shape[1])])
    inner = NystromKMeans(3, n_landmarks=20, random_state=0)
    model = {
        "plain": inner,
        "pipeline": make_pipeline(StandardScaler(), inner),
        "table": TableClusterer(inner),
    }[wrap].fit(frame)
    for plot in (plot_map, plot_sizes, plot_margins, plot_residual):
        assert plot(model, frame, ax=Figure().add_subplot()).has_data()
    ax = plot_features(model, frame, ax=Figure().add_subplot())
    assert {text.get_text() for text in ax.get_xticklabels()} <= set(frame.columns)
    assert plot_agreement(model, frame, Y, ax=Figure().add_subplot()).has_data()
    assert plot_cost_path(model, ax=Figure().add_subplot()).has_data()
    for wrong in (None, Figure().add_subplot()):
        with pytest.raises(ValueError, match=r"should be a table.* given as ax="):
            plot_sizes(model, wrong)
    with pytest.raises(ValueError, match="y=None should be the known classes"):
        plot_agreement(model, frame)
    for plot, found in (
        (plot_sizes, cluster_summary(model, frame)),
        (plot_map, row_map(model, frame)),
        (plot_agreement, cluster_summary(model, frame, y=Y).agreement),
    ):
        with pytest.raises(ValueError, match="X of type DataFrame should be None"):
            plot(found, frame)


def test_clusters_have_their_names_where_there_is_room():
    X, _ = make_blobs(120, 3, centers=5, random_state=0)
    for k, is_named in ((3, True), (5, False)):
        model = SketchedKMeans(k, random_state=0).fit(X)
        rename_segments(model, {0: "Heavy buyers of many things"})
        ticks = {text.get_text() for text in plot_sizes(model, X).get_xticklabels()}
        assert ("0 Heavy buyers\nof many things" in ticks) == is_named
        assert ("0" in ticks) != is_named
        ticks = {text.get_text() for text in plot_features(model, X).get_yticklabels()}
        assert "0 Heavy buyers of many\nthings" in ticks
