"""Collections whose rows live elsewhere, and the packages that read them.

A layer above this one registers itself for the package that a collection's type comes
from; it is imported when the first such collection arrives.
"""

from __future__ import annotations

from importlib import import_module

#: As in `typing`, which takes its time to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object

#: From the package of a collection's type to the module that adapts it.
_MODULES: dict[str, str] = {}


class Adapter(Protocol):
    """What a registered module has."""

    def as_table(self, X: Any) -> Any:
        """Return the table that a user's collection stands for."""
        ...

    def as_rows(self, X: Any, workers: Any, weights: Any) -> Any:
        """Return the rows of a collection or of its table."""
        ...

    def as_backend(self, rows: Any, space: Any, budget: int) -> Any:
        """Return where passes over such rows run: a `Backend` of the engine."""
        ...


def register_adapter(package: str, module: str) -> None:
    """Let `module` read collections whose type comes from `package`."""
    _MODULES[package] = _MODULES[module] = module


def find_adapter(X: Any) -> Adapter | None:
    """Return the adapter of a collection, or None for other tables."""
    home = type(X).__module__
    for package, module in _MODULES.items():
        if home == package or home.startswith(package + "."):
            adapter: Any = import_module(module)
            return adapter
    return None
