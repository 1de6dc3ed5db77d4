"""Kinds of values that a parameter or a fitted attribute may have, and of objects.

A kind checks a value when it is saved and when it is loaded.  Arrays name their
dimensions; a name stands for the same size in all attributes of an object, so that
``dual_coef_`` of shape ("m", "k") has to fit ``landmarks_`` of shape ("m", "w").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Protocol

import numpy as np
from scipy import sparse

#: Sizes of the named dimensions that are known so far.
Sizes = dict[str, int]
#: The names of dimensions; None for any size.
Dims = tuple[str | None, ...]

_MAX_SIZE = 2**62


class Kind(Protocol):
    """A set of values."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """Raise ValueError if a value is of another kind."""
        ...


# --- values of Python -----------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """Values that a function accepts."""

    accepts: Callable[[Any], bool]
    expected: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not self.accepts(value):
            raise ValueError(f"{where}={value!r} should be {self.expected}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    if not _is_integer(value) and not isinstance(value, float | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def is_plain(value: Any) -> bool:
    """Say whether a value consists of numbers, strings and None."""
    if isinstance(value, Mapping):
        return all(is_plain(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_plain(item) for item in value)
    return isinstance(value, bool | np.bool_ | str | None) or _is_real(value)


def integer(low: int) -> Plain:
    """Return the kind of integers of at least `low`."""
    return Plain(lambda v: _is_integer(v) and v >= low, f"an integer >= {low}")


def text(*options: str) -> Plain:
    """Return the kind of strings, or of these strings."""
    if not options:
        return Plain(lambda v: isinstance(v, str), "a string")
    return Plain(lambda v: isinstance(v, str) and v in options, f"one of {options}")


NOTHING = Plain(lambda v: v is None, "None")
FLAG = Plain(lambda v: isinstance(v, bool | np.bool_), "true or false")
INTEGER = Plain(_is_integer, "an integer")
POSITIVE = Plain(lambda v: _is_real(v) and v > 0, "a positive number")
NONZERO = Plain(lambda v: _is_integer(v) and v != 0, "a nonzero integer")
REAL = Plain(_is_real, "a finite number")
PLAIN = Plain(is_plain, "a number, a text or null")
PLAIN_DICT = Plain(
    lambda v: isinstance(v, Mapping) and is_plain(v), "a dictionary of plain values"
)
PLAIN_LIST = Plain(
    lambda v: isinstance(v, list | tuple) and is_plain(v), "a list of plain values"
)


# --- values with dimensions -----------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """A positive integer that is the size of a dimension."""

    dim: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        integer(1).check(value, where, sizes)
        if value > _MAX_SIZE:
            raise ValueError(f"{where}={value} should be the size of an array")
        _bind(self.dim, int(value), where, sizes)


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
        _bind(self.dim, len(value), where, sizes)


@dataclass(frozen=True)
class Columns:
    """Columns of a table in a list: all names, or all numbers."""

    dim: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        types = {type(column) for column in value} if isinstance(value, list) else set()
        if types not in ({str}, {int}):
            raise ValueError(f"{where}={value!r} should be a list of names or numbers")
        if len(set(value)) < len(value):
            raise ValueError(f"{where}={value!r} should not name a column twice")
        _bind(self.dim, len(value), where, sizes)


_FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}
_INTEGERS = {np.dtype(f"{sign}{width}") for sign in "iu" for width in (1, 2, 4, 8)}
#: The dtypes of tensors by code, and what messages call them.
_DTYPES: dict[str, tuple[set[Any], str]] = {
    "f": (_FLOATS, "floats"),
    "i": (_INTEGERS, "integers"),
    "u1": ({np.dtype(np.uint8)}, "bytes"),
    "n": (_FLOATS | _INTEGERS | {np.dtype(np.float16), np.dtype(bool)}, "real numbers"),
}


@dataclass(frozen=True)
class Tensor:
    """An array of floats ("f"), integers ("i"), bytes ("u1") or any numbers ("n")."""

    dims: Dims
    types: str = "f"
    finite: bool = True
    #: Whether it may be a CSR matrix.
    sparse: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        dtypes, words = _DTYPES[self.types]
        is_array = isinstance(value, np.ndarray)
        is_sparse = self.sparse and sparse.issparse(value)
        if not (is_array or is_sparse) or value.dtype not in dtypes:
            what = f"of type {type(value).__name__}"
            if hasattr(value, "dtype") and hasattr(value, "shape"):
                what = f"of type {value.dtype} and shape {value.shape}"
            raise ValueError(f"{where} {what} should be an array of {words}")
        if len(value.shape) != len(self.dims):
            raise ValueError(
                f"{where}.shape={value.shape} should have {len(self.dims)} dimensions"
            )
        for axis, (size, dim) in enumerate(zip(value.shape, self.dims, strict=True)):
            if not size:
                raise ValueError(f"{where}.shape={value.shape} should not be empty")
            _bind(dim, size, f"{where}.shape[{axis}]", sizes)
        if self.finite and not _all_finite(value.data if is_sparse else value):
            raise ValueError(f"{where} should hold finite numbers only")


def rows(first: str | None, second: str | None) -> Tensor:
    """Return the kind of rows of a table, dense or CSR, in the type of the table."""
    return Tensor((first, second), "n", sparse=True)


def _bind(dim: str | None, size: int, where: str, sizes: Sizes) -> None:
    """Note the size of a dimension, or check that it is the known one."""
    if dim is not None and sizes.setdefault(dim, size) != size:
        raise ValueError(
            f"{where}={size} should be {sizes[dim]}, as in other attributes"
        )


def _all_finite(values: Any) -> bool:
    """Say whether all entries are finite, without a mask of all."""
    if values.dtype.kind != "f":
        return True
    step = 2**20
    flat = values.reshape(-1, order="A")
    return all(
        bool(np.isfinite(flat[start : start + step]).all())
        for start in range(0, len(flat), step)
    )


# --- composed kinds -------------------------------------------------------------------


@dataclass(frozen=True)
class Object:
    """An object of one of these classes; an error ends with the `advice`."""

    classes: frozenset[type]
    advice: str = ""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) not in self.classes:
            names = sorted(cls.__name__ for cls in self.classes)
            raise ValueError(
                f"{where} of class {type(value).__name__} should be one of {names}"
                f"{self.advice}"
            )


@dataclass(frozen=True)
class Record:
    """A dataclass, whose fields share the dimensions of the object that holds it.

    `name` is what files call it.
    """

    name: str
    cls: type
    fields: Mapping[str, Kind]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not self.cls:
            raise ValueError(f"{where}={value!r} should be a {self.name}")
        for name, kind in self.fields.items():
            kind.check(getattr(value, name), f"{where}.{name}", sizes)


@dataclass(frozen=True)
class Many:
    """A list or a tuple of values of one kind, of a given length if that is fixed.

    A length may be the name of a dimension.
    """

    kind: Kind
    length: int | str | None = None

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}={value!r} should be a list")
        if isinstance(self.length, str):
            _bind(self.length, len(value), f"the length of {where}", sizes)
        elif self.length is not None and len(value) != self.length:
            raise ValueError(f"{where} should have {self.length} values")
        for i, item in enumerate(value):
            self.kind.check(item, f"{where}[{i}]", sizes)


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


def nullable(*kinds: Kind) -> OneOf:
    """Return the kind of values that may be None."""
    return OneOf(NOTHING, *kinds)


# --- objects --------------------------------------------------------------------------


def constructor_parameters(cls: type[Any]) -> dict[str, bool]:
    """Return the parameters of a constructor, and whether each is required."""
    if cls.__init__ is object.__init__:  # it has none
        return {}
    parameters = list(signature(cls.__init__).parameters.values())[1:]  # not self
    return {p.name: p.default is Parameter.empty for p in parameters}


def _accept(model: Any) -> None:
    """Accept everything, without a warning."""


@dataclass(frozen=True)
class Spec:
    """One class: its parameters, and the attributes that its `fit` sets.

    The constructor only stores the parameters.  What `fit` sets in addition to `fitted`
    and `derived`, which follows from that, is left out of files.  `check` raises where
    attributes contradict one another, `warn` returns what a user should know of a file.
    Parameters in `holds_fitted` hold fitted objects; those that are not in `params` are
    left out of files, and have to be at their defaults.
    """

    cls: type[Any]
    params: Mapping[str, Kind]
    fitted: Mapping[str, Kind] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    check: Callable[[Any], None] = _accept
    warn: Callable[[Any], str | None] = _accept
    holds_fitted: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """What files call the class."""
        return self.cls.__name__

    @property
    def is_model(self) -> bool:
        """Whether a file may hold an object of the class alone: no lone step."""
        is_own = self.cls.__module__.startswith("sketchmeans.")
        return bool((self.fitted and is_own) or self.holds_fitted)

    def check_left_out(self, model: Any, where: str) -> None:
        """Raise if a parameter that files leave out is not at its default."""
        for name in set(constructor_parameters(self.cls)) - set(self.params):
            value, default = (
                getattr(model, name),
                signature(self.cls.__init__).parameters[name].default,
            )
            is_gap = value != value and default != default  # both are NaN
            if not (is_gap or value == default):
                raise ValueError(
                    f"{where}{name}={value!r} should be {default!r} in a model file"
                )

    def check_params(self, model: Any, where: str) -> None:
        """Raise if a parameter is of another kind."""
        for name, kind in self.params.items():
            kind.check(getattr(model, name), f"{where}{name}", {})
        # An estimator knows more of its parameters than their kinds do.
        getattr(model, "_check_params", lambda: None)()

    def check_fitted(self, model: Any, where: str) -> None:
        """Raise if a fitted attribute is missing or of another kind; set the others."""
        sizes: Sizes = {}
        for name, kind in self.fitted.items():
            if name in vars(model):
                kind.check(getattr(model, name), f"{where}{name}", sizes)
            elif not isinstance(kind, Maybe):
                raise ValueError(f"{where}{name} is missing")
        self.check(model)
        for name, value in self.derived.items():
            setattr(model, name, value(model))
