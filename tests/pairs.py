"""Fewer cases that protect as much: pairs or values instead of every product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest

Case = tuple[int, ...]


def _pairs(case: Case) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(case), 2))


def every_pair(**values: Any) -> pytest.MarkDecorator:
    """Parametrize a test by few cases in which all pairs of two values occur.

    Cases are taken greedily from the full product: about as many as the two longest
    lists have pairs.
    """
    names, lists = list(values), [list(options) for options in values.values()]
    cases = list(product(*(range(len(options)) for options in lists)))
    left = set().union(*map(_pairs, cases))
    chosen = []
    while left:
        best = max(cases, key=lambda case: len(_pairs(case) & left))
        chosen.append(best)
        left -= _pairs(best)
    return pytest.mark.parametrize(
        names,
        [
            [options[i] for options, i in zip(lists, case, strict=True)]
            for case in chosen
        ],
    )


def every_value(test: Any = None, **values: Any) -> Any:
    """Parametrize a test so that every value occurs, but not every combination.

    There are as many cases as the longest list has values; the others take turns,
    so that many different pairs occur.  With names and values it is used as
    `every_pair` is; alone, above the `parametrize` marks of a test, it takes the place
    of their product.
    """
    if test is None:
        lists = [[(value,) for value in options] for options in values.values()]
        return pytest.mark.parametrize(list(values), _merge_turns(lists))
    names: list[str] = []
    lists = []
    for mark in test.pytestmark:
        if mark.name == "parametrize":
            given, options = mark.args
            own = given.replace(" ", "").split(",") if isinstance(given, str) else given
            names.extend(own)
            lists.append([tuple(v) if len(own) > 1 else (v,) for v in options])
    test.pytestmark = [mark for mark in test.pytestmark if mark.name != "parametrize"]
    return pytest.mark.parametrize(names, _merge_turns(lists))(test)


def _merge_turns(lists: list[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    turns = _take_turns([len(options) for options in lists])
    return [
        sum((options[i] for options, i in zip(lists, case, strict=True)), ())
        for case in turns
    ]


def _take_turns(lengths: Sequence[int]) -> list[Case]:
    """Return cases in which every value occurs, and values are paired evenly."""
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    seen: set[Any] = set()
    used: Counter[tuple[int, int]] = Counter()
    chosen = []
    for i in range(lengths[longest]):
        ranges = [
            [i] if place == longest else range(n) for place, n in enumerate(lengths)
        ]
        best = max(
            product(*ranges),
            key=lambda case: (
                len(_pairs(case) - seen),
                -sum(used[value] for value in enumerate(case)),
            ),
        )
        chosen.append(best)
        seen |= _pairs(best)
        used.update(enumerate(best))
    return chosen
