"""Some of the features, perhaps rescaled, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.rows import Block
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction.base import Product, Reducer


@dataclass(frozen=True)
class Selection:
    """Multiplication by ``ΩS``: chosen features, each times its scale.

    Attributes
    ----------
    features : ndarray of shape (r,)
        Column numbers in ascending order.
    scale : ndarray of shape (r,)
    """

    features: Array
    scale: Array
    keeps_sparse = True

    @property
    def width(self) -> int:
        return len(self.features)

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        scale = self.scale.astype(dtype)

        def choose(block: Block, out: Array | None = None) -> Block:
            if sparse.issparse(block):
                chosen = block[:, self.features].astype(dtype)
                chosen.data *= scale[chosen.indices]
                return chosen
            if out is None:
                out = np.empty((len(block), self.width), dtype=dtype)
            if block.dtype == dtype:
                # Modes other than "raise" need no scratch array for `out`.
                np.take(block, self.features, axis=1, out=out, mode="clip")
            else:
                out[...] = block[:, self.features]
            out *= scale
            return out

        return choose


class FeatureSelector(OneToOneFeatureMixin, Reducer):
    """Base of the reducers that choose among the features."""

    _sketch: Selection

    def get_support(self, indices: bool = False) -> Array:
        """Return which features are chosen.

        Parameters
        ----------
        indices : bool, default=False
            Return column numbers instead of a mask.

        Returns
        -------
        support : ndarray
            A mask of shape (d,), or numbers of shape (n_components_,).
        """
        check_is_fitted(self)
        if indices:
            return self._sketch.features.copy()
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._sketch.features] = True
        return mask

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the chosen features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features, where `fit` saw none.
        """
        names: Array = super().get_feature_names_out(input_features)
        return names[self.get_support()]
