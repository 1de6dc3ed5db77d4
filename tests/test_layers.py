"""The layers of the library: imports point one way, also those within functions."""

from __future__ import annotations

import ast
from pathlib import Path

import sketchmeans

ROOT = Path(sketchmeans.__file__).parent

#: A package imports from itself and from packages before it.
LAYERS = (
    "numerics",
    "data",
    "kernels",
    "engine",
    "landmarks",
    "reduction",
    "nystrom",
    "cluster",
    "distributed",
    "theory",
    "diagnostics",
    "persistence",
    "report",
    "testing",
    "cli",
)


def imported_modules(path: Path) -> set[str]:
    """Return the modules of this library that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "sketchmeans"}


def test_every_package_is_a_layer() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(LAYERS)
    modules = {path.name for path in ROOT.glob("*.py")}
    assert modules == {"__init__.py", "__main__.py"}, "the root holds public names only"


def test_imports_point_one_way() -> None:
    for path in ROOT.rglob("*/*.py"):
        layer = LAYERS.index(path.relative_to(ROOT).parts[0])
        for name in imported_modules(path):
            package = name.partition(".")[2].partition(".")[0]
            if package not in LAYERS:  # a public name of the root
                assert LAYERS[layer] == "cli", f"{path} imports {name}"
            else:
                assert LAYERS.index(package) <= layer, f"{path} imports {name}"
