"""The examples on the pages of `docs/` run."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Pages whose examples need nothing beyond what the page itself imports.
PAGES = ("errata",)


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page(page):
    found = doctest.testfile(
        str(DOCS / f"{page}.md"),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert found.attempted > 0
    assert found.failed == 0
