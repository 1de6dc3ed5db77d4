"""How a text table is written: what the user says of it, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from sketchmeans.data.sources.encoding import check_encoding

#: What stands for a value that is not there.
NO_VALUES = (
    *("", "NA", "N/A", "n/a", "na", "#N/A", "#NV", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "?", "-", "--", "\u2013", "\u2014"),
)

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}


@dataclass(frozen=True)
class Dialect:
    r"""How a text table is written.

    What is None is found out when a file is opened; that of an opened table has no
    None, and other files can be read in the same way with it.  Costs nothing; to find
    it out costs a look at the first rows.

    Parameters
    ----------
    sep : str, optional
        What separates values: one character.
    decimal : {".", ","}, optional
        The decimal mark.  The other one may separate groups of three digits.
    encoding : str, optional
        As Python calls it, such as "utf-8", "utf-16" or "cp1252".
    header : bool, optional
        Whether the first line, below those that are skipped, holds names.
    skip_rows : int, optional
        Lines above the names, such as titles.
    na : tuple of str, default=()
        More words for a missing value; always known are nothing, NA, N/A, null, NaN,
        None, ? and -.
    trim : bool, optional
        Whether to leave out lines that are no rows: units below the names, totals and
        notes below the rows.  They are, unless it is False.
    left_out : tuple of str
        What was left out of an opened table.

    Examples
    --------
    >>> found = Dialect(";", ",", "cp1252", header=True, skip_rows=2)
    >>> found.describe()
    'separated by semicolons, decimal comma, in cp1252, 2 lines above the names'
    >>> Dialect.from_dict(found.to_dict()) == found
    True
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    skip_rows: int | None = None
    na: tuple[str, ...] = ()
    trim: bool | None = None
    left_out: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        sep = self.sep
        is_sign = isinstance(sep, str) and len(sep) == 1 and sep.isascii()
        if sep is not None and (not is_sign or sep in '"\r\n'):
            raise ValueError(
                f"sep={sep!r} should be one character, such as ',', ';' or '\\t'."
            )
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r} should be '.' or ','.")
        if self.encoding is not None:
            check_encoding(self.encoding)
        for name, value in (("header", self.header), ("trim", self.trim)):
            if value is not None and not isinstance(value, bool):
                raise ValueError(f"{name}={value!r} should be True, False or None.")
        skip = self.skip_rows
        is_count = isinstance(skip, int) and not isinstance(skip, bool) and skip >= 0
        if skip is not None and not is_count:
            raise ValueError(f"skip_rows={skip!r} should be an integer >= 0.")
        is_list = isinstance(self.na, list | tuple)
        if not is_list or not all(isinstance(code, str) for code in self.na):
            raise ValueError(f"na={self.na!r} should be a list of strings.")
        object.__setattr__(self, "na", tuple(self.na))
        object.__setattr__(self, "left_out", tuple(self.left_out))

    @property
    def no_values(self) -> list[str]:
        """What stands for a missing value."""
        return [*NO_VALUES, *self.na]

    @property
    def trims(self) -> bool:
        """Whether lines that are no rows are left out."""
        return self.trim is not False

    def describe(self) -> str:
        """Return what was found, in one line."""
        words = []
        if self.sep is not None:
            words.append(f"separated by {_NAMES.get(self.sep, repr(self.sep))}")
        if self.decimal is not None:
            words.append("decimal comma" if self.decimal == "," else "decimal point")
        if self.encoding is not None:
            name = "UTF-8" if self.encoding == "utf-8" else self.encoding
            words.append(f"in {name}")
        if self.skip_rows:
            lines = "1 line" if self.skip_rows == 1 else f"{self.skip_rows} lines"
            words.append(f"{lines} above the {'rows' if not self.header else 'names'}")
        if self.header is False:
            words.append("without names")
        if self.na:
            words.append(f"missing values are also {', '.join(map(repr, self.na))}")
        if self.left_out:
            words.append(f"without the lines of {' and '.join(self.left_out)}")
        return ", ".join(words)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to say: text as this library writes it."""
        usual = Dialect(",", ".", "utf-8", self.header, 0, trim=self.trim)
        return not self.left_out and self in (usual, replace(usual, sep="\t"))

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {**asdict(self), "na": list(self.na), "left_out": list(self.left_out)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Dialect:
        """Return the dialect of a `to_dict`."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"A dialect has no {sorted(unknown)}.")
        return cls(**values)

    def fill(self, other: Dialect) -> Dialect:
        """Return this dialect, with what it leaves open as in another one.

        UTF-8 is left open: text without accents is in other encodings, too.
        """
        known = {key: value for key, value in vars(other).items() if value is not None}
        if known.get("encoding") == "utf-8":
            del known["encoding"]
        own = {key: v for key, v in vars(self).items() if v not in (None, ())}
        known["left_out"] = ()
        return Dialect(**{**known, **own})
