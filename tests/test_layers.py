"""The layers of the library: imports point one way, also those within functions."""

from __future__ import annotations

import ast
import re
import tokenize
from io import StringIO

from docs.draw_layers import HERE, LAYERS, ROOT, draw, imported_modules


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


def count_code(text: str) -> dict[str, int]:
    """Return the lines of code in the body of each function."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE}
    layout |= {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = {
        line
        for token in tokenize.generate_tokens(StringIO(text).readline)
        if token.type not in layout
        for line in range(token.start[0], token.end[0] + 1)
    }
    counts = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first, last = node.body[bool(ast.get_docstring(node)) :], node.end_lineno
            lines = range(first[0].lineno if first else 0, last + 1 if first else 0)
            counts[f"{node.name}:{node.lineno}"] = len(code.intersection(lines))
    return counts


def test_modules_and_functions_are_short() -> None:
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, path
        long = {name: n for name, n in count_code(text).items() if n > 60}
        assert not long, f"{path}: {long}"


def test_a_long_function_would_be_seen() -> None:
    text = 'def f():\n    """Text."""\n' + "    g()\n\n    # why\n" * 61
    assert count_code(text) == {"f:1": 61}


def test_the_picture_is_that_of_the_code() -> None:
    text = (HERE / "layers.svg").read_text(encoding="utf-8")
    assert text == draw(), "run: python -m docs.draw_layers"


def test_the_page_names_modules_and_objects_that_exist() -> None:
    text = (HERE / "architecture.md").read_text(encoding="utf-8")
    pattern = rf"`((?:{'|'.join(LAYERS)})/[a-z_/]+)(?:\.([A-Za-z_]+))?`"
    named = set(re.findall(pattern, text))
    assert len(named) > 30
    for module, name in named:
        path = ROOT / f"{module}.py"
        if name == "html":
            path = ROOT / f"{module}.html"
        elif not path.exists():
            path = ROOT / module / "__init__.py"
        code = path.read_text(encoding="utf-8")
        assert name in code, f"{module} has no {name}"
    # Such as "a line in `KERNELS` of `kernels/names`".
    for name, module in re.findall(r"`(_?[A-Z_]+)` (?:of|in) `([a-z_/]+)`", text):
        assert f"\n{name}" in (ROOT / f"{module}.py").read_text(encoding="utf-8")
