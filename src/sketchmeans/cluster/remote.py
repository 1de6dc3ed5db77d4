"""What a fit on a Dask cluster cannot do, reported before it starts."""

from __future__ import annotations

from typing import Any

from sketchmeans.data.adapters import find_adapter


def check_possible(estimator: Any, X: Any, labels_out: Any) -> None:
    """Raise where a Dask collection is fitted with what only one process can do."""
    if find_adapter(X) is None:
        return
    if labels_out is not None:
        raise ValueError(
            f"labels_out={labels_out!r} should be None with rows on a cluster: labels_ "
            "is a lazy Dask array (or a Spark DataFrame), which can be written with "
            "its own to_zarr or to_npy_stack."
        )
    if estimator.__sklearn_tags__().input_tags.pairwise:
        raise ValueError(
            "kernel='precomputed' does not take a Dask collection: a kernel matrix has "
            "a column for each row. Give the rows and the name of the kernel."
        )
