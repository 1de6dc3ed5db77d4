"""Verdicts: intervals that cover, Holm's correction, all three outcomes."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from experiments.evidence import (
    Evidence,
    Verdict,
    exactly,
    judge,
    of_counts,
    over_draws,
)


def draws(mean: float, n: int = 20, spread: float = 0.1, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=n)
    return mean + spread * (noise - noise.mean())


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (0.5, Verdict.SUPPORTED),
        (1.0, Verdict.CONTRADICTED),
        (0.0, Verdict.CONTRADICTED),
        (0.61, Verdict.UNDECIDED),
        (0.39, Verdict.UNDECIDED),
    ],
)
def test_a_mean_against_a_region(mean: float, verdict: Verdict) -> None:
    part = over_draws("mean", draws(mean), (0.4, 0.6))
    assert part.verdict(0.01) is verdict
    assert part.low < part.estimate < part.high
    (finding,) = judge([Evidence("X", [part])])
    assert finding.verdict is verdict


def test_intervals_cover_about_as_often_as_they_say() -> None:
    rng, inside, wrong, n = np.random.default_rng(1), 0, 0, 5
    for _ in range(300):
        part = over_draws("mean", rng.normal(size=n), (0.0, inf))
        inside += part.low <= 0.0 <= part.high
        wrong += part.verdict(0.05) is not Verdict.UNDECIDED
    assert inside >= 275  # 285 wanted; the worst of a thousand runs has 273
    assert wrong <= 30  # at the edge of the region either decision is an error


def test_draws_stay_together() -> None:
    # The two columns of a draw are far apart between draws, equal within one.
    both = draws(3.0, spread=5.0)[:, None] + np.array([0.0, 0.2])
    gap = over_draws("gap", both, (0.1, inf), lambda rows: np.diff(rows).mean())
    assert gap.estimate == pytest.approx(0.2)
    assert gap.verdict(1e-5) is Verdict.SUPPORTED


def test_one_draw_decides_nothing() -> None:
    part = over_draws("mean", [5.0], (0.0, 1.0))
    assert part.verdict(0.5) is Verdict.UNDECIDED


def test_draws_that_agree_decide_by_their_number() -> None:
    for n, verdict in ((5, Verdict.UNDECIDED), (20, Verdict.SUPPORTED)):
        part = over_draws("wins", np.ones(n), (0.5, 1.0))
        assert part.p_inside == 2.0 ** (1 - n)
        assert part.verdict(0.01) is verdict


def test_counts() -> None:
    assert of_counts("share", 200, 200, 0.9).verdict(0.01) is Verdict.SUPPORTED
    assert of_counts("share", 20, 20, 0.9).verdict(0.05) is Verdict.UNDECIDED
    assert of_counts("share", 150, 200, 0.9).verdict(0.01) is Verdict.CONTRADICTED
    assert of_counts("share", 0, 0, 0.9).verdict(0.5) is Verdict.UNDECIDED


def test_exact_numbers_decide() -> None:
    assert exactly("ratio", 0.99, (-inf, 1.0)).verdict(0.0) is Verdict.SUPPORTED
    assert exactly("ratio", 1.01, (-inf, 1.0)).verdict(0.0) is Verdict.CONTRADICTED


def test_a_claim_asserts_all_its_parts() -> None:
    good, bad = exactly("a", 0.0, (0.0, 1.0)), exactly("b", 2.0, (0.0, 1.0))
    open_ = over_draws("c", draws(1.0), (0.0, 1.0))
    cases = {
        Verdict.SUPPORTED: [good],
        Verdict.CONTRADICTED: [good, bad, open_],
        Verdict.UNDECIDED: [good, open_],
        Verdict.UNTESTED: [],
    }
    for verdict, parts in cases.items():
        assert judge([Evidence("X", parts)])[0].verdict is verdict


def test_more_parts_ask_for_more() -> None:
    part = over_draws("mean", draws(0.06, spread=0.1), (0.0, inf))
    assert 0.001 < part.p_inside < LEVEL_OF_ONE
    assert judge([Evidence("X", [part])])[0].verdict is Verdict.SUPPORTED
    others = [over_draws(f"{i}", draws(0.0, seed=i), (0.0, inf)) for i in range(20)]
    found = judge([Evidence("X", [part]), Evidence("Y", others)])
    assert found[0].verdict is Verdict.UNDECIDED


LEVEL_OF_ONE = 0.05 / 3


def test_parts_that_cannot_fail_decide_nothing() -> None:
    sure = over_draws("time", draws(1.0), (-inf, 100.0), can_fail=False)
    assert str(sure).endswith("cannot fail here")
    (alone,) = judge([Evidence("X", [sure])])
    assert (alone.verdict, alone.verdicts) == (Verdict.REPORTED, [Verdict.REPORTED])
    bad = over_draws("gap", draws(-1.0), (0.0, inf))
    (both,) = judge([Evidence("X", [sure, bad])])
    assert both.verdict is Verdict.CONTRADICTED
    # They take no part of the level either.
    edge = over_draws("mean", draws(0.06, spread=0.1), (0.0, inf))
    (found,) = judge([Evidence("X", [edge, *[sure] * 20])])
    assert found.verdict is Verdict.SUPPORTED


def test_an_earlier_rule_has_a_verdict_of_its_own() -> None:
    good, bad = (over_draws("gap", draws(sign), (0.0, inf)) for sign in (1.0, -1.0))
    found = judge([Evidence("X", [good], "", [bad]), Evidence("Y", [good])])
    assert [finding.verdict for finding in found] == [Verdict.SUPPORTED] * 2
    assert [finding.earlier for finding in found] == [Verdict.CONTRADICTED, None]


def test_counts_say_which_margin_decides() -> None:
    part = over_draws(
        "share", draws(0.2), (0.5, inf), lambda rows: 1.0, margin=lambda r: r.mean()
    )
    assert "decided by a margin of +0.2" in str(part)


def test_one_sided_parts_support_or_stay_open() -> None:
    for value, verdict in ((0.5, Verdict.SUPPORTED), (9.0, Verdict.UNDECIDED)):
        part = replace(exactly("ratio", value, (-inf, 1.0)), one_sided=True)
        assert part.verdict(0.01) is verdict
        assert str(part).endswith("can support or stay open")
        assert judge([Evidence("X", [part])])[0].verdict is verdict


def test_an_open_one_sided_part_takes_no_level_from_others() -> None:
    far = replace(exactly("ratio", 9.0, (-inf, 1.0)), one_sided=True)
    edge = over_draws("mean", draws(0.08, spread=0.1), (0.0, inf))
    alone, both = judge([Evidence("X", [edge])]), judge([Evidence("X", [edge, far])])
    assert alone[0].verdicts == both[0].verdicts[:1] == [Verdict.SUPPORTED]


def test_reported_parts_decide_nothing_whatever_they_say() -> None:
    for value in (0.5, 9.0):
        part = exactly("ratio", value, (-inf, 1.0)).reported("of our own sampler")
        assert part.verdict(1.0) is Verdict.REPORTED
        assert str(part).endswith("of our own sampler")
        assert judge([Evidence("X", [part])])[0].verdict is Verdict.REPORTED


def test_a_remark_sees_the_verdicts() -> None:
    good = exactly("ratio", 0.5, (-inf, 1.0))
    (found,) = judge(
        [Evidence("X", [good], "", [good], lambda f: f"{f.earlier} before")]
    )
    assert found.remark == "supported before"
