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

    def empty_table(self, X: Any) -> Any:
        """Return a table in memory with the columns and types of a collection."""
        ...

    def select_columns(self, X: Any, columns: Any) -> Any:
        """Return some columns of a collection."""
        ...

    def sample_table(self, X: Any, size: int) -> tuple[Any, Any]:
        """Return rows drawn at random, in memory, and their numbers."""
        ...

    def map_table(self, X: Any, function: Any, width: Any, dtype: Any) -> Any:
        """Return what a function makes of each partition, as a lazy array."""
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
