"""Whether two samples follow one law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from scipy import stats

from sketchmeans.numerics.linalg import Array

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3


def assert_same_law(first: Iterable[Array], second: Iterable[Array]) -> None:
    """Fail where a chi-square test tells the outcomes of two samples apart.

    Outcomes that are rare in both samples together count as one.
    """
    a, b = (
        Counter(tuple(np.atleast_1d(draw).tolist()) for draw in draws)
        for draws in (first, second)
    )
    table = np.array([[c[key] for key in a | b] for c in (a, b)])
    rare = table.sum(axis=0) < 20
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:  # else nothing is left to chance
        p_value = float(stats.chi2_contingency(table).pvalue)
        assert p_value > LEVEL, f"p = {p_value:.1e} that both samples have one law"
