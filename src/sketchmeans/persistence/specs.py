"""What is known of a class whose objects go to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from sketchmeans.persistence.kinds import Kind, Maybe, Record, Sizes


def _accept(model: Any) -> None:
    """Accept everything, and change nothing."""


@dataclass(frozen=True)
class Spec:
    """One class: its parameters, and the attributes that its `fit` leaves.

    Attributes
    ----------
    cls : type
        The constructor takes the parameters and only stores them.
    params : mapping of str to Kind
    fitted : mapping of str to Kind
        In the file; whatever else `fit` sets is left out.
    restore : callable
        Sets the attributes that follow from those in the file.
    check : callable
        Raises ValueError where attributes contradict one another.
    note : callable
        Returns what a user should know when such a model is saved, or None.
    """

    cls: type[Any]
    params: Mapping[str, Kind]
    fitted: Mapping[str, Kind] = field(default_factory=dict)
    restore: Callable[[Any], None] = _accept
    check: Callable[[Any], None] = _accept
    note: Callable[[Any], str | None] = _accept

    def check_params(self, model: Any, where: str) -> None:
        """Raise where a parameter is not of its kind."""
        for name, kind in self.params.items():
            kind.check(getattr(model, name), f"{where}{name}", {})
        # An estimator knows more of its parameters than their kinds do.
        getattr(model, "_check_params", lambda: None)()

    def check_fitted(self, model: Any, where: str) -> None:
        """Raise where a fitted attribute is missing, of another kind, or odd."""
        sizes: Sizes = {}
        for name, kind in self.fitted.items():
            if name in vars(model):
                kind.check(getattr(model, name), f"{where}{name}", sizes)
            elif not isinstance(kind, Maybe):
                raise ValueError(f"{where}{name} is missing")
        self.check(model)


@dataclass(frozen=True)
class Registry:
    """All classes that files may name."""

    specs: Mapping[str, Spec]
    records: Mapping[str, Record]

    def spec_of(self, value: Any) -> Spec | None:
        """Return what is known of an object's class; a subclass is another class."""
        spec = self.specs.get(type(value).__name__)
        return spec if spec is not None and spec.cls is type(value) else None

    def record_of(self, value: Any) -> Record | None:
        """Return what is known of a dataclass."""
        record = self.records.get(type(value).__name__)
        return record if record is not None and record.cls is type(value) else None


def parameter_names(cls: type[Any]) -> list[str]:
    """Return the parameters of a constructor."""
    if cls.__init__ is object.__init__:  # it has none
        return []
    return [name for name in signature(cls.__init__).parameters if name != "self"]


def required_names(cls: type[Any]) -> set[str]:
    """Return the parameters of a constructor that have no default."""
    if cls.__init__ is object.__init__:
        return set()
    return {
        name
        for name, parameter in signature(cls.__init__).parameters.items()
        if name != "self" and parameter.default is Parameter.empty
    }
