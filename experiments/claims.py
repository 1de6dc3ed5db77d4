"""What the papers claim, in our words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, in our words."""

    id: str
    source: str
    statement: str

    @property
    def paper(self) -> str:
        """The paper, whose claims share one level of significance."""
        return self.source.split()[0]


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
            "of the time",
        ),
        Claim(
            "CR5s",
            "CR18 §6",
            "Leverage scores can need far fewer points than uniform draws, on a table "
            "that was not made for it",
        ),
        Claim(
            "CR6",
            "CR18 Prop. 3",
            "The mean cost after k-means++ is at most 8 (ln k + 2) times the optimum",
        ),
        Claim("CR7", "CR18 §5", "MNIST60K takes less than a minute on 4 cores"),
        Claim(
            "CR8",
            "CR18 Theorem 1",
            "Linear kernel: √n features preserve the rate 1/√n for any number of "
            "features d",
        ),
        Claim(
            "CR9",
            "CR18 Theorem 1",
            "With √n landmarks the whole excess falls as 1/√n at least",
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
            "The excess error stops falling past some m, which is where it is 1% of "
            "the cost, and that m grows with k",
        ),
        Claim(
            "L2s",
            "L21 Fig. 2",
            "... the same, where m is that of CR1: the Nyström excess is as large as "
            "the statistical one",
        ),
        Claim(
            "L3",
            "L21 Table 1",
            "Nyström with m = 100 is as good as exact kernel k-means",
        ),
        Claim(
            "L4",
            "L21 §3.2, Lemma 2",
            "Local search after k-means++ brings the seeds within a constant factor of "
            "the optimum, whatever k is",
        ),
        Claim(
            "L5",
            "L21 Theorem 7",
            "Local search within Nyström, max(k, √n) landmarks: the cost is at most a "
            "constant times √(k/n) + optimum",
        ),
        Claim(
            "L6",
            "L21 Theorems 2, 6",
            "A clustering whose cost is ζ above the least has an excess risk that is "
            "at most ζ larger, exact and with √n landmarks",
        ),
        Claim(
            "O1",
            "OG17 Fig. 1, §5",
            "Kernel k-means++ landmarks have the best lift on most datasets (10 of "
            "13), among the rivals of §5",
        ),
        Claim(
            "O1r",
            "OG17 App. B",
            "... with restarts, among App. B's rivals: k-means centroids, too",
        ),
        Claim(
            "O1l",
            "OG17 App. B",
            "... with restarts and Lloyd refinement, among the same",
        ),
        Claim(
            "O2",
            "OG17 §5",
            "Leverage scores are better than the alternatives on cal-housing",
        ),
        Claim(
            "O2g",
            "OG17 §5",
            "Kernel k-means++ gains most over the others on ailerons and elevators",
        ),
        Claim(
            "O3",
            "OG17 Fig. 2, §4.2",
            "K-DPP chains of more than 1,000 steps from a uniform start take far more "
            "time and give a low lift; a k-means++ start repairs much of it",
        ),
        Claim("O4", "OG17 Fig. 3", "The lift grows with the rank, from 5 to 100"),
        Claim("O5", "OG17 §5", "l = K ln K landmarks do about as well as K ln n"),
        Claim(
            "O6",
            "OG17 §5",
            "Leverage scores and k-means++ take about the same time, but for ujil",
        ),
        Claim(
            "O7",
            "OG17 Fig. 3, §5",
            "Over the ranks, leverage scores beat K-DPP from a uniform start",
        ),
        Claim(
            "O8",
            "OG17 §5",
            "At the median bandwidth the top 100 eigenvalues hold most of the mass",
        ),
        Claim(
            "O9", "OG17 §5", "With l = K ln K, k-means++ is the best on all datasets"
        ),
        Claim("O10", "OG17 §5", "l = K ln K takes little more time than l = K"),
        Claim(
            "O11",
            "OG17 Theorem 4",
            "The mean relative error is below 8 (ln(K+1) + 2)(√(n−K) + Θ)",
        ),
        Claim(
            "O12",
            "OG17 §5",
            "K-DPP chains of 10,000 steps are more accurate than those of 1,000",
        ),
        Claim(
            "O13",
            "OG17 Fig. 3, §5",
            "The lift of k-means++ gains most from a larger rank",
        ),
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
            "The sketches beat Laplacian scores in objective and accuracy for each "
            "number of features r, but for accuracy on PIE and COIL20",
        ),
        Claim(
            "B4",
            "B14 Thms 11-13",
            "The objective is within 3 + ε (sampling) and 2 + ε (projection, SVD) of "
            "the optimum",
        ),
        Claim("B5", "B14 Table 1", "Exact SVD, r = k: within twice the optimum"),
        Claim(
            "B6",
            "B14 Lemmas 6, 10",
            "Singular values of sampled and projected orthonormal columns stay near 1",
        ),
        Claim(
            "B7",
            "B14 Lemmas 8, 10",
            "Sampling and projection lose little of a low-rank approximation",
        ),
        Claim(
            "B8",
            "B14 Table 1",
            "Exact SVD with k/ε² features and projections to 8 ln m/ε²: within 1 + ε "
            "of the optimum, ε = 1/3",
        ),
    )
}

#: Rules that were changed after results had been seen (those of commit 11189a0): the
#: earlier rule in words, and its verdict then.
EARLIER = {
    "CR1": ("the limit of the anchors is fixed outside the bootstrap", "contradicted"),
    "CR3": ("at most five fits; the CPU seconds count", "undecided"),
    "CR5s": ("a part of CR5, decided on `uneven`, made for the claim", "supported"),
    "CR7": ("counted as a test", "supported"),
    "CR9": ("excess over the reference, which has one of its own", "supported"),
    "L2": ("the excess at the largest m counts", "supported"),
    "L4": ("local search lowers the cost of the seeds at all", "supported"),
    "L5": (
        "the slopes are those of cost/(√(k/n) + bound), which rises towards cost/bound "
        "under the claim; training cost",
        "contradicted",
    ),
    "O1r": ("the rivals are those of §5", "undecided"),
    "O1l": ("the rivals are those of §5", "supported"),
    "O2": ("leverage against k-means++ alone", "undecided"),
    "O6": ("a sketch of K rows", "supported"),
    "O9": ("no margin for ties", "undecided"),
    "O11": ("counted as a test", "supported"),
    "B1": ("five draws; features timed against k-means++ starts alone", "contradicted"),
    "B3": ("means over r", "contradicted"),
    "B4": ("3 + 3900ε for sampling, 2 + 15ε for signs", "supported"),
}
