"""The report: what it says, that it says it safely, and that a browser shows it."""

import base64
import csv
import io
import os
import re
import subprocess
import sys
from functools import cache, partial
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    load,
    save,
)
from sketchmeans.data.sources import Source
from sketchmeans.diagnostics import (
    Certificate,
    bandwidth_path,
    certificate,
    cluster_count_path,
    cluster_summary,
    row_map,
)
from sketchmeans.report import (
    DARK,
    LIGHT,
    Report,
    plot_agreement,
    plot_certificate_path,
    plot_cost_path,
    plot_eigenvalues,
    plot_features,
    plot_landmark_path,
    plot_map,
    plot_margins,
    plot_path,
    plot_residual,
    plot_sizes,
    write_report,
)
from sketchmeans.report.drawing import darken, draw_svg
from sketchmeans.report.words import describe_weights
from sketchmeans.theory.results import format_at_least, format_at_most
from tests import chromium

HOSTILE = "<script>alert(1)</script>\"'&$x$ =1+1"
X, Y = make_blobs(900, 4, centers=3, cluster_std=1.5, random_state=1)
MODEL = NystromKMeans(3, random_state=0).fit(X)
SKETCHED = SketchedKMeans(3, random_state=0).fit(X)
REDUCED = NystromKMeans(3, n_landmarks=40, reducer="svd", random_state=0).fit(X)
ONE = SketchedKMeans(1, random_state=0).fit(X)  # its report has few figures


class _Page(HTMLParser):
    """The tags of a page, its text, and the files that it offers."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.text, self._where = [], "", ""
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self._where = tag
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self._where not in ("style", "script"):
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def files(self):
        found = {}
        for link in self.all("a"):
            if "download" in link:
                data = base64.b64decode(link["href"].partition(",")[2]).decode()
                found[link["download"]] = list(csv.reader(io.StringIO(data)))
        return found

    def pictures(self):
        """Return the decoded SVG of every figure, light and dark."""
        links = [a["src"] for a in self.all("img")]
        links += [a["srcset"] for a in self.all("source")]
        return [
            base64.b64decode(link.partition(",")[2]).decode()
            for link in links
            if link.startswith("data:image/svg")
        ]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A report with everything in it."""
    path = tmp_path_factory.mktemp("report") / "full.html"
    names = ["length", HOSTILE, "=cmd()", "漢字 名前"]
    report = write_report(
        MODEL,
        X,
        path,
        y=np.array([f"<b>{label}</b>" for label in Y]),
        feature_names=names,
        title=f"Title {HOSTILE}",
        command=f"sketchmeans fit '{HOSTILE}'",
        paths=[
            cluster_count_path(X, [2, 3, 4], random_state=0),
            bandwidth_path(X, [0.001, 0.01, 0.1], 3, random_state=0, as_frame=True),
        ],
    )
    return path, report, _Page(path)


# --- the page -------------------------------------------------------------------------


def test_report_tells_size_cost_and_ratio_in_words(full):
    path, report, page = full
    assert isinstance(report, Report)
    assert report.path == os.fspath(path)
    bound = report.certificate
    again = certificate(MODEL, X)  # another cut into subsets
    assert bound.lower_bound == pytest.approx(again.lower_bound, rel=1e-2)
    assert 'class="proved"' in path.read_text(encoding="utf-8")
    for text in (
        "900 rows of 4 features in 3 clusters",
        f"{len(MODEL.landmarks_)} landmarks",
        f"at most {format_at_most(bound.ratio)} times as much as the best possible one",
        f"proved optimum between {format_at_least(bound.lower_bound)} and "
        f"{bound.cost:.4g}",
        f"{MODEL.cost_:.4g}",
        "sketchmeans fit",
        "scikit-learn",
        "Known classes",
        "normalised mutual information",
        "Other choices",
        "this fit",
    ):
        where = page.text if text != "this fit" else " ".join(page.pictures())
        assert text in where, text
    assert report.to_dict()["summary"]["n_rows"] == 900
    assert "ratio" in repr(report)


def test_every_figure_has_words_and_numbers(full):
    _, report, page = full
    figures = len(page.all("figure"))
    # Map, sizes, margins, features, classes, cost, residual, landmarks, 2 + 3 of paths.
    assert figures == 13
    assert all(len(image["alt"]) > 20 for image in page.all("img"))
    assert len([a for a in page.all("a") if "download" in a]) == figures + 3
    files = page.files()
    sizes = {int(row[0]): int(row[1]) for row in files["sizes.csv"][1:]}
    assert [sizes[j] for j in range(3)] == report.summary.sizes.tolist()
    assert len(files["map.csv"]) == 901
    assert [float(row[1]) for row in files["cost.csv"][1:]] == pytest.approx(
        MODEL.cost_path_.tolist(), rel=1e-6
    )
    assert files["number_of_clusters.csv"][0][0] == "n_clusters"
    typical = files["typical_rows.csv"]
    assert len(typical) == 16
    np.testing.assert_allclose(
        [float(v) for v in typical[1][2:]], X[int(typical[1][1])], rtol=1e-6
    )


def test_the_page_needs_nothing_but_itself(full):
    path, _, page = full
    assert not page.all("script")
    for tag, attrs in page.tags:
        for name in ("src", "srcset", "href", "data", "action"):
            link = attrs.get(name)
            assert link is None or link.startswith(("data:", "#")), (tag, name, link)
    assert "default-src 'none'" in page.all("meta")[2]["content"]
    text = path.read_text(encoding="utf-8")
    assert "url(" not in text
    assert "@import" not in text


def test_text_from_the_data_is_escaped(full):
    path, _, page = full
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<b>0</b>" not in text
    assert HOSTILE in page.text  # it is there, as text
    assert "漢字 名前" in page.text
    for picture in page.pictures():
        assert "<script" not in picture
        assert "http://www.w3.org/2000/svg" in picture


#: A terminal escape, a bell, text that would run backwards, a new line, half a letter.
UNSEEN = "\x1b[31m\x07\u202egnp.exe\u2066\u2028\x00\r\ud800"


def test_control_and_bidirectional_characters_are_spelled_out(tmp_path):
    path = tmp_path / "r.html"
    write_report(
        MODEL,
        X,
        path,
        y=np.array([f"{UNSEEN}{label}" for label in Y], dtype=object),
        feature_names=[f"{UNSEEN}{i}" for i in range(4)],
        title=f"Title {UNSEEN}",
        command=f"sketchmeans fit '{UNSEEN}'\nand more",
        certificate=None,
    )
    page = _Page(path)
    shown = r"\x1b[31m\x07\u202egnp.exe\u2066\u2028\x00\r\ud800"
    for text in (f"Title {shown}", f"{shown}0", f"fit '{shown}' and more"):
        assert text in page.text
    acting = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202a-\u202e\u2066-\u2069]")
    assert not acting.search(path.read_text(encoding="utf-8"))
    pictures = page.pictures()
    assert any(r"\x1b[31m\x07" in picture for picture in pictures)
    for picture in pictures:
        assert not acting.search(picture)
        ElementTree.fromstring(picture)


def test_spreadsheets_see_no_formulas(full):
    files = full[2].files()
    names = ["length", HOSTILE, "'=cmd()", "漢字 名前"]
    assert files["typical_rows.csv"][0] == ["cluster", "row", *names]
    cells = [cell for table in files.values() for row in table for cell in row]
    assert not [c for c in cells if re.match(r"[=@\t\r]|[+-](?![\d.])", c)]


@pytest.mark.parametrize("model", [SKETCHED, REDUCED], ids=["sketched", "reduced"])
def test_every_estimator_has_a_report(model, tmp_path):
    write_report(model, X, tmp_path / "r.html", certificate="nystrom")
    page = _Page(tmp_path / "r.html")
    assert type(model).__name__ in page.text
    assert len(page.all("article")) == 3
    has_landmarks = hasattr(model, "landmarks_")
    assert ("What the landmarks leave out" in page.text) == has_landmarks
    assert "best possible one" in page.text


def test_a_spectral_fit_is_reported_by_its_cut(tmp_path):
    model = SpectralKMeans(3, random_state=0).fit(X)
    write_report(model, X, tmp_path / "r.html")
    page = _Page(tmp_path / "r.html")
    assert len(page.all("article")) == 3
    assert "Spectral clustering (SpectralKMeans)" in page.text
    assert "The normalised cut of this clustering is" in page.text
    assert "No clustering of this graph into 3 clusters has a cut below" in page.text
    assert "best possible one" not in page.text
    ax = plot_eigenvalues(model)
    (own, rest) = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(np.append(own, rest), model.eigenvalues_)
    assert len(own) == 3
    with pytest.raises(ValueError, match="should be a fitted SpectralKMeans"):
        plot_eigenvalues(SKETCHED)


def test_sparse_images_and_precomputed(tmp_path):
    table = sparse.csr_array(np.where(X > 0, X, 0.0))
    model = NystromKMeans(3, n_landmarks=30, random_state=0).fit(table)
    write_report(
        model, table, tmp_path / "s.html", image_shape=(2, 2), certificate=None
    )
    page = _Page(tmp_path / "s.html")
    assert "a sparse table" in page.text
    assert sum(a["src"].startswith("data:image/png") for a in page.all("img")) == 6
    K = rbf_kernel(X[:200], gamma=0.02)
    model = KernelKMeans(2, kernel="precomputed", random_state=0).fit(K)
    write_report(model, K, tmp_path / "k.html", certificate="subsample")
    page = _Page(tmp_path / "k.html")
    assert "probability of at least 95%" in page.text
    assert "typical rows" in page.text
    with pytest.raises(ValueError, match="feature_names should be None"):
        write_report(model, K, tmp_path / "k.html", feature_names=["a"] * 200)


def test_one_cluster_one_feature_and_empty_clusters(tmp_path):
    column = X[:, :1]
    model = NystromKMeans(1, n_landmarks=20, random_state=0).fit(column)
    found = write_report(model, column, tmp_path / "one.html", certificate=None).summary
    assert found.margins is None
    assert found.border_share is None
    assert "There is one cluster" in _Page(tmp_path / "one.html").text
    some = X[SKETCHED.labels_ != 1]  # new rows, none of which is in cluster 1
    found = write_report(
        SKETCHED, some, tmp_path / "empty.html", certificate=None
    ).summary
    assert found.sizes[1] == 0
    page = _Page(tmp_path / "empty.html")
    assert "1 of them without rows" in page.text
    assert "On the rows of the fit the cost was" in page.text


def test_weights_of_the_fit_are_mentioned(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    ones, twos = np.ones(300), np.repeat([1.0, 2.0], 150)
    model = NystromKMeans(3, n_landmarks=20, random_state=0)
    assert describe_weights(model.fit(rows)) == ""
    assert describe_weights(model.fit(rows, sample_weight=ones)) == ""
    assert describe_weights(model.fit(rows).partial_fit(rows)) == ""
    save(model.fit(rows, sample_weight=0.3 * twos), tmp_path / "m.skm")
    assert "had weights, 135 in all" in describe_weights(load(tmp_path / "m.skm"))
    model.fit(rows, sample_weight=twos)
    write_report(model, rows, tmp_path / "r.html", certificate=None)
    text = "the rows of the fit had weights, 450 in all"
    assert text in _Page(tmp_path / "r.html").text


def test_kernels_without_a_certificate_say_so(tmp_path):
    with pytest.warns(UserWarning, match="not positive"):
        model = KernelKMeans(2, kernel="sigmoid", gamma=0.001, random_state=0).fit(X)
    report = write_report(model, X, tmp_path / "r.html")
    assert report.certificate is None
    page = _Page(tmp_path / "r.html")
    assert "cannot be for this kernel" in page.text
    assert "KernelKMeans" in page.text
    assert len(page.all("article")) == 2


class _Lazy(Source):
    """Rows of which nobody may ask for many at once."""

    path = "far/away.lazy"
    shape = (120_000, 40)
    dtype = np.dtype(np.float64)
    feature_names = tuple(f"column {j}" for j in range(40))

    _few = np.random.default_rng(0).normal(size=(300, 40)) + np.arange(300)[:, None] % 3

    def _rows(self, numbers):
        assert len(numbers) <= 4_096
        return self._few[numbers % 300]

    def read(self, start, stop, out=None):
        rows = self._rows(np.arange(start, stop))
        if out is None:
            return rows
        out[...] = rows
        return out

    def take(self, indices):
        return self._rows(np.asarray(indices))


def test_files_larger_than_memory_are_read_in_parts(tmp_path):
    source = _Lazy()
    sample = source.take(np.arange(2_000))
    import pandas as pd

    frame = pd.DataFrame(sample, columns=list(source.feature_names))
    model = NystromKMeans(3, n_landmarks=20, random_state=0).fit(frame)
    stages = []
    report = write_report(
        model,
        source,
        tmp_path / "r.html",
        y=np.arange(120_000) % 3,
        certificate="subsample",
        on_stage=stages.append,
    )
    assert stages == ["clusters", "segments", "map", "certificate", "pictures"]
    assert report.summary.sizes.sum() == 120_000
    page = _Page(tmp_path / "r.html")
    assert "Segments of away.lazy" in page.text
    assert "column 3" in page.text


def test_the_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("the old one")
    monkeypatch.setattr("sketchmeans.report.write.render_page", lambda found: "new")

    def fails(self, target):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", fails)
        with pytest.raises(OSError, match="no space"):
            write_report(ONE, X, path)
    assert path.read_text() == "the old one"
    assert os.listdir(tmp_path) == ["r.html"]


WRONG_PARAMETERS = [
    ({"path": "/nowhere/at/all.html"}, "path='/nowhere/at/all.html' should be"),
    ({"feature_names": ["a"]}, "feature_names of length 1 should have 4"),
    ({"image_shape": (3, 3)}, r"image_shape=\(3, 3\) should be .* product of 4"),
    ({"image_shape": "4x1"}, "image_shape='4x1' should be"),
    ({"certificate": "exact"}, "certificate='exact' should be one of"),
    ({"sample_size": 0}, "sample_size=0 should be an integer >= 1"),
    ({"paths": {"cost": [1.0]}}, "should be what bandwidth_path"),
    ({"y": [0, 1]}, "y of 2 labels should have 900"),
    ({"model": PCA()}, "should be a fitted KernelKMeans"),
]


def test_wrong_parameters_are_named(tmp_path):
    for params, message in WRONG_PARAMETERS:
        given = {"model": MODEL, "X": X, "path": tmp_path / "r.html", **params}
        with pytest.raises(ValueError, match=message):
            write_report(given.pop("model"), given.pop("X"), given.pop("path"), **given)
        assert not os.listdir(tmp_path)


def test_a_model_must_be_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(NystromKMeans(3), X, tmp_path / "r.html")


def test_the_same_results_give_the_same_page_without_pyplot(tmp_path, monkeypatch):
    pages = []
    for name in "ab":
        write_report(ONE, X, tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        pages.append(re.sub(r"on \d+ \w+ \d+, \d+:\d+ UTC", "", text))
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        # Where it was imported before, the package has it as an attribute, too.
        monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    assert pages[0] == pages[1]
    with pytest.raises(ImportError):
        plot_cost_path(ONE)


@pytest.mark.process
def test_a_missing_extra_is_named():
    code = (
        "import sys\n"
        "sys.modules['jinja2'] = None\n"
        "import sketchmeans, sketchmeans.diagnostics\n"
        "try:\n"
        "    import sketchmeans.report\n"
        "except ImportError as error:\n"
        "    assert 'pip install sketchmeans[report]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- plots ----------------------------------------------------------------------------


@cache
def _plots():
    summary, sampled = cluster_summary(MODEL, X, y=Y), row_map(MODEL, X, sample_size=60)
    k_path = {
        "n_clusters": np.array([2, 3]),
        "stability": np.array([0.5, 1.0]),
        "ratio": np.array([1.5, np.inf]),
    }
    gamma_path = {"gamma": np.array([0.01, 0.1]), "stability": np.array([0.5, 1.0])}
    return {
        "map": (plot_map, sampled, "axis"),
        "sizes": (plot_sizes, summary, "Cluster"),
        "margins": (plot_margins, summary, "Margin"),
        "features": (plot_features, summary, ""),
        "agreement": (plot_agreement, summary.agreement, "Class"),
        "residual": (plot_residual, sampled, "landmarks"),
        "cost": (plot_cost_path, MODEL, "Iteration"),
        "landmarks": (plot_landmark_path, MODEL, "Landmarks"),
        "gamma": (plot_path, gamma_path, "gamma"),
        "k": (plot_path, k_path, "Number of clusters"),
    }


def test_plots_return_the_axes_that_they_draw_on():
    for name, (plot, data, label) in _plots().items():
        axes = Figure().add_subplot()
        assert plot(data, ax=axes, theme=DARK) is axes, name
        assert label in axes.get_xlabel(), name
        assert axes.has_data(), name


def test_plots_make_their_own_axes():
    from matplotlib import pyplot as plt

    ax = plot_sizes(cluster_summary(MODEL, X))
    heights = sorted(patch.get_height() for patch in ax.patches)
    assert heights == sorted(np.bincount(MODEL.labels_).tolist())
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


def test_plots_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="should be one of"):
        plot_path({"n_clusters": [1], "cost": [1.0]}, column="beauty")
    with pytest.raises(ValueError, match="a column 'gamma' or 'n_clusters'"):
        plot_path({"cost": [1.0]}, column="cost")
    with pytest.raises(ValueError, match="one that has landmarks"):
        plot_residual(row_map(SKETCHED, X, sample_size=20))
    with pytest.raises(ValueError, match="n_landmarks='auto'"):
        plot_landmark_path(REDUCED)
    with pytest.raises(ValueError, match="list of costs"):
        plot_cost_path([])
    with pytest.raises(ValueError, match="should be 'semidefinite'"):
        plot_certificate_path(Certificate("nystrom", 0.8, 1.0, 0.1, 1.0))


@pytest.mark.parametrize(("confidence", "n_lines"), [(1.0, 2), (0.95, 3)])
def test_the_bound_rises_below_the_cost(confidence, n_lines):
    path = np.array([[0.1, 0.5, 0.6], [0.2, 0.6, 0.8]])
    found = Certificate("semidefinite", 0.8, 1.0, None, confidence, path=path)
    ax = plot_certificate_path(found, Figure().add_subplot())
    assert len(ax.lines) == n_lines
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), path[:, 2])
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), [1.0, 1.0])


def test_dark_is_light_with_other_colours():
    for name in ("sizes", "margins", "residual", "cost", "landmarks"):
        plot, data, _ = _plots()[name]
        light, dark = (
            # Shapes are named after what they look like, colours included.
            re.sub("m[0-9a-f]{10}", "shape", draw_svg(partial(plot, data), theme, 4, 3))
            for theme in (LIGHT, DARK)
        )
        assert light != dark, name
        assert darken(light) == dark, name


# --- in a browser ---------------------------------------------------------------------

_OVERFLOW = """(() => {
  const page = document.documentElement;
  const inside = (e) => e.closest(".scroll") === null;
  const wide = [...document.querySelectorAll("body *")].filter(
    (e) => inside(e) && e.getBoundingClientRect().right > page.clientWidth + 0.5);
  return {
    overflow: page.scrollWidth - page.clientWidth,
    wide: wide.map((e) => e.tagName + "." + e.className),
    cut: [...document.querySelectorAll(".scroll, .segment, .panel")].filter(
      (e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent),
    hidden: [...document.querySelectorAll("td, th, .segment *")].filter(
      (e) => getComputedStyle(e).display === "none").length,
    images: document.images.length,
    broken: [...document.images].filter((i) => !i.complete || !i.naturalWidth).length,
    background: getComputedStyle(document.body).backgroundColor,
    title: document.title,
  };
})()"""


_COLOURS = """(() => ({
  ink: getComputedStyle(document.querySelector("h1")).color,
  ground: getComputedStyle(document.body).backgroundColor,
  shown: [...new Set([...document.querySelectorAll("picture")].filter(
    (p) => getComputedStyle(p).display !== "none").map((p) => p.className))],
}))()"""


@pytest.fixture(scope="module")
def browser():
    program = chromium.find()
    if program is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with chromium.Chromium(program) as running:
        yield running


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A report of very many clusters and features."""
    path = tmp_path_factory.mktemp("report") / "many.html"
    rng = np.random.default_rng(0)
    table = np.repeat(rng.normal(size=(100, 300)), 4, axis=0).astype(np.float32)
    table += 0.1 * rng.normal(size=table.shape).astype(np.float32)
    start = np.repeat(np.arange(100), 4)
    model = NystromKMeans(100, n_landmarks=150, init=start, random_state=0).fit(table)
    names = [
        f"a_rather_long_name_of_a_feature_{j}_without_any_space" for j in range(300)
    ]
    write_report(model, table, path, feature_names=names, certificate=None)
    return path


@pytest.mark.browser
def test_paper_is_light(browser, full):
    browser.show(1280, 900, "dark")
    browser.open(full[0].as_uri())
    assert browser.evaluate(_COLOURS)["shown"] == ["dark"]
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=features)
    found = browser.evaluate(_COLOURS)
    browser.call("Emulation.setEmulatedMedia", media="")
    assert found == {
        "ink": "rgb(28, 36, 48)",
        "ground": "rgb(255, 255, 255)",
        "shown": ["light"],
    }


@pytest.mark.browser
def test_small_means_fit_a_phone(browser, tmp_path):
    rows = np.repeat(np.eye(3), 50, axis=0) * 6.0
    rows = rows + np.tile([[-0.002941], [-0.003062]], (75, 1))
    model = SketchedKMeans(3, random_state=0).fit(rows)
    path = tmp_path / "small.html"
    write_report(model, rows, path, certificate=None)
    assert "−0.003</td>" in path.read_text(encoding="utf-8")
    browser.show(360, 800, "light")
    browser.open(path.as_uri())
    assert not browser.evaluate(_OVERFLOW)["cut"]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("which", "width", "scheme"),
    [
        ("full", 1280, "light"),
        ("full", 360, "dark"),
        ("many", 768, "dark"),
        ("many", 360, "light"),
    ],
)
def test_a_browser_shows_the_report(which, width, scheme, browser, full, many):
    path = full[0] if which == "full" else many
    browser.show(width, 900, scheme)
    browser.open(path.as_uri())
    if which == "many":
        assert len(_Page(path).all("article")) == 100
        browser.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
    found = browser.evaluate(_OVERFLOW)
    assert found["overflow"] <= 0
    assert not found["wide"]
    assert not found["cut"]
    assert found["hidden"] == 0
    assert found["images"] >= 5
    assert found["broken"] == 0
    dark = found["background"] == "rgb(18, 22, 27)"
    assert dark == (scheme == "dark")
    assert not browser.seen(
        "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"
    )
    asked = {
        event["request"]["url"]
        for event in browser.seen("Network.requestWillBeSent")
        if not event["request"]["url"].startswith("data:")
    }
    assert asked == {path.as_uri()}
