"""Fewer cases that protect as much: every pair of values instead of every product."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest


def every_pair(**values: Any) -> pytest.MarkDecorator:
    """Parametrize a test by few cases in which all pairs of two values occur.

    Cases are taken greedily from the full product: about as many as the two longest
    lists have pairs.
    """
    names, lists = list(values), [list(options) for options in values.values()]

    def pairs(case: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(combinations(enumerate(case), 2))

    cases = list(product(*(range(len(options)) for options in lists)))
    left = set().union(*map(pairs, cases))
    chosen = []
    while left:
        best = max(cases, key=lambda case: len(pairs(case) & left))
        chosen.append(best)
        left -= pairs(best)
    return pytest.mark.parametrize(
        names,
        [
            [options[i] for options, i in zip(lists, case, strict=True)]
            for case in chosen
        ],
    )
