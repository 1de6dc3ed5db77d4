"""What results have in common: a readable `repr`, and `to_dict`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from scipy import sparse


class Result:
    """Base class of results, which are frozen dataclasses with ``repr=False``.

    The `repr` has one line per value that is not None, and a `note` without its name;
    subclasses override `_title` and `_lines` where that is not enough.
    """

    #: Properties that `repr` and `to_dict` show after the fields.
    _shown_properties: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name in types for JSON, which has no infinity or NaN."""
        return {name: to_plain(value) for name, value in self._values().items()}

    def _values(self) -> dict[str, Any]:
        this: Any = self  # every subclass is a dataclass
        names = [field.name for field in fields(this)] + list(self._shown_properties)
        return {name: getattr(self, name) for name in names}

    def _title(self) -> str:
        """Return the first line of the `repr`."""
        return type(self).__name__

    def _lines(self) -> list[tuple[str, str]]:
        """Return the other lines as pairs of a label, which may be empty, and text."""
        return [
            ("" if name == "note" else name, format_value(value))
            for name, value in self._values().items()
            if value is not None
        ]

    def __repr__(self) -> str:
        lines = self._lines()
        width = max((len(label) for label, _ in lines), default=0) + 3
        texts = [f"{label:{width}}{text}" if label else text for label, text in lines]
        return "\n  ".join([self._title(), *texts])


def to_plain(value: Any) -> Any:
    """Return a value in types that JSON knows.

    Examples
    --------
    >>> to_plain({"a": np.arange(2), "b": float("inf"), "c": np.float32(0.5)})
    {'a': [0, 1], 'b': None, 'c': 0.5}
    """
    if isinstance(value, Result):
        return value.to_dict()
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def format_value(value: Any) -> str:
    """Return a value as text: four digits, thousands separated, arrays in brief.

    Examples
    --------
    >>> [format_value(value) for value in (12345, 20 / 3, True)]
    ['12,345', '6.667', 'yes']
    >>> format_value(np.array([0.5, 0.125]))
    '2 values, 0.125 to 0.5'
    """
    if isinstance(value, np.ndarray):
        if not value.size:
            return "no values"
        ends = f"{format_value(value.min())} to {format_value(value.max())}"
        return f"{value.size:,} values, {ends}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        number = float(value)
        whole = number.is_integer() and abs(number) < 1e15
        return f"{number:,.0f}" if whole else f"{number:.4g}"
    return str(value)


def format_at_most(value: float, places: int = 2) -> str:
    """Return a number rounded up, as text: what is proved to be at most it is true.

    Examples
    --------
    >>> format_at_most(1.0012), format_at_most(1.25)
    ('1.01', '1.25')
    """
    scale = 10.0**places
    return f"{np.ceil(value * scale * (1.0 - 1e-12)) / scale:.{places}f}"


def format_at_least(value: float) -> str:
    """Return a number rounded down to four digits, as text: a bound that stays true.

    Examples
    --------
    >>> format_at_least(0.18829), format_at_least(7.64), format_at_least(0.0)
    ('0.1882', '7.64', '0')
    """
    if value <= 0.0 or not np.isfinite(value):
        return f"{value:.4g}"
    scale = 10.0 ** (3 - np.floor(np.log10(value)))
    return f"{np.floor(value * scale * (1.0 + 1e-12)) / scale:.4g}"
