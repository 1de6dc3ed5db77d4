"""Contracts: tests for a kernel, landmark selector, seeding or row source of your own.

Supply one factory and inherit the tests; they run with pytest, which only this package
needs.  Attributes of a class say what does not apply.  A kernel:

    from sketchmeans.testing import KernelContract

    class TestMyKernel(KernelContract):
        takes_sparse = False

        def make_kernel(self):
            return MyKernel(scale=2.0)

        def value(self, x, z):  # of two rows, if there is a plain formula
            return 2.0 * min(x @ z, 1.0)

A landmark selector:

    class TestMySelector(SelectorContract):
        def make_selector(self):
            return MySelector()

A row source, of any table that the contract asks for:

    class TestMySource(SourceContract):
        def make_source(self, X, folder):
            write_my_format(folder / "rows.mine", X)
            return MySource(folder / "rows.mine")

A seeding is tested by `SeedingContract` in the same way (``make_seeding``).  The tests
of sketchmeans itself are such classes: see ``tests/contracts`` in its repository.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("pytest") is None:
    raise ImportError(
        "sketchmeans.testing needs pytest, which is not installed: "
        "pip install sketchmeans[testing]",
        name="pytest",
    )

from sketchmeans.testing.kernels import KernelContract
from sketchmeans.testing.selectors import SeedingContract, SelectorContract
from sketchmeans.testing.sources import SourceContract

__all__ = ["KernelContract", "SeedingContract", "SelectorContract", "SourceContract"]
