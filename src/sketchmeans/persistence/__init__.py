"""Safe model files: small, checked, and without code.

``docs/model-files.md`` describes the format.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.table import TableClusterer
from sketchmeans.numerics.parameters import warn_user
from sketchmeans.numerics.tensor_file import parse_json, read_tensors, write_tensors
from sketchmeans.persistence.history import format_version, parse_version
from sketchmeans.persistence.registry import SPECS
from sketchmeans.persistence.values import Decoder, Encoder

__all__ = ["ModelFileError", "load", "save"]

#: What the metadata call the format.
KIND = "sketchmeans-model"


class ModelFileError(ValueError):
    """A file that is not a valid model, or a model that cannot go to a file.

    Costs nothing: a damaged file is left at the first thing that is wrong.

    See Also
    --------
    load, save : Raise it.

    Examples
    --------
    >>> from sketchmeans import KernelKMeans, ModelFileError, save
    >>> try:
    ...     save(KernelKMeans(1, kernel=lambda x, z: x @ z).fit([[1.0]]), "m.skm")
    ... except ModelFileError as error:
    ...     print("kernel" in str(error))
    True
    """


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file holds parameters and arrays, and no code: a service can load it from a
    source that it does not trust.  It has what `predict`, `transform`, `cost` and
    `partial_fit` need, and not ``labels_``.  Landmarks and exemplars are rows of the
    training data; a `KernelKMeans` needs all rows, and a warning states the size.  A
    `random_state` that is a Generator or RandomState becomes None, with a warning.

    The file is written completely or not at all, and replaces one of that name.

    Costs a copy of the arrays in memory and on disk: m·d and m·k numbers, n·d of a
    `KernelKMeans`.

    Parameters
    ----------
    model : fitted estimator or transformer of this library, or a `Pipeline`
        A pipeline of scikit-learn ends in a clusterer of this library; before that it
        may have StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer,
        SimpleImputer, PCA, TruncatedSVD, `Nystrom` and the reducers of this library.
        A `TableClusterer` may also hold scikit-learn's KMeans.
    path : str or PathLike
        ``.skm`` by custom.

    Raises
    ------
    ModelFileError
        If the model has a part that is code: a callable, or an object of a class of
        your own; or a pipeline has another step.

    See Also
    --------
    load : The model that a file holds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import NystromKMeans, save
    >>> with TemporaryDirectory() as folder:
    ...     save(NystromKMeans(2).fit([[0.0], [9.0]]), f"{folder}/m.skm")
    ...     print(Path(f"{folder}/m.skm").stat().st_size < 5_000)
    True
    """
    check_is_fitted(model)
    encoder = Encoder()
    try:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        for holder in (model, last):  # before what they hold is checked piece by piece
            if isinstance(holder, Pipeline | TableClusterer):
                SPECS[type(holder).__name__].check_params(holder, "")
        node = encoder.encode_model(model)
        Decoder(encoder.tensors).decode_model(node)  # so that it can be loaded
        schema = json.dumps(
            {"written_by": f"sketchmeans {version('sketchmeans')}", "model": node},
            allow_nan=False,
            separators=(",", ":"),
        )
        write_tensors(path, KIND, format_version(), schema, encoder.tensors)
    except ValueError as error:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved to {os.fspath(path)!r}: {error}."
        ) from error
    for warning in encoder.warnings:
        warn_user(warning)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds.

    No code from the file runs: it names classes of this library, from a fixed table,
    and everything in it is checked: names, shapes, types, that numbers are finite, and
    that the parts fit one another.  `predict`, `transform` and `cost` give the same
    bits as before `save`.

    Files of earlier versions are read, too: a parameter that they do not have takes its
    default.  A file of a later version is read if everything in it is known here.

    Costs one pass over the file, and its size in memory.

    Parameters
    ----------
    path : str or PathLike

    Returns
    -------
    model : estimator or transformer
        Without ``labels_``.

    Raises
    ------
    ModelFileError
        If the file is not a model, damaged, inconsistent, or holds what only a newer
        version knows.

    See Also
    --------
    save : Writes the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import SketchedKMeans, load, save
    >>> model = SketchedKMeans(2, random_state=0).fit([[0.0], [1.0], [9.0]])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/m.skm")
    ...     print(load(f"{folder}/m.skm").predict([[8.0]]) == model.labels_[2])
    [ True]
    """
    try:
        if not Path(path).is_file() and Path(path).exists():
            raise ValueError("it should be a file")
        file = read_tensors(path, KIND, parse_version)
        root = parse_json(file.text)
        if not isinstance(root, dict) or set(root) != {"written_by", "model"}:
            raise ValueError("its schema should have the keys 'written_by', 'model'")
        decoder = Decoder(file.tensors, parse_version(file.version))
        return decoder.decode_model(root["model"])
    except (ArithmeticError, LookupError, RecursionError) as error:
        raise _unloadable(path, repr(error)) from error
    except (TypeError, ValueError) as error:
        raise _unloadable(path, str(error)) from error


def _unloadable(path: str | os.PathLike[str], reason: str) -> ModelFileError:
    if len(reason) > 500:
        reason = f"{reason[:500]}..."
    return ModelFileError(
        f"{os.fspath(path)!r} cannot be loaded: {reason.rstrip('.')}."
    )
