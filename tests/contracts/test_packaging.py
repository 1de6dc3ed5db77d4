"""What the contracts need, the library does not."""

from pathlib import Path

import sketchmeans
from sketchmeans import testing

ROOT = Path(sketchmeans.__file__).parent


def test_only_the_contracts_import_pytest():
    users = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.rglob("*.py")
        if "import pytest" in path.read_text(encoding="utf-8")
    }
    assert users == {"testing"}


def test_the_docstring_shows_every_contract():
    for name in testing.__all__:
        assert name in testing.__doc__
