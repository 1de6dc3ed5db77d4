"""Sentences about results, for people who have never heard of a kernel."""

from __future__ import annotations

from math import isfinite, log, sqrt

import numpy as np

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SpectralKMeans
from sketchmeans.diagnostics import (
    Agreement,
    Certificate,
    ClusterSummary,
    RowMap,
    Segments,
)
from sketchmeans.diagnostics.fitted import Model
from sketchmeans.kernels import RBF
from sketchmeans.theory.results import format_at_least, format_at_most, format_value

#: What the means of a table with skewed amounts are.
MEANS_OF_LOGARITHMS = (
    "those that the fit works with: skewed amounts are averaged on a logarithmic "
    "scale, which gives less than their usual mean, and gaps are filled in"
)
#: Costs that differ by less than this share are the same but for rounding.
_SAME_COST = 1e-3


def format_count(count: int, word: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> format_count(1, "cluster"), format_count(2000, "row")
    ('1 cluster', '2,000 rows')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def format_share(share: float) -> str:
    """Return a share in percent, in two digits.

    Examples
    --------
    >>> [format_share(share) for share in (0.3456, 0.0012, 1e-9, 0.0, 0.9999)]
    ['35%', '0.12%', 'less than 0.01%', '0%', 'nearly 100%']
    """
    if share == 0.0 or share >= 1.0:
        return f"{share:.0%}"
    if share > 0.995:
        return "nearly 100%"
    if share < 1e-4:
        return "less than 0.01%"
    return f"{share:.0%}" if share >= 0.095 else f"{100 * share:.2g}%"


def name_method(model: Model) -> str:
    """Return what the estimator does."""
    if isinstance(model, NystromKMeans):
        return "Nyström kernel k-means"
    if isinstance(model, KernelKMeans):
        return "exact kernel k-means"
    if isinstance(model, SpectralKMeans):
        return "spectral clustering"
    return "k-means on sketched features"


def describe_fit(model: Model, summary: ClusterSummary, n_features: int) -> str:
    """Return the sentence below the title; a given kernel has no features."""
    of = f" of {format_count(n_features, 'feature')}" if n_features else ""
    text = (
        f"{format_count(summary.n_rows, 'row')}{of} in "
        f"{format_count(summary.n_clusters, 'cluster')}, found by {name_method(model)}"
    )
    landmarks = getattr(model, "landmarks_", None)
    if landmarks is not None:
        text += f" with {format_count(int(landmarks.shape[0]), 'landmark')}"
    return f"{text}."


def describe_certainty(found: Segments) -> str:
    """Return the sentence below the title: how many segments, and how sure they are."""
    k = len(found.segments)
    start = f"{format_count(found.n_rows, 'row')} in {format_count(k, 'segment')}."
    words = [s.verdict[0] for s in found.segments if s.verdict is not None]
    if not words:
        return start
    n_sure = sum(word in ("stable", "rather stable") for word in words)
    if n_sure == k:
        return f"{start} Another sample of the rows would show the same segments again."
    if not n_sure:
        return f"{start} None is sure: another sample may well show other segments."
    others = "one is" if len(words) - n_sure == 1 else f"{len(words) - n_sure} are"
    return (
        f"{start} {n_sure} would show again in another sample of the rows; {others} "
        "less sure."
    )


def describe_weights(model: Model) -> str:
    """Say that the rows of a fit had weights; nothing if they had none."""
    sizes = np.asarray(getattr(model, "cluster_sizes_", ()), dtype=np.float64)
    labels = getattr(model, "labels_", None)  # a model from a file has none
    counted = np.round(sizes)
    # After partial_fit, labels are those of the last batch.
    if isinstance(labels, np.ndarray) and not hasattr(model, "_masses"):
        counted = np.bincount(labels, minlength=len(sizes)).astype(np.float64)
    if (counted == sizes).all():
        return ""
    total = format_value(float(sizes.sum()))
    return (
        f"the rows of the fit had weights, {total} in all. Sizes, costs and means on "
        "this page count every row once"
    )


def describe_cost(summary: ClusterSummary, row_map: RowMap, model: Model) -> str:
    """Say what the cost means."""
    where = ", as the kernel measures distance" if hasattr(model, "kernel_") else ""
    text = (
        f"The cost of this clustering is {format_value(summary.cost)}: the mean "
        f"squared distance of a row to the centre of its cluster{where}. "
    )
    if summary.n_clusters == 1:
        return text + "There is one cluster: this is simply the spread of the rows."
    spread, share = format_value(row_map.spread), max(row_map.explained, 0.0)
    text += (
        f"If all rows were in one cluster it would be about {spread}, so the clusters "
        f"explain about {format_share(share)} of the spread of the rows."
    )
    fitted = getattr(model, "cost_", None)
    if fitted is not None and abs(fitted - summary.cost) > _SAME_COST * fitted:
        text += f" On the rows of the fit the cost was {format_value(float(fitted))}."
    return text


def describe_cut(model: SpectralKMeans) -> list[str]:
    """Say what the normalised cut means, and what is certain about the best one."""
    k = len(model.cluster_sizes_)
    leaving = format_share(model.ncut_ / k)
    found = (
        f"The normalised cut of this clustering is {format_value(model.ncut_)}: rows "
        "are connected to their neighbours in a graph, and on average over the "
        f"clusters {leaving} of the weight of these connections leads to another one."
    )
    bound = (
        f"No clustering of this graph into {format_count(k, 'cluster')} has a cut "
        f"below {format_value(model.ncut_bound_)}, the sum of its smallest eigenvalues."
    )
    return [found, bound]


def describe_certificate(found: Certificate | None, n_clusters: int) -> str:
    """Say what is certain about the best possible cost."""
    if found is None:
        return (
            "How far this is from the best possible clustering was not computed, or "
            "cannot be for this kernel."
        )
    centres = format_count(n_clusters, "centre")
    if not isfinite(found.ratio):
        return (
            f"No lower bound above zero could be proven for the cost of {centres}, so "
            "nothing is known about the distance to the best possible clustering."
        )
    sure = ""
    if found.confidence < 1.0:
        sure = f" This holds with a probability of at least {found.confidence:.0%}."
    if found.ratio < 1.0005:
        return (
            f"No choice of {centres} can lower the cost by more than 0.05%: for all "
            f"practical purposes, this clustering is the best possible one.{sure}"
        )
    return (
        f"No choice of {centres}, by whatever method, can bring the cost below "
        f"{format_at_least(found.lower_bound)}. So this clustering costs at most "
        f"{format_at_most(found.ratio)} times as much as the best possible one: it is "
        f"within {format_at_most(100.0 * (found.ratio - 1.0), 1)}% of it. "
        f"That is what can be proven; the true distance is often smaller.{sure}"
    )


def describe_method(found: Certificate) -> str:
    """Say where a lower bound comes from."""
    bound = format_at_least(found.lower_bound)
    if found.method != "semidefinite":
        rows = "subsamples" if found.method == "subsample" else "all rows"
        return f"{bound}, from the spectrum of {rows}"
    if found.n_subsets == 1:
        return f"{bound}, from a semidefinite programme of all rows"
    return (
        f"{bound}, from semidefinite programmes of {found.n_solved:,} of "
        f"{found.n_subsets:,} subsets"
    )


def describe_margins(summary: ClusterSummary) -> str:
    """Say how clearly rows belong to their cluster."""
    share = summary.border_share
    if share is None:
        return "There is one cluster only, and so no border."
    start = "No row lies"
    if share:
        start = f"{format_share(share).capitalize()} of the rows lie"
    return (
        f"{start} on a border, where another centre is almost as near as the own one "
        "(a margin below 0.02). The margin is 1 less the distance to the own centre as "
        "a share of that to the next one: 0 on the border between two clusters, 1 at a "
        "centre."
    )


def describe_residual(row_map: RowMap, n_landmarks: int) -> str:
    """Say what the landmarks leave out."""
    assert row_map.residuals is not None
    share = format_share(float(row_map.residuals.mean()))
    return (
        f"{format_count(n_landmarks, 'landmark')} represent all rows. On average they "
        f"leave out {share} of a row; that part counts as cost for every choice of "
        "centres alike, and changes no row's cluster. If much is left out, more "
        "landmarks could find better centres."
    )


def describe_agreement(found: Agreement) -> str:
    """Say how clusters and classes go together."""
    return (
        "Matched one to one, clusters and known classes agree on "
        f"{format_share(found.accuracy)} of the rows. The normalised mutual "
        f"information is {found.normalized_mutual_information:.3f} and the adjusted "
        f"Rand index {found.adjusted_rand:.3f}: 1 is full agreement, 0 is what chance "
        "would give. The classes were not used to find the clusters."
    )


def describe_bandwidth(model: Model) -> str:
    """Say what the bandwidth of the rbf kernel means in distances."""
    gamma = getattr(model, "gamma_", None)
    if not isinstance(getattr(model, "kernel_", None), RBF) or not gamma:
        return ""
    half = format_value(sqrt(log(2.0) / float(gamma)))
    return f"two rows at a distance of {half} are half as similar as equal ones"
