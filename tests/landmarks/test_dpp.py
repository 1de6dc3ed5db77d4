"""k-DPP landmarks: the law of the chain, determinant ratios, drift, cost."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import RBF, as_kernel
from sketchmeans.landmarks import KDPP, Uniform, select_landmarks
from sketchmeans.landmarks import dpp as module
from sketchmeans.landmarks.dpp import _EXCHANGES, InverseRoot, SwapChain
from sketchmeans.numerics.parallel import Workers
from tests.oracles import kernel_matrix, law_p_value, rbf, same_law_p_value

LEVEL = 1e-3
W6 = np.array([1.0, 3.0, 2.0, 0.5, 1.5, 1.0])
every_exchange = pytest.mark.parametrize("exchange", _EXCHANGES)


@pytest.fixture
def workers():
    with Workers(1) as pool:
        yield pool


def scattered(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def gram(X, gamma=0.5):
    return kernel_matrix(rbf, X, X, gamma=gamma)


def chosen_sets(K, size, times, seed, workers, weights=None, **params):
    """Return the sorted sets that a selector draws, once for each of some seeds."""
    weights = None if weights is None else np.asarray(weights, float)
    rows, kernel = as_rows(K, workers, weights), as_kernel("precomputed")
    selector = KDPP(start="uniform", **params)
    return np.array(
        [
            np.sort(selector.select(rows, kernel, size, rng).indices)
            for rng in np.random.default_rng(seed).spawn(times)
        ]
    )


def set_law(K, size, weights):
    """Return the law of the k-DPP of ``D^½ K D^½``, by enumeration."""
    mass = {
        S: np.prod(weights[list(S)]) * np.linalg.det(K[np.ix_(S, S)])
        for S in combinations(range(len(K)), size)
    }
    total = sum(mass.values())
    return {S: p / total for S, p in mass.items()}


# --- the law --------------------------------------------------------------------------


@pytest.mark.law
def test_who_leaves_is_drawn_by_the_determinant_of_those_who_stay():
    rng, ratios = np.random.default_rng(0), np.array([1.0, 0.0, 2.0])
    left = [_EXCHANGES["determinant"](ratios, rng) for _ in range(2000)]
    numbers = [3 if slot is None else slot for slot in left]  # 3 is the newcomer
    assert law_p_value(numbers, {0: 0.25, 2: 0.5, 3: 0.25}) > LEVEL
    left = [_EXCHANGES["uniform"](0.5 * ratios, rng) for _ in range(2000)]
    numbers = [3 if slot is None else slot for slot in left]
    assert law_p_value(numbers, {0: 1 / 6, 2: 1 / 3, 3: 0.5}) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize(
    ("exchange", "weights"),
    [("determinant", W6), ("uniform", None)],
    ids=["weighted", ""],
)
def test_the_sets_follow_the_determinants(workers, exchange, weights):
    K = gram(scattered(6))
    steps, times = {"determinant": 20, "uniform": 40}[exchange], 1000
    drawn = chosen_sets(
        K, 3, times, 1, workers, weights, exchange=exchange, n_steps=steps
    )
    law = set_law(K, 3, np.ones(6) if weights is None else W6)
    common = {S: p for S, p in law.items() if p * times >= 10.0}
    number = {S: i for i, S in enumerate(common)}
    seen = [number.get(tuple(S), len(common)) for S in drawn.tolist()]
    merged = {i: law[S] for S, i in number.items()}
    merged[len(common)] = 1.0 - sum(merged.values())
    if merged[len(common)] * times < 5.0:  # too rare for a class of its own
        merged[0] += merged.pop(len(common))
        seen = [0 if i == len(common) else i for i in seen]
    assert law_p_value(seen, merged) > LEVEL


@pytest.mark.law
def test_the_marginals_follow_the_determinants(workers):
    K, times = gram(scattered(7, seed=2), gamma=0.2), 800
    drawn = chosen_sets(K, 3, times, 3, workers, n_steps=25)
    law = set_law(K, 3, np.ones(7))
    marginal = np.array([sum(p for S, p in law.items() if i in S) for i in range(7)])
    counts = np.bincount(drawn.ravel(), minlength=7)
    deviation = np.sqrt(times * marginal * (1.0 - marginal))
    assert (np.abs(counts - times * marginal) < 4.0 * deviation).all()
    assert marginal.max() - marginal.min() > 0.2


@pytest.mark.law
@every_exchange
def test_weights_equal_repeats_in_law_at_every_length_of_the_chain(workers, exchange):
    # Far from balance: the law after a few steps is that of the start and the moves.
    copies, K = np.array([1, 6, 2, 4, 3]), gram(scattered(5, seed=4))
    number = np.repeat(np.arange(5), copies)
    settings = {"exchange": exchange, "n_steps": 2}
    weighted = chosen_sets(K, 2, 800, 5, workers, copies, **settings)
    repeated = chosen_sets(K[np.ix_(number, number)], 2, 800, 6, workers, **settings)
    repeated = np.sort(number[repeated], axis=1)
    assert same_law_p_value(weighted, repeated) > LEVEL


# --- determinant ratios ---------------------------------------------------------------


def test_ratios_are_those_of_the_determinants():
    K = gram(scattered(9, seed=7))
    members = [0, 3, 4, 6, 8]
    inverse = InverseRoot(K[np.ix_(members, members)], 1e-14)
    for j in (1, 2, 5, 7):
        ratios = inverse.meet(K[j, members], K[j, j]).ratios
        before = np.linalg.det(K[np.ix_(members, members)])
        for slot, ratio in enumerate(ratios):
            after = [*members]
            after[slot] = j
            expected = np.linalg.det(K[np.ix_(after, after)]) / before
            assert ratio == pytest.approx(expected, rel=1e-8)


def walked(X, size, steps, workers, exchange="determinant", gamma=0.5, seed=8):
    """Return a chain from a uniform start after some steps."""
    rows, kernel = as_rows(X, workers), as_kernel("rbf", gamma=gamma)
    rng = np.random.default_rng(seed)
    start = Uniform().select(rows, kernel, size, rng).indices
    chain = SwapChain(rows, kernel, start)
    for proposals in np.split(rng.integers(len(X), size=steps), 5):
        chain.walk(proposals, _EXCHANGES[exchange], rng)
    return chain, start


def worst_error(chain):
    """Return how far the root is from one of the inverse of the members' matrix."""
    inverse = chain.inverse
    shifted = inverse.gram + inverse.ridge * np.eye(len(inverse.gram))
    return np.abs(inverse.root.T @ shifted @ inverse.root - np.eye(len(shifted))).max()


@every_exchange
@pytest.mark.parametrize("gamma", [0.05, 2.0], ids=["dependent", "independent"])
def test_the_inverse_does_not_drift(workers, exchange, gamma):
    X = scattered(500, seed=9)
    chain, start = walked(X, 40, 2000, workers, exchange, gamma)
    assert len(np.intersect1d(start, chain.members)) < 20
    np.testing.assert_allclose(
        chain.inverse.gram, gram(X[chain.members], gamma), atol=1e-13
    )
    assert worst_error(chain) < 1e-5
    assert chain.inverse.ridge == pytest.approx(1.49e-8, rel=1e-2)


def test_the_inverse_is_computed_afresh_after_many_swaps(workers, monkeypatch):
    fresh = []
    refresh = InverseRoot._refresh

    def counted(self):
        fresh.append(getattr(self, "_swaps", None))
        refresh(self)

    monkeypatch.setattr(InverseRoot, "_refresh", counted)
    walked(scattered(500, 5, seed=10), 30, 1500, workers)
    assert fresh[0] is None
    assert len(fresh) >= 4
    assert set(fresh[1:]) == {module._REFRESH_SWAPS}


def test_the_inverse_is_computed_afresh_when_it_drifts(workers):
    chain, _ = walked(scattered(500, 5, seed=11), 30, 100, workers)
    chain.inverse.root += 1e-3
    assert worst_error(chain) > 1e-3
    rng = np.random.default_rng(12)
    chain.walk(rng.integers(500, size=60), _EXCHANGES["determinant"], rng)
    assert worst_error(chain) < 1e-9


def test_a_chain_finds_its_way_out_of_dependent_rows(workers):
    X = np.sort(scattered(300, 1, seed=13), axis=0)
    rows, kernel = as_rows(X, workers), as_kernel("rbf", gamma=2.0)
    chain = SwapChain(rows, kernel, np.arange(100, 112))  # neighbours on a line
    before = np.linalg.slogdet(gram(X[chain.members], 2.0) + 1e-12 * np.eye(12))[1]
    rng = np.random.default_rng(14)
    chain.walk(rng.integers(300, size=400), _EXCHANGES["determinant"], rng)
    after = np.linalg.slogdet(gram(X[chain.members], 2.0) + 1e-12 * np.eye(12))[1]
    assert after > before + 50.0


# --- cost -----------------------------------------------------------------------------


class CountingRBF(RBF):
    """An rbf kernel that counts its values."""

    count = 0

    def against(self, Z, dtype=None, workers=None):
        columns = super().against(Z, dtype, workers)

        def counted(block, out=None):
            values = columns(block, out)
            CountingRBF.count += values.size
            return values

        return counted


def test_a_step_costs_the_same_whatever_the_number_of_rows():
    counts = []
    for n in (300, 30_000):
        CountingRBF.count = 0
        selector = KDPP(start="uniform", n_steps=600)
        select_landmarks(
            scattered(n), 20, selector, kernel=CountingRBF(gamma=1.0), random_state=0
        )
        counts.append(CountingRBF.count)
    assert counts[0] == counts[1]
    assert counts[0] < 600 * (20 + 300)


# --- the landmarks --------------------------------------------------------------------


@pytest.mark.parametrize("start", ["uniform", "k-means++"])
def test_without_steps_the_start_is_left_as_it_is(start):
    X = scattered(100)
    chosen = select_landmarks(X, 12, KDPP(start=start, n_steps=0), random_state=0)
    more = select_landmarks(X, 12, KDPP(start=start, n_steps=50), random_state=0)
    assert len(set(chosen.indices.tolist())) == 12
    assert set(chosen.indices.tolist()) != set(more.indices.tolist())
    np.testing.assert_array_equal(more.points, X[more.indices])


def test_an_indefinite_or_zero_kernel_still_gives_landmarks():
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        chosen = select_landmarks(
            scattered(40), 10, KDPP(start="uniform"), kernel="sigmoid", random_state=3
        )
    assert len(chosen) == 10
    X = np.vstack([np.zeros((1, 2)), scattered(20)])
    assert len(select_landmarks(X, 2, KDPP(start="uniform"), kernel="linear")) == 2


ERRORS = [("start", "best"), ("exchange", None), ("n_steps", -1)]


def test_parameters_are_checked():
    for name, value in ERRORS:
        selector = KDPP().set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name}={value!r} should be"):
            select_landmarks(scattered(20), 5, selector)


def test_kernel_values_that_overflow_are_an_error():
    X = 1e200 * np.array([[1.0], [2.0], [3.0]])
    with (
        pytest.raises(ValueError, match="kernel values overflow"),
        np.errstate(over="ignore"),
    ):
        select_landmarks(X, 2, KDPP(start="uniform"), kernel="linear", random_state=0)
