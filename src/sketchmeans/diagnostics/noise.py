"""Tables without clusters that look like a given one."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Columns of at most so many distinct values stand for categories or small counts.
_FEW_VALUES = 10


def make_noise(X: Array, rng: np.random.Generator, *, normal: bool) -> Array:
    """Return as many rows without clusters: what is left of a table by chance alone.

    Columns of numbers get the covariance that they have, in one box along their
    principal axes or, if `normal`, in one Gaussian.  Columns of few values keep these,
    in random order: a category splits any table, so it is no cluster by itself.  The
    columns of one category, of which a row has one, are shuffled together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=90), rng.integers(2, size=90)])
    >>> noise = make_noise(X, rng, normal=True)
    >>> bool(noise[:, 1].sum() == X[:, 1].sum())
    True
    """
    numbers, categories = _split_columns(X)
    noise = np.array(X, dtype=np.float64)
    if numbers:
        table = noise[:, numbers]
        mean = table.mean(axis=0)
        _, lengths, axes = np.linalg.svd(table - mean, full_matrices=False)
        size = len(X), len(lengths)
        drawn = rng.normal(size=size)
        if not normal:
            drawn = rng.uniform(-sqrt(3.0), sqrt(3.0), size)
        noise[:, numbers] = mean + (drawn * lengths / sqrt(len(X))) @ axes
    for columns in categories:
        noise[:, columns] = noise[rng.permutation(len(X))][:, columns]
    return noise


def _split_columns(X: Array) -> tuple[list[int], list[list[int]]]:
    """Return the columns of numbers, and those of few values by category."""
    numbers: list[int] = []
    categories: list[list[int]] = []
    above: list[Array] = []  # rows that have another level of the category already
    for j, column in enumerate(X.T):
        if len(np.unique(column)) > min(_FEW_VALUES, len(column) // 2):
            numbers.append(j)
            continue
        high = column > column.min()
        for number, taken in enumerate(above):
            if not (taken & high).any():
                categories[number].append(j)
                taken |= high
                break
        else:
            categories.append([j])
            above.append(high)
    return numbers, categories
