"""B14's Lemmas 6, 8 and 10: what sketches do to orthonormal columns, measured."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data import Array
from experiments import datasets
from experiments.evidence import Evidence, of_counts
from experiments.grid import Context
from experiments.store import Cell, Row

#: Columns of a sample, its features for Lemma 6 (4k ln(2k/δ) = 49 < r ≤ 64, as that
#: lemma asks), and its ε for Lemma 8, whose draws are with replacement.
_DELTA, _SAMPLED, _FEATURES, _FINE = 0.1, 3, 60, 0.1
#: Columns and ε of a projection.
_PROJECTED, _COARSE = 2, 0.33
#: ... and its features, from the 64 of the digits.
_WIDE = round(3330 * _PROJECTED / _COARSE**2)
#: How often the lemmas hold.
_LEAST = {"Lemma 6": 1.0 - _DELTA, "Lemma 8": 1.0 - 3.0 * _DELTA}


@lru_cache(maxsize=1)
def _svd(data: Path | None) -> tuple[Array, Array]:
    X = datasets.load("digits", data).X.astype(np.float64)
    _, values, Vt = np.linalg.svd(X, full_matrices=False)
    return values, Vt.T


def measure_sketches(cell: Cell, context: Context) -> list[Row]:
    """Return what one draw of each sketch does, and the bounds of the lemmas."""
    values, V = _svd(context.data)
    rng = np.random.default_rng(context.seed)
    factor = 4 * _SAMPLED * log(2 * _SAMPLED / _DELTA)
    Z = V[:, :_SAMPLED]
    few = _sampled(Z, _FEATURES, rng)
    many = _sampled(Z, ceil(factor / _FINE**2), rng)
    r = _WIDE
    R = (2.0 * rng.integers(2, size=(r, len(V))) - 1.0) / np.sqrt(r)
    projected, W = R.T @ R, V[:, :_PROJECTED]
    found = {
        "Lemma 6": (_distance_to_one(few, Z), np.sqrt(factor / _FEATURES)),
        "Lemma 8": (_loss(many, Z, values, V), 1.6 * _FINE / np.sqrt(_DELTA)),
        "Lemma 10, 1": (_distance_to_one(projected, W), _COARSE),
        "Lemma 10, 2": (_loss(projected, W, values, V), 3.0 * _COARSE),
    }
    return [
        {"method": name, "value": value, "bound": float(bound)}
        for name, (value, bound) in found.items()
    ]


def _sampled(Z: Array, r: int, rng: np.random.Generator) -> Array:
    """Return ΩSSᵀΩᵀ of r draws with replacement by the rows of Z (Definition 5)."""
    chances = np.square(Z).sum(axis=1) / Z.shape[1]
    counts = np.bincount(rng.choice(len(Z), r, p=chances), minlength=len(Z))
    weights = np.divide(counts, r * chances, where=counts > 0, out=np.zeros(len(Z)))
    return np.diag(weights)


def _distance_to_one(G: Array, Z: Array) -> float:
    """Return how far the squared singular values of ZᵀR are from 1; G is RRᵀ."""
    return float(np.abs(np.linalg.eigvalsh(Z.T @ G @ Z) - 1.0).max())


def _loss(G: Array, Z: Array, values: Array, V: Array) -> float:
    """Return ``‖AZZᵀ − AR(ZᵀR)⁺Zᵀ‖ / ‖A − AZZᵀ‖``; G is RRᵀ, A has the SVD given.

    Rotations of the rows change no norm, so that ΣVᵀ stands for A.
    """
    A = values[:, None] * V.T
    compressed = A @ G @ Z @ np.linalg.inv(Z.T @ G @ Z)
    left = np.linalg.norm(A - A @ Z @ Z.T)
    return float(np.linalg.norm(A @ Z - compressed) / left)


def sketch_claims(table: pd.DataFrame) -> list[Evidence]:
    """Return how often the singular values (B6) and the losses (B7) stay within."""
    found = []
    for claim, names in {
        "B6": ("Lemma 6", "Lemma 10, 1"),
        "B7": ("Lemma 8", "Lemma 10, 2"),
    }.items():
        mine = table[table.method.isin(names)] if len(table) else table
        parts = []
        for name in names if len(mine) else ():
            kept = mine[mine.method == name]
            within = int((kept.value <= kept.bound).sum())
            least = _LEAST.get(name, 0.97)
            parts.append(of_counts(f"{name}: within", within, len(kept), least))
        share = (mine.value / mine.bound).max() if len(mine) else np.nan
        note = f"largest share of the bound {share:.1%}; Lemma 10's "
        note += f"projections are of 64 features to {_WIDE:,}"
        found.append(Evidence(claim, parts, note))
    return found
