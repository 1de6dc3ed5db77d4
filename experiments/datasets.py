"""The tables of the papers: from files, else from scikit-learn's public loaders.

A file NAME.npz holds X and y; the folder is --data, or SKETCHMEANS_DATA.  What can be
had in neither way is `MissingDataError`, with the reason, and its cells are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn import datasets as public

from benchmarks.data import VARIABLE, Array
from benchmarks.og17 import standardised
from experiments.simulation import Mixture


class MissingDataError(Exception):
    """There is no way to a dataset; the message says why."""


@dataclass(frozen=True)
class Dataset:
    """Rows as a paper uses them, and their classes where they have any.

    The loader of a dataset gives raw rows, `prepare` turns them to float32.
    """

    name: str
    X: Array
    y: Array | None

    def __post_init__(self) -> None:
        if self.y is not None and len(self.y) != len(self.X):
            raise ValueError(
                f"{self.name}: {len(self.y)} classes should be {len(self.X)}, one a row"
            )

    @property
    def n_classes(self) -> int:
        assert self.y is not None
        return len(np.unique(self.y))


Raw = tuple[Array, Array | None]


@dataclass(frozen=True)
class Entry:
    """Where a dataset comes from and what is done to it."""

    source: Callable[[], Raw]
    prepare: Callable[[Raw], Raw]
    #: What the report says of it.
    note: str
    #: The name of its file, where that differs.
    file: str | None = None
    #: Whether it is made or shipped, and never read from a file.
    own: bool = False


def load(name: str, directory: Path | None = None) -> Dataset:
    """Return a dataset by name, prepared, or raise `MissingDataError`."""
    if name not in REGISTRY:
        raise ValueError(f"dataset {name!r} should be one of {sorted(REGISTRY)}")
    if directory is None and VARIABLE in os.environ:
        directory = Path(os.environ[VARIABLE])
    return _loaded(name, directory)


# Cells of one dataset follow each other.
@lru_cache(maxsize=2)
def _loaded(name: str, directory: Path | None) -> Dataset:
    entry = REGISTRY[name]
    path = None if directory is None else directory / f"{entry.file or name}.npz"
    if path is not None and not entry.own and path.is_file():
        with np.load(path) as arrays:
            raw: Raw = arrays["X"], arrays["y"]
    else:
        raw = _fetched(name, entry)
    X, y = entry.prepare(raw)
    return Dataset(name, np.ascontiguousarray(X, dtype=np.float32), y)


def _fetched(name: str, entry: Entry) -> Raw:
    try:
        return entry.source()
    except MissingDataError:
        raise
    except (OSError, ValueError) as error:
        raise MissingDataError(
            f"{name}: no file in --data or {VARIABLE}, and {error}"
        ) from error


# -- sources ---------------------------------------------------------------------------


def _openml(name: str, version: int = 1) -> Callable[[], Raw]:
    def fetch() -> Raw:
        table = public.fetch_openml(
            name, version=version, as_frame=False, n_retries=0, parser="auto"
        )
        return np.asarray(table.data), np.asarray(table.target)

    return fetch


def _one_hot_openml(name: str, without: str) -> Callable[[], Raw]:
    """Return a loader of a table of categories; a column with gaps is left out."""

    def fetch() -> Raw:
        import pandas as pd

        table = public.fetch_openml(name, version=1, as_frame=True, n_retries=0)
        columns = table.data.drop(columns=[without])
        varied = columns.loc[:, columns.nunique() > 0].astype(str)
        return pd.get_dummies(varied).to_numpy(np.uint8), np.asarray(table.target)

    return fetch


def _covtype() -> Raw:
    return public.fetch_covtype(return_X_y=True)  # type: ignore[no-any-return]


def _housing() -> Raw:
    return public.fetch_california_housing(return_X_y=True)  # type: ignore[no-any-return]


def _faces() -> Raw:
    return public.fetch_olivetti_faces(return_X_y=True)  # type: ignore[no-any-return]


def _absent(name: str, reason: str) -> Callable[[], Raw]:
    def fetch() -> Raw:
        raise MissingDataError(f"{name}: {reason}")

    return fetch


def synth() -> Raw:
    """Return B14's mixture: 5 groups of 200 in a cube of side 2,000, variance 1."""
    rng = np.random.default_rng(2014)
    centers = rng.uniform(0.0, 2000.0, size=(5, 2000))
    y = np.repeat(np.arange(5), 200)
    return centers[y] + rng.standard_normal((1000, 2000)), y


def _mixture() -> Raw:
    return Mixture.of(20).draw(4_000, seed=2)


def small_groups() -> Raw:
    """Return groups of very different size, for smoke runs and small optima."""
    rng = np.random.default_rng(7)
    y = rng.choice(6, 900, p=[0.5, 0.25, 0.15, 0.06, 0.03, 0.01])
    X = 4.0 * rng.standard_normal((6, 6))[y] + rng.standard_normal((900, 6))
    return X, y


def uneven() -> Raw:
    """Return a group of 1,800 rows, and 25 of 8 far from it: structured data.

    Uniform draws miss most of the small groups, leverage scores see them.
    """
    rng = np.random.default_rng(11)
    y = np.concatenate([np.zeros(1800, int), np.repeat(np.arange(1, 26), 8)])
    centers = np.vstack([np.zeros(10), 12.0 * rng.standard_normal((25, 10))])
    return centers[y] + 0.5 * rng.standard_normal((2000, 10)), y


# -- preparations ----------------------------------------------------------------------


def _as_is(raw: Raw) -> Raw:
    return raw


def _grey(raw: Raw) -> Raw:
    return raw[0].astype(np.float32) / 255.0, raw[1]


def _from_signed(raw: Raw) -> Raw:
    """Scale [−1, 1] to [0, 1]."""
    return (raw[0].astype(np.float32) + 1.0) / 2.0, raw[1]


def _standard(raw: Raw) -> Raw:
    # OG17 has no classes: the targets of these tables are numbers.
    return standardised(raw[0]), None


def _unit_range(raw: Raw) -> Raw:
    """Scale features to [−1, 1], as LIBSVM's copies are; constant ones become 0."""
    X = raw[0].astype(np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2.0 * (X - low) / spread - 1.0, 0.0), raw[1]


def _first(n_rows: int) -> Callable[[Raw], Raw]:
    def head(raw: Raw) -> Raw:
        assert raw[1] is not None
        return raw[0][:n_rows], raw[1][:n_rows]

    return head


_NO_COPY = "no file, and scikit-learn has no loader for it"

#: OG17's tables that can be had, in the order of their size.
OG17 = (
    "parkinsons",
    "delta_ailerons",
    "kin8nm",
    "cpu_act",
    "bank32nh",
    "puma32h",
    "delta_elevators",
    "ailerons",
    "pol",
    "elevators",
    "cal_housing",
    "ujiindoorloc",
)
_STANDARD = "features of mean 0 and variance 1"

REGISTRY = {
    "mnist": Entry(_openml("mnist_784"), _grey, "grey values / 255; 60,000 + 10,000"),
    "dna": Entry(_openml("dna"), _first(2000), "the first 2,000 of 3,186 rows"),
    "segment": Entry(_openml("segment"), _unit_range, "scaled to [−1, 1]"),
    "mushrooms": Entry(
        _one_hot_openml("mushroom", without="stalk-root"), _as_is, "one-hot"
    ),
    "skin_nonskin": Entry(_openml("skin-segmentation"), _as_is, "raw"),
    "covtype": Entry(_covtype, _as_is, "raw"),
    "usps": Entry(
        _openml("USPS", 2),
        _from_signed,
        "the version of 9,298 rows, whose [−1, 1] is scaled to B14's [0, 1]",
    ),
    "coil20": Entry(_absent("coil20", _NO_COPY), _as_is, "32 × 32"),
    "orl": Entry(_faces, _as_is, "64 × 64", file="orl64"),
    "pie": Entry(_absent("pie", _NO_COPY), _as_is, "five near frontal poses"),
    "light": Entry(_absent("light", "no copy was found"), _as_is, "not to be had"),
    "ct_slice": Entry(
        _absent("ct_slice", "no whole copy was found"), _standard, "not to be had"
    ),
    "synth": Entry(synth, _as_is, "made as in B14 §7.3", own=True),
    "mixture": Entry(_mixture, _as_is, "made: L21 §5.1, 20 clusters", own=True),
    "uneven": Entry(uneven, _as_is, "made: one large group, 25 small ones", own=True),
    "small_groups": Entry(
        small_groups,
        _standard,
        "made: groups of very different size; CR4 and CR6 rest on rows of it",
        own=True,
    ),
    "digits": Entry(
        lambda: public.load_digits(return_X_y=True),
        _as_is,
        "scikit-learn's 8 × 8 digits",
        own=True,
    ),
    **{name: Entry(_openml(name), _standard, _STANDARD) for name in OG17},
    "cal_housing": Entry(_housing, _standard, _STANDARD),
    "parkinsons": Entry(_absent("parkinsons", _NO_COPY), _standard, _STANDARD),
    "ujiindoorloc": Entry(_absent("ujiindoorloc", _NO_COPY), _standard, _STANDARD),
}
