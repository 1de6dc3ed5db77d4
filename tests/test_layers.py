"""The layers of the library: imports point one way, also those within functions."""

from __future__ import annotations

import re

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
