"""Eigenvalues of landmark graphs: all copies of zero, and bounds that hold."""

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.data.rows import Rows
from sketchmeans.engine.blocks import local_engine
from sketchmeans.graphs import spectrum
from sketchmeans.graphs.space import GraphSpace, LandmarkGram
from sketchmeans.graphs.spectrum import smallest_eigenvalues
from sketchmeans.graphs.weights import GivenGraph
from sketchmeans.numerics.parallel import Workers
from tests.pairs import every_value


def random_rows_of_z(rng, n, p, n_parts, per_row=3):
    """Return stochastic rows, each connected to landmarks of one part of the graph."""
    part_of_landmark = np.arange(p) % n_parts
    Z = np.zeros((n, p))
    for i in range(n):
        own = np.flatnonzero(part_of_landmark == i % n_parts)
        chosen = rng.choice(own, min(per_row, len(own)), replace=False)
        Z[i, chosen] = rng.uniform(0.01, 1.0, len(chosen))
    return Z / Z.sum(axis=1, keepdims=True)


def dense_values(gram):
    masses = gram.sum(axis=1)
    root = 1.0 / np.sqrt(masses)
    return np.linalg.eigvalsh(np.eye(len(gram)) - root[:, None] * gram * root)


def naive_cut(Z, weights, labels):
    """Return the normalised cut of the graph W K W, from its definition."""
    K = Z @ np.diag(1.0 / (Z.T @ weights)) @ Z.T
    edges = weights[:, None] * K * weights
    degrees = edges.sum(axis=1)
    return sum(
        edges[np.ix_(labels == c, labels != c)].sum() / degrees[labels == c].sum()
        for c in np.unique(labels)
    )


@every_value
@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_eigenvalues_are_those_of_the_dense_matrix(monkeypatch, n_parts, solver):
    rng = np.random.default_rng(n_parts)
    Z = random_rows_of_z(rng, 400, 90, n_parts)
    gram = Z.T @ (rng.uniform(0.5, 2.0, 400)[:, None] * Z)
    if solver == "lanczos":
        monkeypatch.setattr(spectrum, "_FEW", 0)
        monkeypatch.setattr(spectrum, "_DENSE_SHARE", 1.0)
    found = smallest_eigenvalues(sparse.csr_array(gram), 8)
    np.testing.assert_allclose(found.values, dense_values(gram)[:8], atol=1e-9)
    assert found.n_parts == n_parts
    assert (found.values[:n_parts] == 0.0).all()
    product = found.vectors.T @ found.vectors
    np.testing.assert_allclose(product, np.eye(8), atol=1e-7)


def test_all_parts_are_found_where_they_are_more_than_asked_for():
    gram = sparse.csr_array(np.kron(np.eye(7), np.ones((3, 3))))
    found = smallest_eigenvalues(gram, 4)
    assert found.n_parts == 7
    np.testing.assert_array_equal(found.values, np.zeros(7))


def test_landmarks_without_mass_are_left_out():
    gram = np.zeros((5, 5))
    gram[:4, :4] = np.kron(np.eye(2), np.ones((2, 2)))
    found = smallest_eigenvalues(sparse.csr_array(gram), 3)
    assert found.n_parts == 2
    assert not found.vectors[4].any()


@pytest.mark.parametrize("seed", range(12))
def test_no_partition_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    k, p = int(rng.integers(1, 7)), int(rng.integers(8, 40))
    n, n_parts = int(rng.integers(p, 4 * p)), int(rng.integers(1, 6))
    Z = random_rows_of_z(rng, n, p, min(n_parts, p // 2))
    Z = Z[:, Z.any(axis=0)]
    weights = rng.exponential(size=n)
    gram = sparse.csr_array(Z.T @ (weights[:, None] * Z))
    bound = smallest_eigenvalues(gram, k + 1).values[:k].sum()
    # The parts themselves, where they are k, are a partition of cut zero.
    for labels in (rng.integers(k, size=n), np.arange(n) % k, np.arange(n) * k // n):
        n_used = len(np.unique(labels))
        if n_used == k:
            assert bound <= naive_cut(Z, weights, labels) + 1e-9


def test_the_gram_of_blocks_is_that_of_all_rows():
    rng = np.random.default_rng(0)
    Z, weights = random_rows_of_z(rng, 9000, 30, 2), rng.exponential(size=9000)
    with Workers(2) as workers:
        rows = Rows(sparse.csr_array(Z), workers, weights)
        engine = local_engine(rows, GraphSpace(GivenGraph(30)))
        assert len(engine.backend.blocks.spans) > 2
        gram = engine.backend.run(LandmarkGram())[1]
    np.testing.assert_allclose(gram.toarray(), Z.T @ (weights[:, None] * Z), rtol=1e-10)
