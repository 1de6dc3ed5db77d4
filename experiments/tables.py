"""Tables in Markdown."""

from __future__ import annotations

import pandas as pd


def markdown(table: pd.DataFrame, digits: int = 2) -> str:
    """Return a table of numbers with its index as the first column.

    >>> print(markdown(pd.DataFrame({"a": [0.5]}, index=["x"])))
    | | a |
    |---|---:|
    | x | 0.50 |
    """
    names = [str(name) for name in table.columns]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for index, row in table.iterrows():
        values = [_shown(value, digits) for value in row]
        lines.append(f"| {index} | {' | '.join(values)} |")
    return "\n".join(lines)


def _shown(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.{digits}f}"
    return str(value)
