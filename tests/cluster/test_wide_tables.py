"""Tables of very many features: what does not fit is refused before it is allocated."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import (
    KernelKMeans,
    Nystrom,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.reduction import ApproximateSVD, SignProjection

LIMIT = 52_000_000

MODELS = {
    "sketched": SketchedKMeans(3, max_memory=LIMIT),
    "sketched-none": SketchedKMeans(3, reducer=None, max_memory=LIMIT),
    "sketched-sampling": SketchedKMeans(3, reducer="sampling", max_memory=LIMIT),
    "nystrom": NystromKMeans(3, n_landmarks=9, max_memory=LIMIT),
    "nystrom-svd": NystromKMeans(3, reducer="svd", max_memory=LIMIT),
    "exact": KernelKMeans(3, max_memory=LIMIT),
    "spectral": SpectralKMeans(3, max_memory=LIMIT),
    "map": Nystrom(max_memory=LIMIT),
    "map-given": Nystrom(n_landmarks=9, max_memory=LIMIT),
}


def peak_of(fit):
    """Return the bytes at the peak of a fit that may be refused, and why it was."""
    reason = ""
    tracemalloc.start()
    try:
        fit()
    except MemoryError as error:
        reason = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, reason


@pytest.mark.parametrize("name", MODELS)
def test_wide_dense_rows_are_refused_before_a_pass(name):
    X = np.zeros((64, 2**18), np.float32)
    peak, reason = peak_of(lambda: MODELS[name].fit(X))
    assert peak < LIMIT / 4
    assert "A pass over rows of 262,144 features needs 143 MB" in reason


@pytest.mark.parametrize("name", MODELS)
def test_wide_sparse_rows_take_no_more_than_they_may(name):
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(2**20, size=(90, 5)), axis=1).ravel()
    rows = np.repeat(np.arange(90), 5)
    X = sparse.csr_array((rng.normal(size=450), (rows, columns)), shape=(90, 2**20))
    peak, reason = peak_of(lambda: MODELS[name].fit(X))
    assert peak < LIMIT
    assert (
        "features" in reason or "landmarks" in reason or name in ("exact", "map-given")
    )


FITS = {
    "nystrom": lambda limit: NystromKMeans(3, max_memory=limit, random_state=0),
    "given": lambda limit: NystromKMeans(
        3, n_landmarks=120, max_memory=limit, random_state=0
    ),
    "map": lambda limit: Nystrom(max_memory=limit, random_state=0),
    "map-given": lambda limit: Nystrom(
        n_landmarks=120, max_memory=limit, random_state=0
    ),
    "sketched": lambda limit: SketchedKMeans(3, max_memory=limit, random_state=0),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("limit", [60_000_000, 110_000_000])
def test_landmarks_of_wide_rows_are_part_of_the_plan(name, limit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2**15)).astype(np.float32)
    X[:100] += 1.0
    peak, _ = peak_of(lambda: FITS[name](limit).set_params(n_jobs=1).fit(X))
    assert peak < limit


def test_few_values_of_wide_sparse_rows_need_few_bytes():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(2**19, size=(600, 5)), axis=1)
    columns[:300, 0] = 7
    rows = np.repeat(np.arange(600), 5)
    X = sparse.csr_array(
        (np.ones(3000), (rows, columns.ravel())), shape=(600, 2**19)
    )  # as dense rows 2.5 GB
    for model in (NystromKMeans(2, random_state=0), Nystrom(random_state=0)):
        model.set_params(max_memory="150MB")
        peak, reason = peak_of(lambda model=model: model.fit(X))
        assert not reason
        assert peak < 150_000_000


def test_a_reducer_is_refused_before_it_is_fitted(monkeypatch):
    X = sparse.csr_array((50, 10**6))
    svd, signs = ApproximateSVD(5, random_state=0), SignProjection(64, random_state=0)
    monkeypatch.setattr("sketchmeans.reduction.base.memory_budget", lambda _: 10**6)
    for reducer, need in ((svd, "672 MB"), (signs, "8 MB")):
        peak, reason = peak_of(lambda reducer=reducer: reducer.fit(X))
        assert peak < 10**6
        assert f"of rows of 1,000,000 features needs {need}; half" in reason


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_explicit_features_of_few_wide_rows_take_no_matrix_of_all_columns(kernel):
    rng = np.random.default_rng(0)
    groups = rng.integers(4, size=90)
    X = rng.normal(size=(90, 6000)) + rng.normal(size=(4, 6000))[groups]
    model = NystromKMeans(4, kernel=kernel, max_memory="200MB", random_state=0)
    peak, reason = peak_of(lambda: model.fit(X))
    assert not reason
    assert peak < 6000**2 * 8 / 4
    exact = KernelKMeans(4, kernel=kernel, random_state=0).fit(X)
    np.testing.assert_allclose(model.cost_, exact.cost_, rtol=1e-6)
    assert (model.predict(X) == model.labels_).all()
