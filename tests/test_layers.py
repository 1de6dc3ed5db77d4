"""The layers of the library: imports point one way, also those within functions."""

from __future__ import annotations

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
