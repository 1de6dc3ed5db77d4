"""What a parameter or a fitted attribute has to be, said once and checked twice.

A kind checks a value on its way to a file and on its way back.  Arrays name their
dimensions; a name stands for the same size in all attributes of an object, so that
``dual_coef_`` of shape ("m", "k") has to fit ``landmarks_`` of shape ("m", "w").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

#: Sizes of the named dimensions that are known so far.
Sizes = dict[str, int]
_MOST_SIZE = 2**62
#: A name, or None for any size.
Dims = tuple[str | None, ...]


class Kind(Protocol):
    """A set of values."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Raise ValueError where a value is of another kind."""
        ...


@dataclass(frozen=True)
class Nothing:
    """None."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if value is not None:
            raise ValueError(f"{where}={value!r} should be None")


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{where}={value!r} should be true or false")


@dataclass(frozen=True)
class Integer:
    """An integer of at least `low`."""

    low: int | None = None

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if (
            isinstance(value, int | np.integer)
            and not isinstance(value, bool)
            and (self.low is None or value >= self.low)
        ):
            return
        least = "" if self.low is None else f" >= {self.low}"
        raise ValueError(f"{where}={value!r} should be an integer{least}")


@dataclass(frozen=True)
class Jobs:
    """A number of threads: any integer but zero."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        Integer().check(value, where, sizes)
        if value == 0:
            raise ValueError(f"{where}=0 should be a nonzero integer")


@dataclass(frozen=True)
class Size:
    """A positive integer that is the size of a dimension."""

    dim: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        Integer(1).check(value, where, sizes)
        if value > _MOST_SIZE:
            raise ValueError(f"{where}={value} should be the size of an array")
        _bind(self.dim, int(value), where, sizes)


@dataclass(frozen=True)
class Real:
    """A finite number."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool) or not _is_finite(value):
            raise ValueError(f"{where}={value!r} should be a finite number")


@dataclass(frozen=True)
class Text:
    """A string, one of a few if there are `options`."""

    options: tuple[str, ...] = ()

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, str):
            raise ValueError(f"{where}={value!r} should be a string")
        if self.options and value not in self.options:
            raise ValueError(f"{where}={value!r} should be one of {self.options}")


@dataclass(frozen=True)
class Plain:
    """Numbers, strings and None, in lists, tuples and dictionaries or alone."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if isinstance(value, Mapping):
            for name, item in value.items():
                self.check(item, f"{where}[{name!r}]", sizes)
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                self.check(item, f"{where}[{i}]", sizes)
        elif not isinstance(value, bool | np.bool_ | str | None):
            Real().check(value, where, sizes)


@dataclass(frozen=True)
class PlainDict:
    """A dictionary of plain values."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}={value!r} should be a dictionary")
        Plain().check(value, where, sizes)


@dataclass(frozen=True)
class PlainList:
    """A list or tuple of plain values."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}={value!r} should be a list")
        Plain().check(value, where, sizes)


@dataclass(frozen=True)
class Names:
    """The names of features: an array of strings."""

    dim: str | None

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if (
            not isinstance(value, np.ndarray)
            or value.ndim != 1
            or not all(isinstance(name, str) for name in value)
        ):
            raise ValueError(f"{where} should be an array of strings")
        if self.dim is not None:
            _bind(self.dim, len(value), where, sizes)


@dataclass(frozen=True)
class Columns:
    """Columns of a table in a list: names or numbers, all of one sort."""

    dim: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        sorts = {type(column) for column in value} if isinstance(value, list) else set()
        if sorts not in ({str}, {int}):
            raise ValueError(f"{where}={value!r} should be a list of names or numbers")
        if len(set(value)) < len(value):
            raise ValueError(f"{where}={value!r} should not name a column twice")
        _bind(self.dim, len(value), where, sizes)


@dataclass(frozen=True)
class Tensor:
    """An array of floats ("f"), integers ("i"), bytes ("u1") or any numbers ("n")."""

    dims: Dims
    types: str = "f"
    finite: bool = True

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype not in _TYPES[self.types]:
            raise ValueError(
                f"{where} {_described(value)} should be an array of "
                f"{_WORDS[self.types]}"
            )
        _check_shape(value.shape, self.dims, where, sizes)
        if self.finite and not _all_finite(value):
            raise ValueError(f"{where} should hold finite numbers only")


@dataclass(frozen=True)
class Rows:
    """Rows of a table, dense or CSR, in the type of the table."""

    dims: Dims

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not sparse.issparse(value):
            Tensor(self.dims, "n").check(value, where, sizes)
            return
        if value.dtype not in _TYPES["n"]:
            raise ValueError(f"{where} {_described(value)} should hold real numbers")
        _check_shape(value.shape, self.dims, where, sizes)
        if not _all_finite(value.data):
            raise ValueError(f"{where} should hold finite numbers only")


@dataclass(frozen=True)
class Object:
    """An object of a known class of one of these families."""

    families: frozenset[type]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) not in self.families:
            names = sorted(family.__name__ for family in self.families)
            raise ValueError(
                f"{where} of class {type(value).__name__} should be one of {names}"
            )


@dataclass(frozen=True)
class Record:
    """A dataclass, whose fields share the dimensions of the object that holds it."""

    cls: type
    fields: Mapping[str, Kind]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not self.cls:
            raise ValueError(f"{where}={value!r} should be a {self.cls.__name__}")
        for name, kind in self.fields.items():
            kind.check(getattr(value, name), f"{where}.{name}", sizes)


@dataclass(frozen=True)
class Maybe:
    """An attribute that may be absent."""

    kind: Kind

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        self.kind.check(value, where, sizes)


class OneOf:
    """A value of any of several kinds, tried in this order."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        reasons = []
        for kind in self.kinds:
            trial = dict(sizes)
            try:
                kind.check(value, where, trial)
            except ValueError as error:
                reasons.append(str(error))
            else:
                sizes.update(trial)
                return
        raise ValueError("; or ".join(dict.fromkeys(reasons)))


def nullable(kind: Kind) -> OneOf:
    """Return the kind of values that may be None."""
    return OneOf(Nothing(), kind)


# --- arrays ---------------------------------------------------------------------------

_FLOATS: set[np.dtype[Any]] = {np.dtype(np.float32), np.dtype(np.float64)}
_INTEGERS: set[np.dtype[Any]] = {
    np.dtype(f"{sign}{width}") for sign in "iu" for width in (1, 2, 4, 8)
}
_TYPES: dict[str, set[np.dtype[Any]]] = {
    "f": _FLOATS,
    "i": _INTEGERS,
    "u1": {np.dtype(np.uint8)},
    "n": _FLOATS | _INTEGERS | {np.dtype(np.float16), np.dtype(bool)},
}
_WORDS = {"f": "floats", "i": "integers", "u1": "bytes", "n": "real numbers"}


def _described(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"of type {value.dtype} and shape {value.shape}"
    return f"of type {type(value).__name__}"


def _check_shape(shape: tuple[int, ...], dims: Dims, where: str, sizes: Sizes) -> None:
    if len(shape) != len(dims):
        raise ValueError(f"{where}.shape={shape} should have {len(dims)} dimensions")
    for axis, (size, dim) in enumerate(zip(shape, dims, strict=True)):
        if not size:
            raise ValueError(f"{where}.shape={shape} should not be empty")
        if dim is not None:
            _bind(dim, size, f"{where}.shape[{axis}]", sizes)


def _bind(dim: str, size: int, where: str, sizes: Sizes) -> None:
    if sizes.setdefault(dim, size) != size:
        raise ValueError(
            f"{where}={size} should be {sizes[dim]}, as in other attributes"
        )


def _all_finite(values: Any) -> bool:
    """Say whether no entry is infinite or not a number, without a mask of all."""
    if values.dtype.kind != "f":
        return True
    step = 2**20
    flat = values.reshape(-1, order="A")
    return all(
        bool(np.isfinite(flat[start : start + step]).all())
        for start in range(0, len(flat), step)
    )


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False
