"""What the papers claim, and what a re-run can say about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    FAILS = "does not hold"
    UNTESTED = "not testable here"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, in our words."""

    id: str
    source: str
    statement: str


@dataclass(frozen=True)
class Finding:
    """A verdict with the numbers behind it, all of them computed.

    Attributes
    ----------
    claim : str
        The id of the claim.
    verdict : Verdict
    evidence : str
        The numbers, in words.
    tried : str
        Where the claim does not hold as it stands: what was done to find out why.
    """

    claim: str
    verdict: Verdict
    evidence: str
    tried: str = ""


def judged(parts: Iterable[bool]) -> Verdict:
    """Return the verdict on a claim whose parts were each found true or not.

    >>> judged([True, False])
    <Verdict.PART: 'holds in part'>
    """
    found = [bool(part) for part in parts]
    if not found:
        return Verdict.UNTESTED
    if all(found):
        return Verdict.HOLDS
    return Verdict.PART if any(found) else Verdict.FAILS


def untested(claim: str, reason: str) -> Finding:
    """Return the finding for a claim that the table says nothing about."""
    return Finding(claim, Verdict.UNTESTED, reason)


CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "CR1",
            "CR18 Fig. 1",
            "MNIST: the cost on new digits falls with the number of landmarks m and "
            "flattens near m = √n ≈ 245",
        ),
        Claim("CR2", "CR18 Fig. 1", "MNIST: NMI flattens at the same m"),
        Claim(
            "CR3",
            "CR18 Fig. 2, §5",
            "8 million digits, m = 400: NMI about 0.405, in less than 6 minutes on 36 "
            "cores",
        ),
        Claim(
            "CR4",
            "CR18 Lemma 2",
            "With γ-preserving landmarks the optimal cost rises by at most "
            "min(k, d_eff) γ / ((1 − ε) n)",
        ),
        Claim(
            "CR5",
            "CR18 Lemmas 1, 3, §6",
            "Dictionaries of the sizes of the lemmas are γ-preserving at least 1 − δ "
            "of the time; leverage scores need far fewer points than uniform draws",
        ),
        Claim(
            "CR6",
            "CR18 Prop. 3",
            "The mean cost after k-means++ is at most 8 (ln k + 2) times the optimum",
        ),
        Claim(
            "L1",
            "L21 Fig. 1",
            "The excess risk of kernel k-means falls as k^a / n^b with a and b about "
            "0.5",
        ),
        Claim(
            "L2",
            "L21 Fig. 2",
            "The excess error stops falling past some m, and that m grows with k",
        ),
        Claim(
            "L3",
            "L21 Table 1",
            "The scores of Table 1, and Nyström with m = 100 as good as exact",
        ),
        Claim("L4", "L21 §3.2", "Local search lowers the cost of k-means++"),
        Claim(
            "O1",
            "OG17 Fig. 1, App. B",
            "Kernel k-means++ landmarks have the best lift on most datasets (10 of 13)",
        ),
        Claim(
            "O2",
            "OG17 §5",
            "Leverage scores win on cal-housing; k-means++ gains most on ailerons and "
            "elevators",
        ),
        Claim(
            "O3",
            "OG17 Fig. 2, §4.2",
            "K-DPP chains from a uniform start take far more time and give a low lift; "
            "a k-means++ start repairs much of it",
        ),
        Claim("O4", "OG17 Fig. 3", "The lift grows with the rank, from 5 to 100"),
        Claim("O5", "OG17 §5", "l = K ln K landmarks do about as well as K ln n"),
        Claim(
            "B1",
            "B14 Fig. 1",
            "Synth: accuracy near 1 from about 20 features on, faster than k-means on "
            "all features",
        ),
        Claim(
            "B2",
            "B14 Figs. 1-3",
            "The objective falls towards that of k-means on all features as r goes "
            "from 5 to 100",
        ),
        Claim(
            "B3",
            "B14 §7.5",
            "The sketches beat Laplacian scores in objective and accuracy, but for "
            "accuracy on PIE and COIL20",
        ),
        Claim(
            "B4",
            "B14 Thms 11-13",
            "The objective is within 3 + ε (sampling) and 2 + ε (projection, SVD) of "
            "the optimum",
        ),
    )
}
