"""Tests that run every experiment in small take long."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "smoke" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
