"""What is proved about the optimal cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.results import Result, format_at_least, format_at_most


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """A lower bound on the optimal cost, and so on how far a fit is from it.

    It states that ``lower_bound ≤ W_opt ≤ cost``, and `ratio` is ``cost /
    lower_bound``.

    Attributes
    ----------
    method : {"semidefinite", "nystrom", "subsample"}
        The method behind the bound.
    lower_bound : float
        No k centres have a lower cost ``W`` on these rows.
    cost : float
        ``W`` of the model's centres on these rows.
    residual_trace : float or None
        ``tr(K − K̃)/n``: what the landmarks leave out, and with it the bound.
    confidence : float
        Probability with which the bound holds; 1 where no chance is involved.
    n_landmarks : int or None
        Landmarks behind the bound.
    n_clusters : int or None
    n_subsets, n_solved, subset_size : int or None
        Disjoint subsets of the rows, how many of them have a semidefinite bound, and
        about how many rows each has.
    certain_bound : float or None
        The bound that holds without any chance; `lower_bound` where `confidence` is 1.
    seconds : float or None
        Time it took.
    path : ndarray of shape (steps, 3) or None
        Seconds, the certain bound and the one at the confidence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import certificate
    >>> X = load_iris().data
    >>> found = certificate(SketchedKMeans(3, random_state=0).fit(X), X)
    >>> bool(found.lower_bound <= found.cost), round(found.ratio, 1)
    (True, 1.0)
    """

    method: str
    lower_bound: float
    cost: float
    residual_trace: float | None
    confidence: float
    n_landmarks: int | None = None
    n_clusters: int | None = None
    n_subsets: int | None = None
    n_solved: int | None = None
    subset_size: int | None = None
    certain_bound: float | None = None
    seconds: float | None = field(default=None, compare=False)
    path: Array | None = field(default=None, compare=False)
    _shown_properties: ClassVar[tuple[str, ...]] = ("ratio", "sentence")

    @property
    def ratio(self) -> float:
        """The cost is at most this many times the optimal cost."""
        if self.lower_bound > 0.0:
            return self.cost / self.lower_bound
        return float("inf") if self.cost > 0.0 else 1.0

    @property
    def interval(self) -> str:
        """The cost, and where the optimum is proved to be."""
        least, cost = format_at_least(self.lower_bound), f"{self.cost:.4g}"
        return f"cost {cost}, proved optimum between {least} and {cost}"

    @property
    def sentence(self) -> str:
        """What is proved, in words."""
        groups = f"{self.n_clusters:,} groups" if self.n_clusters else "k groups"
        groups = "one group" if self.n_clusters == 1 else groups
        if not np.isfinite(self.ratio):
            return f"nothing above zero is proved about the cost of {groups}"
        excess = max(self.ratio - 1.0, 0.0)
        within = f"within {max(format_at_most(100.0 * excess), '0.01', key=float)}%"
        text = (
            f"no clustering into {groups} can have a cost below "
            f"{format_at_least(self.lower_bound)}; this one is {within} of the best "
            "possible"
        )
        if self.confidence < 1.0:
            text += f" (at a confidence of {self.confidence:.4g})"
        return text
