"""Sums along a tree."""

from itertools import pairwise

import numpy as np
import pytest

from sketchmeans.numerics.sums import TreeSum, merge_sums


@pytest.mark.parametrize("seed", range(20))
def test_terms_that_are_left_out_keep_no_partial_sums_waiting(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    terms = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(-8, 8, size=(n, 1))
    edges = sorted({0, n, *rng.integers(0, n, size=2).tolist()})
    is_there = rng.random(n) < rng.random()
    is_there[edges[:-1]] = True
    plain, parts = TreeSum(), []
    for number in np.flatnonzero(is_there).tolist():
        plain.add(number, terms[number].copy())
    for first, stop in pairwise(edges):
        part = TreeSum()
        for number in range(first, stop):
            if is_there[number]:
                part.add(number, terms[number].copy(), first)
                assert len(part._nodes) <= 2 * np.log2(n) + 2
        parts.append(part)
    assert merge_sums(parts).total().tobytes() == plain.total().tobytes()
