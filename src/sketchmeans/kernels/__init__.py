"""Kernels on blocks of rows: values, diagonals and names.

A kernel is its parameters, ``against(Z)``, which prepares the columns ``k(·, Z)``
once for many blocks of rows, and ``diagonal(X)``, which never forms a matrix.
Values of n rows and m columns of d features take n·m·d operations.
"""

from __future__ import annotations

from sketchmeans.data.sources.base import toarray
from sketchmeans.kernels.arrays import squared_distances_among, squared_norms
from sketchmeans.kernels.base import Kernel, KernelColumns, is_proven
from sketchmeans.kernels.distances import RBF, Laplacian
from sketchmeans.kernels.names import (
    KERNELS,
    as_kernel,
    is_given,
    kernel_of,
    resolve_kernel,
    typical_exponent,
    warn_if_indefinite,
)
from sketchmeans.kernels.pairwise import (
    Chi2,
    Pairwise,
    Precomputed,
    check_kernel_matrix,
    compute_gram,
)
from sketchmeans.kernels.paper_bandwidths import paper_gamma, percentile_gammas
from sketchmeans.kernels.products import ArcCosine, Cosine, Linear, Polynomial, Sigmoid

__all__ = [
    "KERNELS",
    "RBF",
    "ArcCosine",
    "Chi2",
    "Cosine",
    "Kernel",
    "KernelColumns",
    "Laplacian",
    "Linear",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "as_kernel",
    "check_kernel_matrix",
    "compute_gram",
    "is_given",
    "is_proven",
    "kernel_of",
    "paper_gamma",
    "percentile_gammas",
    "resolve_kernel",
    "squared_distances_among",
    "squared_norms",
    "toarray",
    "typical_exponent",
    "warn_if_indefinite",
]
