"""Numbers of each draw, side by side, for contrasts within a draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.data import Array


def by_draw(
    table: pd.DataFrame, columns: str | Sequence[str], value: str
) -> pd.DataFrame:
    """Return one row per repeat and one column per setting, of whole draws only.

    >>> table = pd.DataFrame({"repeat": [0, 0, 1], "m": [1, 2, 1], "x": [5.0, 6, 7]})
    >>> by_draw(table, "m", "x").values.tolist()
    [[5.0, 6.0]]
    """
    keys = [columns] if isinstance(columns, str) else list(columns)
    wide = table.pivot_table(index="repeat", columns=keys, values=value)
    return wide.dropna()


def slope(x: Array) -> Array:
    """Return the weights whose product with values is their least-squares slope on x.

    >>> slope(np.array([0.0, 1.0, 2.0])) @ np.array([1.0, 3.0, 5.0])
    2.0
    """
    centred = np.asarray(x, dtype=np.float64) - np.mean(x)
    return np.asarray(centred / (centred @ centred))


def crossing(sizes: Array, excess: Array, level: float) -> float:
    """Return the size at which an excess falls to a level, log-linear in between.

    The first size if it is there at once, NaN if it never is.

    >>> round(crossing(np.array([1, 10, 100]), np.array([3.0, 1.0, 0.1]), 2.0), 2)
    3.16
    """
    below = np.flatnonzero(excess <= level)
    if not len(below):
        return float("nan")
    i = int(below[0])
    if i == 0:
        return float(sizes[0])
    share = (excess[i - 1] - level) / (excess[i - 1] - excess[i])
    ends = np.log(sizes[i - 1 : i + 1])
    return float(np.exp(ends[0] + share * (ends[1] - ends[0])))
