"""Fitted models in notebooks."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
)
from sketchmeans.cluster.segment_names import rename_segments

EVIL = '<script>alert("x")</script>\u202e'


class _Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def rows(k=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 2)) + 9.0 * np.repeat(np.arange(k), 90 // k)[:, None]


@pytest.mark.parametrize(
    "model",
    [
        NystromKMeans(3, random_state=0),
        KernelKMeans(3, random_state=0),
        SketchedKMeans(3, random_state=0),
        SpectralKMeans(3, random_state=0),
        TableClusterer(NystromKMeans(3, random_state=0)),
    ],
)
def test_a_fitted_model_shows_its_segments_below_scikit_learns_diagram(model):
    before = model._repr_html_()
    assert "sk-top-container" in before
    assert 'class="sketchmeans"' not in before
    model.fit(rows())
    page = model._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in page
    found = _Tags(page[page.index('<div class="sketchmeans">') :])
    assert found.tags.count("tr") == 2 + 3
    assert found.tags.count("rect") == 3
    words = " ".join(found.words)
    assert "3 clusters" in words
    assert "Segment 2" in words
    assert words.count("33.3%") == 3
    assert make_pipeline(StandardScaler(), model)._repr_html_() != page
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_names_and_values_are_escaped():
    frame = pd.DataFrame(rows(), columns=["a", EVIL]).assign(
        kind=np.repeat([EVIL, "b&b", "c"], 30)
    )
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    rename_segments(model, {0: "<b>bold</b>"})
    page = model._repr_html_().removeprefix(estimator_html_repr(model))
    own = page[page.index('<div class="sketchmeans">') :]
    found = _Tags(own)
    assert "script" not in found.tags
    assert "<b>bold</b>" in found.words
    assert "b&b" in found.words
    assert "\u202e" not in own
    assert r"\u202e" in own or "…" in own


def test_many_clusters_and_one_pass():
    model = SketchedKMeans(30, max_iter=1, n_init=1, random_state=0)
    with pytest.warns(Warning, match="No convergence"):
        model.fit(np.random.default_rng(0).normal(size=(2000, 9)))
    own = model._repr_html_()
    assert "and 18 smaller ones" in own
    assert own.count("<th>x") == 6
