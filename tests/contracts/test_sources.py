"""Sources of rows of all kinds keep the contract that ships with the package."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from sketchmeans import open_rows
from sketchmeans.data.sources.base import Source
from sketchmeans.testing import SourceContract


class InMemory(Source):
    """A source as a user writes it."""

    path = "memory"

    def __init__(self, X):
        self.X = X
        self.shape, self.dtype = X.shape, X.dtype

    def read(self, start, stop, out=None):
        if out is None:
            return self.X[start:stop]
        out[...] = self.X[start:stop]
        return out

    def take(self, indices):
        return self.X[indices]


def write_npy(X, folder):
    np.save(folder / "rows.npy", X)
    return "rows.npy"


def write_npz(X, folder):
    sparse.save_npz(folder / "rows.npz", sparse.csr_matrix(X))
    return "rows.npz"


def write_csv(X, folder):
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    return "rows.csv"


def write_parquet(X, folder):
    columns = dict(zip("abc", X.T, strict=True))
    parquet.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=300)
    return "rows.parquet"


class TestUsers(SourceContract):
    def make_source(self, X, folder):
        return InMemory(X)


class TestFiles(SourceContract):
    @pytest.fixture(
        params=[write_npy, write_npz, write_csv, write_parquet],
        ids=lambda function: function.__name__,
        autouse=True,
    )
    def write(self, request):
        self.write = request.param

    def make_source(self, X, folder):
        return open_rows(folder / self.write(X, folder))
