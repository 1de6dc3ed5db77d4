"""Results in words, for people who have never heard of a kernel."""

from __future__ import annotations

from math import isfinite, log, sqrt
from typing import Any

import numpy as np

from sketchmeans.cluster import KernelKMeans, NystromKMeans
from sketchmeans.diagnostics import Agreement, Certificate, ClusterSummary, RowMap
from sketchmeans.kernels import RBF
from sketchmeans.theory.results import format_value as shown

#: Costs that differ by less than this share are the same but for rounding.
_SAME_COST = 1e-3


def plural(count: int, word: str) -> str:
    """Return a count with its word.

    Examples
    --------
    >>> plural(1, "cluster"), plural(2000, "row"), plural(3, "pass")
    ('1 cluster', '2,000 rows', '3 passes')
    """
    ending = "" if count == 1 else "es" if word.endswith("s") else "s"
    return f"{count:,} {word}{ending}"


def percent(share: float) -> str:
    """Return a share for people.

    Examples
    --------
    >>> percent(0.3456), percent(0.0012), percent(1e-9), percent(0.0), percent(0.9999)
    ('35%', '0.12%', 'less than 0.01%', '0%', 'nearly 100%')
    """
    if share == 0.0 or share >= 1.0:
        return f"{share:.0%}"
    if share > 0.995:
        return "nearly 100%"
    if share < 1e-4:
        return "less than 0.01%"
    return f"{share:.0%}" if share >= 0.095 else f"{100 * share:.2g}%"


def method_name(model: Any) -> str:
    """Return what the estimator does."""
    if isinstance(model, NystromKMeans):
        return "Nyström kernel k-means"
    if isinstance(model, KernelKMeans):
        return "exact kernel k-means"
    return "k-means on sketched features"


def lead(model: Any, summary: ClusterSummary, n_features: int | None) -> str:
    """Return the sentence below the title."""
    of = "" if n_features is None else f" of {plural(n_features, 'feature')}"
    text = (
        f"{plural(summary.n_rows, 'row')}{of} in "
        f"{plural(summary.n_clusters, 'cluster')}, found by {method_name(model)}"
    )
    if isinstance(model, NystromKMeans):
        text += f" with {plural(int(model.landmarks_.shape[0]), 'landmark')}"
    return f"{text}."


def weight_words(model: Any) -> str:
    """Say that the rows of a fit had weights; nothing if they had none."""
    sizes = np.asarray(getattr(model, "cluster_sizes_", ()), dtype=np.float64)
    labels = getattr(model, "labels_", None)  # a model from a file has none
    in_batches = hasattr(model, "_masses")  # and labels are those of the last
    if isinstance(labels, np.ndarray) and not in_batches:
        weighted = bool((np.bincount(labels, minlength=len(sizes)) != sizes).any())
    else:
        weighted = bool((sizes != np.round(sizes)).any())
    if not weighted:
        return ""
    return (
        f"the rows of the fit had weights, {shown(float(sizes.sum()))} in all. Sizes, "
        "costs and means on this page count every row once"
    )


def cost_words(summary: ClusterSummary, row_map: RowMap, model: Any) -> str:
    """Say what the cost means."""
    where = "" if not hasattr(model, "kernel_") else ", as the kernel measures distance"
    text = (
        f"The cost of this clustering is {shown(summary.cost)}: the mean squared "
        f"distance of a row to the centre of its cluster{where}. "
    )
    if summary.n_clusters == 1:
        return text + "There is one cluster: this is simply the spread of the rows."
    text += (
        f"If all rows were in one cluster it would be about {shown(row_map.spread)}, "
        f"so the clusters explain about {percent(max(row_map.explained, 0.0))} of the "
        "spread of the rows."
    )
    fitted = getattr(model, "cost_", None)
    if fitted is not None and abs(fitted - summary.cost) > _SAME_COST * fitted:
        text += f" On the rows of the fit the cost was {shown(float(fitted))}."
    return text


def certificate_words(found: Certificate | None, n_clusters: int) -> str:
    """Say what is certain about the best possible cost."""
    if found is None:
        return (
            "How far this is from the best possible clustering was not computed, or "
            "cannot be for this kernel."
        )
    centres = plural(n_clusters, "centre")
    sure = ""
    if found.confidence < 1.0:
        sure = f" This holds with a probability of at least {found.confidence:.0%}."
    if not isfinite(found.ratio):
        return (
            f"No lower bound above zero could be proven for the cost of {centres}, so "
            "nothing is known about the distance to the best possible clustering."
        )
    if found.ratio < 1.0005:
        return f"No choice of {centres} could have a lower cost: it is the best.{sure}"
    return (
        f"No choice of {centres}, by whatever method, can bring the cost below "
        f"{shown(found.lower_bound)}. So this clustering costs at most "
        f"{found.ratio:.3g} times as much as the best possible one. That is what can "
        f"be proven; the true distance is often much smaller.{sure}"
    )


def margin_words(summary: ClusterSummary) -> str:
    """Say how clearly rows belong to their cluster."""
    share = summary.border_share
    if share is None:
        return "There is one cluster only, and so no border."
    start = f"{percent(share).capitalize()} of the rows lie" if share else "No row lies"
    return (
        f"{start} on a border, where another centre is almost as near as the own one "
        "(a margin below 0.02). The margin is 1 less the "
        "distance to the own centre as a share of that to the next one: 0 on the "
        "border between two clusters, 1 at a centre."
    )


def residual_words(row_map: RowMap, n_landmarks: int) -> str:
    """Say what the landmarks leave out."""
    assert row_map.residuals is not None
    share = float(row_map.residuals.mean())
    return (
        f"{plural(n_landmarks, 'landmark')} stand for all rows. On average they leave "
        f"out {percent(share)} of a row; that part counts as cost for every choice of "
        "centres alike, and changes no row's cluster. Much left out means that more "
        "landmarks could find better centres."
    )


def agreement_words(found: Agreement) -> str:
    """Say how clusters and classes go together."""
    return (
        f"Matched one to one, clusters and known classes agree on "
        f"{percent(found.accuracy)} of the rows. The normalised mutual information is "
        f"{found.normalized_mutual_information:.3f} and the adjusted Rand index "
        f"{found.adjusted_rand:.3f}: 1 is full agreement, 0 is what chance would give. "
        "The classes were not used to find the clusters."
    )


def bandwidth_words(model: Any) -> str:
    """Say what the bandwidth of the rbf kernel means in distances."""
    kernel = getattr(model, "kernel_", None)
    gamma = getattr(model, "gamma_", None)
    if not isinstance(kernel, RBF) or not gamma:
        return ""
    half = sqrt(log(2.0) / float(gamma))
    return f"two rows at a distance of {shown(half)} are half as similar as equal ones"
