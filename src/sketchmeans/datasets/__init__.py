"""Tables to try things on."""

from __future__ import annotations

from sketchmeans.datasets.customers import make_customers, write_customers

__all__ = ["make_customers", "write_customers"]
