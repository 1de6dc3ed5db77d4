"""Results as pictures, and as one HTML page that needs nothing but itself.

Plots take the results of `sketchmeans.diagnostics`; they draw on the axes that they are
given, or on those of a new figure, and return them.

``pip install sketchmeans[report]`` brings what this needs: matplotlib and jinja2.
"""

from __future__ import annotations

from importlib.util import find_spec

for _package in ("matplotlib", "jinja2"):
    if find_spec(_package) is None:
        raise ImportError(
            f"sketchmeans.report needs {_package}, which is not installed: "
            "pip install sketchmeans[report]",
            name=_package,
        )

from sketchmeans.report.drawing import (  # noqa: E402 - after the check
    DARK,
    LIGHT,
    Theme,
)
from sketchmeans.report.drift_page import write_drift_report  # noqa: E402
from sketchmeans.report.path_plots import (  # noqa: E402
    plot_certificate_path,
    plot_cost_path,
    plot_landmark_path,
    plot_path,
)
from sketchmeans.report.plots import (  # noqa: E402
    plot_agreement,
    plot_features,
    plot_map,
    plot_margins,
    plot_residual,
    plot_sizes,
)
from sketchmeans.report.spectrum_plot import plot_eigenvalues  # noqa: E402
from sketchmeans.report.write import Report, write_report  # noqa: E402

__all__ = [
    "DARK",
    "LIGHT",
    "Report",
    "Theme",
    "plot_agreement",
    "plot_certificate_path",
    "plot_cost_path",
    "plot_eigenvalues",
    "plot_features",
    "plot_landmark_path",
    "plot_map",
    "plot_margins",
    "plot_path",
    "plot_residual",
    "plot_sizes",
    "write_drift_report",
    "write_report",
]
