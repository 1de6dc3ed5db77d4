"""The plot of a certificate."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from sketchmeans.diagnostics import Certificate
from sketchmeans.report import plot_certificate_path

PATH = np.array([[0.1, 0.5, 0.6], [0.2, 0.6, 0.8]])


@pytest.mark.parametrize(("confidence", "n_lines"), [(1.0, 2), (0.95, 3)])
def test_the_bound_rises_below_the_cost(confidence, n_lines):
    found = Certificate("semidefinite", 0.8, 1.0, None, confidence, path=PATH)
    ax = plot_certificate_path(found)
    assert len(ax.lines) == n_lines
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), PATH[:, 2])
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), [1.0, 1.0])
    plt.close(ax.figure)


def test_other_methods_have_no_path():
    with pytest.raises(ValueError, match="should be 'semidefinite'"):
        plot_certificate_path(Certificate("nystrom", 0.8, 1.0, 0.1, 1.0))
