"""Digits in place of infinite MNIST, by its own recipe: shifts and small tangents.

Infinite MNIST (Loosli, Canu & Bottou) moves a digit by −1, 0 or 1 pixel each way and
adds its derivatives along a smooth random field of displacements; there is no rotation.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.data import Array

#: Fields to draw from, how smooth they are, and their root mean square, in pixels.
_FIELDS, _SMOOTHNESS, _STRENGTH = 500, 4.0, 0.5
_BLOCK = 20_000


def shift(X: Array, numbers: Array, rng: np.random.Generator) -> Array:
    """Return images by number, moved by −1, 0 or 1 pixel each way, as uint8.

    >>> rng = np.random.default_rng(0)
    >>> moved = shift(np.eye(3).reshape(1, 9), np.zeros(4, int), rng)
    >>> moved.shape, moved.dtype, int(moved.max())
    ((4, 9), dtype('uint8'), 255)
    """
    images = _images(X)[numbers]
    side = images.shape[1]
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    moves, result = rng.integers(3, size=(len(images), 2)), np.empty_like(images)
    for a in range(3):
        for b in range(3):
            mine = (moves == (a, b)).all(axis=1)
            result[mine] = padded[mine, a : a + side, b : b + side]
    return result.reshape(len(images), -1)


def deform(X: Array, numbers: Array, rng: np.random.Generator) -> Array:
    """Return shifted images, with their derivatives along a random field added."""
    result = shift(X, numbers, rng)
    side = round(np.sqrt(X.shape[1]))
    noise = rng.standard_normal((2, _FIELDS, side, side))
    fields = gaussian_filter(noise, (0, 0, _SMOOTHNESS, _SMOOTHNESS), mode="wrap")
    fields *= _STRENGTH / np.sqrt(np.square(fields).mean())
    for start in range(0, len(result), _BLOCK):
        block = result[start : start + _BLOCK]
        images = block.reshape(-1, side, side).astype(np.float32)
        chosen = rng.integers(_FIELDS, size=len(images))
        down, across = np.gradient(images, axis=(1, 2))
        images += fields[0, chosen] * down + fields[1, chosen] * across
        block[:] = np.clip(images, 0, 255).reshape(block.shape)
    return result


def _images(X: Array) -> Array:
    side = round(np.sqrt(X.shape[1]))
    return (X * (255.0 / X.max())).astype(np.uint8).reshape(-1, side, side)
