"""scikit-learn's own tests of KMeans, run against `SketchedKMeans` in its place.

The module is read from the installed package, and its `KMeans` is ours: a user changes
one import line.
"""

import importlib.util
import types
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import sklearn.cluster
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from sketchmeans import SketchedKMeans
from tests.pairs import every_value

# Theirs says nothing when it ends at max_iter.
pytestmark = pytest.mark.filterwarnings("ignore:No convergence")


class _KMeans(SketchedKMeans):
    """`SketchedKMeans` with the two parameters that say how theirs works inside."""

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        verbose=0,
        random_state=None,
        copy_x=True,
        algorithm="lloyd",
    ):
        super().__init__(
            n_clusters,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
            random_state=random_state,
        )
        self.copy_x, self.algorithm = copy_x, algorithm


_KMeans.__name__ = "KMeans"  # names of features begin with it

#: Tests of KMeans that cannot apply, and why.
_NOT_OURS = {
    "test_kmeans_init_auto_with_initial_centroids": "reads the private _n_init",
    "test_n_init_auto": "reads the private _n_init",
    "test_kmeans_verbose": "looks for the words of scikit-learn's log; ours is logged",
    "test_kmeans_elkan_iter_attribute": "elkan by name",
    "test_warning_elkan_1_cluster": "elkan by name",
    "test_sample_weight_init": "calls the private _init_centroids",
    "test_sample_weight_zero": "calls the private _init_centroids",
    "test_relocate_empty_clusters": "calls a private function",
    "test_euclidean_distance": "calls a private function",
    "test_inertia": "calls a private function",
    "test_is_same_clustering": "calls a private function",
    "test_k_means_function": "about the function k_means",
    "test_relocating_with_duplicates": "counts no pass that finds nothing to gain; "
    "the rest of it is test_given_centres_of_few_distinct_rows",
}


def _read_tests():
    spec = importlib.util.find_spec("sklearn.cluster.tests.test_k_means")
    if spec is None or spec.origin is None:  # some distributions leave tests out
        return {}
    module = types.ModuleType("sklearn_tests_of_kmeans")
    module.__package__ = "sklearn.cluster.tests"
    source = compile(Path(spec.origin).read_text(), spec.origin, "exec")
    with mock.patch.object(sklearn.cluster, "KMeans", _KMeans):
        exec(source, vars(module))
    return {
        name: every_value(value) if hasattr(value, "pytestmark") else value
        for name, value in vars(module).items()
        if name.startswith("test_")
        and name not in _NOT_OURS
        and "minibatch" not in name
        and "plusplus" not in name
    }


globals().update(_read_tests())


def test_given_centres_of_few_distinct_rows():
    X = np.array([[0, 0], [1, 1], [1, 1], [1, 0], [0, 1]])
    message = r"clusters \(4\) found smaller than n_clusters \(5\)"
    with pytest.warns(ConvergenceWarning, match=message):
        model = SketchedKMeans(5, init=X).fit(X)
    assert model.inertia_ == 0.0


@pytest.mark.parametrize("reducer", ["svd", None])
def test_given_centres_start_a_sketched_fit_too(reducer):
    X, groups = make_blobs(300, 12, centers=4, random_state=0)
    centers = np.stack([X[groups == j].mean(axis=0) for j in (2, 0, 3, 1)])
    model = SketchedKMeans(4, reducer=reducer, init=centers, random_state=0).fit(X)
    assert_array_equal(model.labels_, np.array([1, 3, 0, 2])[groups])
    assert (model.reducer_ is None) == (reducer is None)


def test_a_function_is_asked_once_for_each_restart():
    X, calls = make_blobs(200, 3, random_state=0)[0], []

    def init(rows, n_clusters, random_state):
        calls.append(random_state.randint(10**9))
        return rows[random_state.choice(len(rows), n_clusters)]

    SketchedKMeans(3, init=init, n_init=4, random_state=0).fit(X)
    assert len(set(calls)) == 4


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def global_dtype():
    return np.float64


def test_there_are_tests():
    assert len(_read_tests()) > 20


def test_what_is_left_out_is_there():
    spec = importlib.util.find_spec("sklearn.cluster.tests.test_k_means")
    source = Path(spec.origin).read_text()
    assert [name for name in _NOT_OURS if f"def {name}(" not in source] == []
