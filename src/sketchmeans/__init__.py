"""k-means and kernel k-means on millions of points through provably good sketches."""

from __future__ import annotations

from importlib import import_module

from sketchmeans.data.adapters import register_adapter

#: As in `typing`, which takes its time to import: a command that is stopped meanwhile
#: could only leave a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from sketchmeans.cluster import (
        KernelKMeans,
        NystromKMeans,
        SketchedKMeans,
        SpectralKMeans,
    )
    from sketchmeans.cluster.table import TableClusterer
    from sketchmeans.data.sources import Dialect, open_rows
    from sketchmeans.engine.checkpoint import Checkpoint
    from sketchmeans.kernels import Kernel
    from sketchmeans.landmarks import Landmarks, select_landmarks
    from sketchmeans.nystrom import Nystrom
    from sketchmeans.persistence import ModelFileError, load, save
    from sketchmeans.reduction import (
        ApproximateSVD,
        FeatureSampling,
        LaplacianScore,
        SignProjection,
    )

    __version__: str

__all__ = [
    "ApproximateSVD",
    "Checkpoint",
    "Dialect",
    "FeatureSampling",
    "Kernel",
    "KernelKMeans",
    "Landmarks",
    "LaplacianScore",
    "ModelFileError",
    "Nystrom",
    "NystromKMeans",
    "SignProjection",
    "SketchedKMeans",
    "SpectralKMeans",
    "TableClusterer",
    "__version__",
    "load",
    "open_rows",
    "save",
    "select_landmarks",
]

#: Public names and where they live.  They load on first use, because the import of
#: scikit-learn takes longer than most commands.
_HOMES = {
    "ApproximateSVD": "reduction",
    "Checkpoint": "engine.checkpoint",
    "Dialect": "data.sources",
    "FeatureSampling": "reduction",
    "Kernel": "kernels",
    "KernelKMeans": "cluster",
    "Landmarks": "landmarks",
    "LaplacianScore": "reduction",
    "ModelFileError": "persistence",
    "Nystrom": "nystrom",
    "NystromKMeans": "cluster",
    "SignProjection": "reduction",
    "SketchedKMeans": "cluster",
    "SpectralKMeans": "cluster",
    "TableClusterer": "cluster.table",
    "load": "persistence",
    "open_rows": "data.sources",
    "save": "persistence",
    "select_landmarks": "landmarks",
}

register_adapter("dask", "sketchmeans.distributed")
register_adapter("pyspark", "sketchmeans.spark")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
