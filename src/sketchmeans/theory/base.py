"""How results are shown and handed on."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from scipy import sparse


class Report:
    """What the results of this package share: a readable `repr`, and `to_dict`.

    A result is a frozen dataclass with ``repr=False`` that inherits from this.  By
    default its `repr` has a line for each value that is not None, a `note` without its
    name; `_title` and `_lines` say it better where that is not enough.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Answer(Report):
    ...     n_rows: int
    ...     share: float
    >>> Answer(60_000, 1 / 3)
    Answer
      n_rows   60,000
      share    0.3333
    >>> Answer(60_000, 0.25).to_dict()
    {'n_rows': 60000, 'share': 0.25}
    """

    #: Properties that `repr` and `to_dict` show after the fields.
    _shown_properties: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name in plain Python types, ready for JSON.

        Arrays become lists, and what JSON has no number for (infinity) None.
        """
        return {name: plain(value) for name, value in self._values().items()}

    def _values(self) -> dict[str, Any]:
        this: Any = self  # every subclass is a dataclass
        names = [field.name for field in fields(this)] + list(self._shown_properties)
        return {name: getattr(self, name) for name in names}

    def _title(self) -> str:
        """Return the first line of the `repr`."""
        return type(self).__name__

    def _lines(self) -> list[tuple[str, str]]:
        """Return the other lines: a label, or none, and what it says."""
        return [
            ("" if name == "note" else name, shown(value))
            for name, value in self._values().items()
            if value is not None
        ]

    def __repr__(self) -> str:
        lines = self._lines()
        width = max((len(label) for label, _ in lines), default=0) + 3
        texts = [f"{label:{width}}{text}" if label else text for label, text in lines]
        return "\n  ".join([self._title(), *texts])


def plain(value: Any) -> Any:
    """Return a value in types that JSON knows.

    Examples
    --------
    >>> plain({"a": np.arange(2), "b": float("inf"), "c": np.float32(0.5)})
    {'a': [0, 1], 'b': None, 'c': 0.5}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Report):
        return value.to_dict()
    if sparse.issparse(value):
        value = value.toarray().tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def shown(value: Any) -> str:
    """Return a value for people: four digits, thousands apart, arrays in brief.

    Examples
    --------
    >>> shown(12345), shown(20 / 3), shown(True), shown(np.array([0.5, 0.125]))
    ('12,345', '6.667', 'yes', '2 values, 0.125 to 0.5')
    """
    if isinstance(value, np.ndarray):
        if not value.size:
            return "no values"
        return f"{value.size:,} values, {shown(value.min())} to {shown(value.max())}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        number = float(value)
        whole = number.is_integer() and abs(number) < 1e15
        return f"{number:,.0f}" if whole else f"{number:.4g}"
    return str(value)
