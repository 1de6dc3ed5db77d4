"""Makers of labelled rows: rings, moons, spirals, waves, blobs and mixtures of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

Array = npt.NDArray[Any]
Labelled = tuple[Array, Array]
Make = Callable[..., Labelled]


def _join(parts: list[Array]) -> Labelled:
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [*map(len, parts)])


def rings(
    rng: np.random.Generator,
    n: int = 1000,
    radii: tuple[float, ...] = (0.5, 1.0),
    noise: float = 0.05,
    shares: tuple[float, ...] = (),
) -> Labelled:
    """Return circles about one centre; `shares` are the parts of the rows in each."""
    shares = shares or (1.0 / len(radii),) * len(radii)
    parts = []
    for radius, share in zip(radii, shares, strict=True):
        angle = rng.uniform(0.0, 2.0 * np.pi, round(n * share))
        parts.append(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    X, y = _join(parts)
    return X + noise * rng.normal(size=X.shape), y


def moons(
    rng: np.random.Generator,
    n: int = 1000,
    noise: float = 0.1,
    share: float = 0.5,
    d: int = 2,
) -> Labelled:
    """Return two half circles; `d` columns, of which all but two are noise."""
    sizes = round(n * share), n - round(n * share)
    X, y = datasets.make_moons(sizes, random_state=int(rng.integers(2**31)))
    X = np.concatenate([X, np.zeros((n, d - 2))], axis=1)
    return X + noise * rng.normal(size=X.shape), y


def spirals(
    rng: np.random.Generator,
    n: int = 1000,
    arms: int = 2,
    turns: float = 1.5,
    noise: float = 0.03,
) -> Labelled:
    """Return arms that wind about the origin."""
    parts = []
    for arm in range(arms):
        t = np.sqrt(rng.uniform(0.05, 1.0, n // arms))
        angle = 2.0 * np.pi * (turns * t + arm / arms)
        parts.append(t[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    X, y = _join(parts)
    return X + noise * rng.normal(size=X.shape), y


def waves(
    rng: np.random.Generator, n: int = 900, count: int = 3, noise: float = 0.08
) -> Labelled:
    """Return sine curves, one above the other."""
    parts = []
    for number in range(count):
        x = rng.uniform(0.0, 6.0, n // count)
        parts.append(np.stack([x, np.sin(2.0 * x) + 0.9 * number], axis=1))
    X, y = _join(parts)
    return X + noise * rng.normal(size=X.shape), y


def blobs(
    rng: np.random.Generator,
    n: int = 1000,
    k: int = 5,
    d: int = 2,
    spread: float = 1.0,
    uneven: float = 1.0,
    densities: float = 1.0,
    stretch: float = 1.0,
) -> Labelled:
    """Return Gaussian groups at least six of their spreads apart if `spread` is 1.

    The largest group has `uneven` times the rows of the smallest one, the widest is
    `densities` times as wide as the narrowest; each is `stretch` times as long as wide.
    """
    sizes = np.geomspace(1.0, uneven, k)
    widths = rng.permutation(np.geomspace(1.0 / densities, 1.0, k))
    centers: list[Array] = []
    while len(centers) < k:
        one = rng.uniform(-1.0, 1.0, d) * 6.0 * max(k ** (1.0 / d), 2.0) / np.sqrt(d)
        if all(np.linalg.norm(one - other) > 6.0 for other in centers):
            centers.append(one)
        elif rng.random() < 0.002:
            centers.clear()
    parts = []
    for size, width, center in zip(sizes, widths, centers, strict=True):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        scales = np.ones(d)
        scales[0], scales[1:] = np.sqrt(stretch), 1.0 / np.sqrt(stretch)
        noise = rng.normal(size=(max(round(n * size / sizes.sum()), 10), d))
        parts.append(center + spread * width * (noise * scales) @ axes)
    return _join(parts)


def stripes(
    rng: np.random.Generator, n: int = 900, k: int = 3, noise: float = 0.25
) -> Labelled:
    """Return long parallel Gaussian groups, as in scikit-learn's comparison."""
    turn = np.array([[0.6, -0.6], [-0.4, 0.8]])
    parts = [
        (rng.normal(size=(n // k, 2)) * [2.0, noise] + [0.0, 1.8 * j]) @ turn
        for j in range(k)
    ]
    return _join(parts)


def target(rng: np.random.Generator, n: int = 900, noise: float = 0.06) -> Labelled:
    """Return a disc in a ring, and two blobs in corners."""
    X, _ = rings(rng, n // 2, (1.0,), noise)
    parts = [0.3 * rng.normal(size=(n // 4, 2)), 2.0 * X]
    parts += [[s, s] + 0.15 * rng.normal(size=(n // 8, 2)) for s in (-2.3, 2.3)]
    return _join([np.asarray(part) for part in parts])


def face(rng: np.random.Generator, n: int = 900, noise: float = 0.04) -> Labelled:
    """Return two eyes, a smile and the outline of a face."""
    outline, _ = rings(rng, n // 2, (1.0,), noise)
    angle = rng.uniform(1.15 * np.pi, 1.85 * np.pi, n // 4)
    smile = 0.55 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    eyes = [[s, 0.3] + 0.07 * rng.normal(size=(n // 8, 2)) for s in (-0.35, 0.35)]
    smile = smile + noise * rng.normal(size=smile.shape)
    return _join([outline, smile, *map(np.asarray, eyes)])


def bridge(
    rng: np.random.Generator, n: int = 800, links: int = 15, gap: float = 6.0
) -> Labelled:
    """Return two blobs with a thin bridge of rows between them."""
    left = rng.normal(size=(n // 2, 2))
    right = rng.normal(size=(n // 2, 2)) + np.array([gap, 0.0])
    x = rng.uniform(1.0, gap - 1.0, links)
    chain = np.stack([x, 0.1 * rng.normal(size=links)], axis=1)
    nearer = x > gap / 2.0
    return _join(
        [
            np.concatenate([left, chain[~nearer]]),
            np.concatenate([right, chain[nearer]]),
        ]
    )


def linked(rng: np.random.Generator, n: int = 1000, noise: float = 0.06) -> Labelled:
    """Return two rings in space, one through the other."""
    (flat, _), (high, _) = (rings(rng, n // 2, (1.0,), 0.0) for _ in range(2))
    zero = np.zeros((n // 2, 1))
    X, y = _join(
        [
            np.hstack([flat, zero]),
            np.hstack([high[:, :1] + 1.0, zero, high[:, 1:]]),
        ]
    )
    return X + noise * rng.normal(size=X.shape), y


def shells(
    rng: np.random.Generator, n: int = 1200, d: int = 3, noise: float = 0.08
) -> Labelled:
    """Return a ball in a sphere."""
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radius = np.where(np.arange(n) < n // 3, 0.3, 1.2)
    X = directions * radius[:, None]
    return X + noise * rng.normal(size=X.shape), (radius > 1.0).astype(int)


def mixed(rng: np.random.Generator, n: int = 1000, noise: float = 0.07) -> Labelled:
    """Return two moons, a ring about a blob, and a blob."""
    crescents, y = moons(rng, n // 2, noise)
    circle = rings(rng, n // 4, (0.6,), 0.5 * noise)[0] + np.array([3.5, 0.2])
    blob = 0.1 * rng.normal(size=(n // 8, 2)) + [3.5, 0.2]
    lone = 0.2 * rng.normal(size=(n // 8, 2)) + [0.5, 2.2]
    parts = [crescents[y == 0], crescents[y == 1], circle, blob, lone]
    return _join(parts)


def with_noise(
    rng: np.random.Generator, make: Make, share: float = 0.05, **given: Any
) -> Labelled:
    """Return a problem with rows spread over its box, each of the nearest group."""
    X, y = make(rng, **given)
    low, high = X.min(axis=0), X.max(axis=0)
    extra = rng.uniform(low, high, size=(round(share * len(X)), X.shape[1]))
    gaps = np.square(extra[:, None] - X).sum(axis=2)
    return np.concatenate([X, extra]), np.concatenate([y, y[gaps.argmin(axis=1)]])


def curves(
    rng: np.random.Generator, n: int = 1000, d: int = 10, noise: float = 0.05
) -> Labelled:
    """Return three closed curves in d dimensions."""
    parts = []
    for _ in range(3):
        angle = rng.uniform(0.0, 2.0 * np.pi, n // 3)
        harmonics = np.stack(
            [np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)], axis=1
        )
        parts.append(harmonics @ rng.normal(size=(4, d)) / 2.0)
    X, y = _join(parts)
    return X + noise * rng.normal(size=X.shape), y


def table(rng: np.random.Generator, load: Callable[..., Any]) -> Labelled:
    """Return a real table, its columns on one scale."""
    X, y = load(return_X_y=True)
    if load is not datasets.load_digits:
        X = StandardScaler().fit_transform(X)
    return X, y
