"""Draw the layers of the library: ``python -m docs.draw_layers`` writes layers.svg.

The picture comes from the import statements and the docstrings of the packages.
"""

from __future__ import annotations

import ast
from html import escape
from itertools import chain
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent / "src" / "sketchmeans"

#: A package imports from itself and from packages before it.
LAYERS = (
    "numerics",
    "datasets",
    "data",
    "kernels",
    "engine",
    "landmarks",
    "graphs",
    "reduction",
    "nystrom",
    "cluster",
    "distributed",
    "spark",
    "theory",
    "diagnostics",
    "persistence",
    "onnx",
    "report",
    "testing",
    "cli",
)

_WIDTH, _HEIGHT, _GAP, _LEFT, _TOP = 620, 40, 14, 16, 16


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


def imported_layers(layer: str) -> list[str]:
    """Return the other layers that a layer imports from, the nearest first."""
    files = (ROOT / layer).rglob("*.py")
    modules = chain.from_iterable(imported_modules(path) for path in files)
    packages = {name.split(".")[1] for name in modules if "." in name}
    return [name for name in reversed(LAYERS) if name in packages - {layer}]


def describe(layer: str) -> str:
    """Return the first line of a package's docstring."""
    text = (ROOT / layer / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def draw() -> str:
    """Return the picture: one box per layer, an arc for every import between them."""
    tops = {
        name: _TOP + i * (_HEIGHT + _GAP) for i, name in enumerate(reversed(LAYERS))
    }
    boxes, arcs = [], []
    for layer, top in tops.items():
        boxes.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{_LEFT + 14}" y="{top + 25}" class="name">{layer}</text>'
            f'<text x="{_LEFT + 124}" y="{top + 25}">{escape(describe(layer))}</text>'
        )
        for other in imported_layers(layer):
            right = _LEFT + _WIDTH
            start, end = top + _HEIGHT // 2 + 5, tops[other] + _HEIGHT // 2 - 5
            bend = right + 14 + 0.36 * (end - start)
            arcs.append(
                f'<path d="M{right} {start} C{bend:.0f} {start} {bend:.0f} {end} '
                f'{right + 2} {end}" marker-end="url(#head)"/>'
            )
    height = _TOP + len(LAYERS) * (_HEIGHT + _GAP)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height}" '
            'font-family="sans-serif" font-size="13">',
            "<style>rect{fill:#eef3fb;stroke:#5b7db1}text{fill:#1d2733}"
            ".name{font-weight:bold}path{fill:none;stroke:#5b7db1;stroke-opacity:.45}"
            "</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerWidth="7" markerHeight="7" orient="auto">'
            '<polygon points="0 0 8 4 0 8" fill="#5b7db1"/></marker></defs>',
            '<rect width="100%" height="100%" style="fill:white;stroke:none"/>',
            *arcs,
            *boxes,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    (HERE / "layers.svg").write_text(draw(), encoding="utf-8")
