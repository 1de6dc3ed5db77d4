"""Docstrings name everything that a parameter may be called."""

from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, SketchedKMeans
from sketchmeans.engine.init import SEEDINGS
from sketchmeans.kernels import KERNELS
from sketchmeans.landmarks import SELECTORS, select_landmarks
from sketchmeans.reduction import REDUCERS

#: "poly" is another name of "polynomial".
KERNEL_NAMES = sorted(set(KERNELS) - {"poly"})

NAMES = [
    (NystromKMeans, SELECTORS),
    (Nystrom, SELECTORS),
    (select_landmarks, SELECTORS),
    (NystromKMeans, SEEDINGS),
    (KernelKMeans, SEEDINGS),
    (SketchedKMeans, SEEDINGS),
    (NystromKMeans, REDUCERS),
    (SketchedKMeans, REDUCERS),
    (NystromKMeans, KERNEL_NAMES),
    (KernelKMeans, KERNEL_NAMES),
    (Nystrom, KERNEL_NAMES),
]


def test_docstrings_list_all_names():
    for documented, names in NAMES:
        assert [name for name in names if f'"{name}"' not in documented.__doc__] == []
