"""From repeats to verdicts: intervals by bootstrap, Holm's correction, three outcomes.

A claim is cut into parts.  Each part says that a number lies in a region; it has an
estimate, a 95% interval and two p-values, one for "inside" and one for "outside".  All
parts of a paper share one level by Holm's method, divided by the number of looks that
sequential repeats take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

import numpy as np
from scipy import stats

from benchmarks.data import Array

#: Level of all decisions about one paper, and times that repeats may be looked at.
LEVEL, LOOKS = 0.05, 3
#: Repeats after which claims are looked at: the rest is run only for undecided ones.
STAGES = (5, 10, 20)
_RESAMPLES = 2_000
#: Standard errors this small, against the estimate, are rounding.
_NO_SPREAD = 1e-12

Region = tuple[float, float]


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    UNTESTED = "not testable here"
    REPORTED = "reported"


@dataclass(frozen=True)
class Part:
    """One number that a claim speaks of.

    Attributes
    ----------
    name : str
    estimate, low, high : float
        With the ends of the 95% interval.
    region : pair of float
        Where the claim says that it lies.
    p_inside, p_outside : float
        Of the hypotheses that it is outside, and inside: small values decide.
    effect : float
        Distance from the nearest end of the region in standard deviations of a draw,
        positive inside.
    paper : float or None
        The paper's own number.
    margin : float or None
        What decides a count or a rank: positive inside.
    can_fail : bool
        Whether the part could have come out otherwise. One that could not is printed
        and decides nothing.
    why : str
        Why a part that does not count does not.
    one_sided : bool
        Whether a number outside says nothing against the claim, such as the ratio to a
        lower bound: the part can support, or stay open.
    digits : int
        Significant ones that are printed.
    """

    name: str
    estimate: float
    low: float
    high: float
    region: Region
    p_inside: float
    p_outside: float
    effect: float = inf
    paper: float | None = None
    margin: float | None = None
    can_fail: bool = True
    why: str = "cannot fail here"
    one_sided: bool = False
    digits: int = 3

    def verdict(self, level: float) -> Verdict:
        """Return what this part alone says at a level."""
        if not self.can_fail:
            return Verdict.REPORTED
        if self.p_inside <= level:
            return Verdict.SUPPORTED
        outside = self.p_outside <= level and not self.one_sided
        return Verdict.CONTRADICTED if outside else Verdict.UNDECIDED

    @property
    def decisive(self) -> float:
        """The p-value by which the part is decided."""
        return self.p_inside if self.one_sided else min(self.p_inside, self.p_outside)

    def reported(self, why: str) -> Part:
        """Return the part as one that decides nothing."""
        return replace(self, can_fail=False, why=why)

    @property
    def brief(self) -> str:
        """The estimate with its interval alone."""
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __str__(self) -> str:
        digits = f".{self.digits}g" if self.digits <= 3 else f"#.{self.digits}g"
        text = f"{self.name}: {self.estimate:{digits}}"
        if self.low < self.high:
            text += f" [{self.low:{digits}}, {self.high:{digits}}]"
        text += f", claimed {_region_text(self.region)}"
        if self.paper is not None:
            text += f", paper {self.paper:.3g}"
        if self.margin is not None:
            text += f", decided by a margin of {self.margin:+.3g}"
        if not self.can_fail:
            return f"{text}, {self.why}"
        return f"{text}, can support or stay open" if self.one_sided else text


def _region_text(region: Region) -> str:
    low, high = region
    if low == -inf:
        return f"≤ {high:.3g}"
    return f"≥ {low:.3g}" if high == inf else f"{low:.3g} to {high:.3g}"


def over_draws(
    name: str,
    draws: Sequence[Array] | Array,
    region: Region,
    statistic: Callable[[Array], float] = np.mean,
    paper: float | None = None,
    margin: Callable[[Array], float] | None = None,
    can_fail: bool = True,
) -> Part:
    """Return the part for a statistic of independent draws, stacked along axis 0.

    Whole draws are resampled, so what belongs to one draw stays together.  The interval
    is the percentile interval of the bootstrap about the estimate, widened by
    ``√(n/(n−1)) t/z`` for few draws; p-values are Student's, with the standard error of
    the bootstrap and n − 1 degrees of freedom.  A statistic that no resample moves,
    such as a count on which all draws agree, has the p-value ``2^(1−n)`` of n equal
    signs.

    Counts and ranks hardly move with the draws.  Their `margin` does: a statistic that
    is positive exactly where `statistic` is in its region.  It then has the p-values.
    """
    values = np.asarray(draws, dtype=np.float64)
    n = len(values)
    estimate = float(statistic(values))
    if n < 2:
        open_ = (region, 1.0, 1.0, 0.0, paper, None, can_fail)
        return Part(name, estimate, -inf, inf, *open_)
    found, error = _resample(values, statistic)
    wide = np.sqrt(n / (n - 1.0)) * stats.t.isf(0.025, n - 1) / stats.norm.isf(0.025)
    low, high = estimate + wide * (np.nanpercentile(found, [2.5, 97.5]) - estimate)
    decisive, limits = estimate, region
    if margin is not None:
        decisive, limits = float(margin(values)), (0.0, inf)
        # Shares and ranks have ends, which a widened interval would leave.
        low, high = np.clip([low, high], np.nanmin(found), np.nanmax(found))
        error = _resample(values, margin)[1]
    inside, outside = _p_values(decisive, error, limits, n)
    gap = min(decisive - limits[0], limits[1] - decisive)
    spread = error * np.sqrt(n)
    effect = float(gap / spread) if spread > 0.0 else float(np.copysign(inf, gap))
    shown = None if margin is None else decisive
    tests = (inside, outside, effect, paper, shown, can_fail)
    return Part(name, estimate, float(low), float(high), region, *tests)


def _resample(
    values: Array, statistic: Callable[[Array], float]
) -> tuple[Array, float]:
    """Return a statistic of resampled draws, and its standard error."""
    n = len(values)
    chosen = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))
    if statistic is np.mean:  # all resamples at once, a hundred times as fast
        found = values[chosen].reshape(_RESAMPLES, -1).mean(axis=1)
    else:
        found = np.array([statistic(values[rows]) for rows in chosen])
    error = np.sqrt(n / (n - 1.0)) * float(np.nanstd(found))
    is_rounding = error <= _NO_SPREAD * max(abs(float(statistic(values))), 1.0)
    return found, 0.0 if is_rounding else float(error)


def _p_values(
    estimate: float, error: float, region: Region, n: int
) -> tuple[float, float]:
    """Return p-values for being inside and outside of a region, two-sided."""
    (low, high), freedom = region, n - 1
    if not np.isfinite(estimate) or not np.isfinite(error):
        return 1.0, 1.0
    if error == 0.0:
        agreed = 2.0 ** (1 - n)
        return (agreed, 1.0) if low <= estimate <= high else (1.0, agreed)
    above, below = (estimate - low) / error, (high - estimate) / error
    p_inside = 2.0 * max(stats.t.sf(above, freedom), stats.t.sf(below, freedom))
    p_outside = 2.0 * min(stats.t.cdf(above, freedom), stats.t.cdf(below, freedom))
    return min(float(p_inside), 1.0), min(float(p_outside), 1.0)


def of_counts(name: str, successes: int, trials: int, least: float) -> Part:
    """Return the part that says that a probability is at least `least`.

    The interval is that of Clopper and Pearson.
    """
    region = (least, 1.0)
    if not trials:
        return Part(name, np.nan, 0.0, 1.0, region, 1.0, 1.0, 0.0)
    test = stats.binomtest(successes, trials)
    interval = test.proportion_ci(0.95, "exact")
    share = successes / trials
    inside = 2.0 * stats.binom.sf(successes - 1, trials, least)
    outside = 2.0 * stats.binom.cdf(successes, trials, least)
    spread = max(np.sqrt(least * (1.0 - least)), 1e-12)
    return Part(
        name,
        share,
        interval.low,
        interval.high,
        region,
        min(float(inside), 1.0),
        min(float(outside), 1.0),
        float((share - least) / spread),
    )


def exactly(
    name: str, value: float, region: Region, paper: float | None = None
) -> Part:
    """Return the part for a number without chance: one counterexample decides."""
    inside = region[0] <= value <= region[1]
    p = (0.0, 1.0) if inside else (1.0, 0.0)
    effect = inf if inside else -inf
    return Part(name, value, value, value, region, *p, effect, paper)


@dataclass(frozen=True)
class Evidence:
    """The parts of a claim, all of which it asserts, and more numbers in words.

    `earlier` are the parts by an earlier rule of the protocol, on the same draws;
    `remark` has the words that stand beside the verdict.
    """

    claim: str
    parts: Sequence[Part]
    note: str = ""
    earlier: Sequence[Part] = ()
    remark: Callable[[Finding], str] | None = None


@dataclass(frozen=True)
class Finding:
    """A verdict with the numbers behind it."""

    claim: str
    verdict: Verdict
    parts: Sequence[Part] = ()
    note: str = ""
    verdicts: Sequence[Verdict] = field(default=())
    earlier: Verdict | None = None
    remark: str = ""


def judge(evidence: Iterable[Evidence]) -> list[Finding]:
    """Return a verdict on each claim of one paper.

    Holm's method over all parts: the smallest p-value counts at ``level/n``, the next
    at ``level/(n−1)``, until one fails; what is left is undecided.  A claim is
    supported if all its parts are, contradicted if one of them is.  Parts that cannot
    fail are left out, and a claim that has no others is reported.  Parts by an earlier
    rule have the level of all parts divided by their number.
    """
    found = list(evidence)
    parts = [part for item in found for part in item.parts if part.can_fail]
    smallest = [part.decisive for part in parts]
    decided: dict[int, Verdict] = {id(part): Verdict.UNDECIDED for part in parts}
    for rank, i in enumerate(np.argsort(smallest, kind="stable")):
        level = LEVEL / LOOKS / (len(parts) - rank)
        if smallest[i] > level:
            break
        decided[id(parts[i])] = parts[i].verdict(level)
    strict = LEVEL / LOOKS / max(len(parts), 1)
    findings = []
    for item in found:
        verdicts = [decided.get(id(p), Verdict.REPORTED) for p in item.parts]
        before = [part.verdict(strict) for part in item.earlier]
        finding = Finding(
            item.claim,
            together(verdicts),
            item.parts,
            item.note,
            verdicts,
            together(before) if before else None,
        )
        remark = item.remark(finding) if item.remark else ""
        findings.append(replace(finding, remark=remark))
    return findings


def together(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on a claim with these parts."""
    counted = [one for one in verdicts if one is not Verdict.REPORTED]
    if not counted:
        return Verdict.REPORTED if verdicts else Verdict.UNTESTED
    if Verdict.CONTRADICTED in counted:
        return Verdict.CONTRADICTED
    if all(one is Verdict.SUPPORTED for one in counted):
        return Verdict.SUPPORTED
    return Verdict.UNDECIDED
