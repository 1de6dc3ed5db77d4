"""The sizes that the theorems of B14 ask for, and how they are shown."""

import json
import math

import pytest

from sketchmeans.diagnostics import sketch_size


@pytest.mark.parametrize(("k", "eps"), [(2, 0.1), (40, 0.3)])
def test_sizes_are_those_of_the_paper(k, eps):
    sampling = sketch_size("sampling", k, eps)
    r = 16e6 * 4 * k * math.log(200 * k) / eps**2
    assert sampling.n_components == pytest.approx(r, rel=1e-9)
    assert sampling.factor == pytest.approx(3 + eps)
    assert sampling.probability == pytest.approx(0.2)
    projection = sketch_size("projection", k, eps)
    assert projection.n_components == math.ceil(3330 * 15**2 * k / eps**2)
    assert projection.factor == pytest.approx(2 + eps)
    assert projection.probability == pytest.approx(0.96)
    svd = sketch_size("svd", k, eps)
    assert svd.n_components == k
    assert svd.svd_width == pytest.approx(k + 100 * k / eps + 1, abs=1)
    assert svd.probability == pytest.approx(0.99)


@pytest.mark.parametrize("method", ["sampling", "projection"])
def test_sizes_grow_as_the_demands_do(method):
    size = sketch_size(method, 10, 0.3, 0.01).n_components
    assert size > 10**7
    assert sketch_size(method, 20, 0.3, 0.01).n_components > size
    assert sketch_size(method, 10, 0.1, 0.01).n_components > size
    safer = sketch_size(method, 10, 0.3, 1e-4)
    assert safer.n_components > size
    assert safer.probability > sketch_size(method, 10, 0.3, 0.01).probability


def test_sampling_for_a_small_delta_follows_lemma_8():
    # 1.6ε/√δ, squared: a tenth of δ takes a hundred times the features, and a log.
    logs = math.log(20 / 1e-3) / math.log(20 / 1e-2)
    sizes = [sketch_size("sampling", 10, 0.3, d).n_components for d in (1e-3, 1e-2)]
    assert sizes[0] == pytest.approx(100 * logs * sizes[1], rel=1e-6)


def test_projection_for_one_cluster_and_small_delta_follows_lemma_10():
    # P(outside the band) <= 18^k exp(-ε²r/576) for every k, also where c₀ = 3330 fails.
    for k, delta in [(1, 0.01), (3, 1e-6)]:
        r = sketch_size("projection", k, 0.15, delta).n_components
        inner = 0.15 / 15
        assert k * math.log(18) - inner**2 * r / 576 <= math.log(delta) + 1e-9


def test_result_says_whether_it_reduces():
    assert sketch_size("sampling", 10, n_features=784).reduces is False
    assert sketch_size("svd", 10, n_features=784).reduces is True
    assert sketch_size("svd", 10).reduces is None


def test_result_is_readable_and_becomes_json():
    size = sketch_size("sampling", 10, n_features=784)
    text = repr(size)
    assert "Theorem 11" in text
    assert f"{size.n_components:,}" in text
    assert "artefacts of the proof" in text
    assert "not fewer than n_features=784" in text
    values = json.loads(json.dumps(size.to_dict()))
    assert values["n_components"] == size.n_components
    assert values["reduces"] is False
    assert "artefacts" in values["note"]
    assert "svd_width" not in repr(sketch_size("projection", 10))


ERRORS = [
    (
        ("pca", 10),
        r"method='pca' should be one of \['sampling', 'projection', 'svd'",
    ),
    (("svd", 0), "n_clusters=0 should be an integer >= 1"),
    (("sampling", 10, 0.34), "eps=0.34 should be > 0 and < 0.333333"),
    (("projection", 10, 0.0), "eps=0.0 should be > 0 and < 0.333333"),
    (("svd", 10, 1.0), "eps=1.0 should be > 0 and < 1"),
    (("sampling", 10, 0.3, 0.06), r"delta=0.06 should be > 0 and < 0.06"),
    (("svd", 10, 0.3, 0.1, 0), "n_features=0 should be an integer >= 1"),
]


def test_errors_name_the_parameter():
    for arguments, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            sketch_size(*arguments)


def test_eps_up_to_1_for_the_svd():
    assert sketch_size("svd", 10, 0.9).factor == pytest.approx(2.9)
