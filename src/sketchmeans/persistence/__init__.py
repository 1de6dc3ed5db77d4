"""Safe model files: small, checked, and without code.

``docs/model-files.md`` describes the format.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from sklearn.utils.validation import check_is_fitted

from sketchmeans.numerics.parameters import warn_user
from sketchmeans.persistence.container import parsed_json, read_model, write_model
from sketchmeans.persistence.registry import REGISTRY
from sketchmeans.persistence.values import Packer, Unpacker

__all__ = ["ModelFileError", "load", "save"]


class ModelFileError(ValueError):
    """A file that is no valid model, or a model that cannot go to a file."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file holds parameters and arrays, and no code: a service can load it from a
    source that it does not trust.  It has what `predict`, `transform`, `cost` and
    `partial_fit` need, and not ``labels_``.  Landmarks and exemplars are rows of the
    training data as they are; a `KernelKMeans` needs all rows, and a warning tells the
    size.  A `random_state` that is a Generator or RandomState becomes None, with a
    warning.

    The file appears whole or not at all, and replaces one of that name.

    Parameters
    ----------
    model : fitted estimator or transformer of this library
    path : str or PathLike
        ``.skm`` by custom.

    Raises
    ------
    ModelFileError
        Where the model has a part that is code: a callable, or an object of a class of
        your own.

    See Also
    --------
    load : The model that a file holds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import sketchmeans
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = sketchmeans.NystromKMeans(3, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     sketchmeans.save(model, Path(folder) / "m.skm")
    ...     again = sketchmeans.load(Path(folder) / "m.skm")
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    check_is_fitted(model)
    packer = Packer(REGISTRY)
    try:
        node = packer.model(model)
        # What could not be loaded is not saved.
        Unpacker(REGISTRY, packer.tensors).model(node)
        schema = json.dumps(
            {"written_by": f"sketchmeans {version('sketchmeans')}", "model": node},
            allow_nan=False,
            separators=(",", ":"),
        )
        write_model(path, schema, packer.tensors)
    except ValueError as error:
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved to {os.fspath(path)!r}: {error}."
        ) from error
    for note in packer.notes:
        warn_user(note)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds.

    No code runs that the file brings or chooses: it names classes of this library, from
    a fixed table, and everything in it is checked, names, shapes, types, that numbers
    are finite, and that the parts fit one another.  `predict`, `transform` and `cost`
    give the same bits as before `save`.

    Files of earlier versions are read, too: a parameter that they do not have takes its
    default.  One of a later version is read if it holds nothing that is unknown here.

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
        Where the file is no model, damaged, inconsistent, or holds what only a newer
        version knows.

    See Also
    --------
    save : Writes the file, with an example.
    """
    if not Path(path).is_file() and Path(path).exists():
        raise ModelFileError(f"{os.fspath(path)!r} should be a file.")
    try:
        version, schema, tensors = read_model(path)
        root = parsed_json(schema)
        if not isinstance(root, dict) or set(root) != {"written_by", "model"}:
            raise ValueError("its schema should have the keys 'written_by', 'model'")
        return Unpacker(REGISTRY, tensors, version).model(root["model"])
    except RecursionError as error:
        raise _unloadable(path, "its JSON is nested too deeply") from error
    except (ArithmeticError, LookupError, SafetensorError) as error:
        raise _unloadable(path, repr(error)) from error
    except (TypeError, ValueError) as error:
        raise _unloadable(path, str(error)) from error


def _unloadable(path: str | os.PathLike[str], reason: str) -> ModelFileError:
    reason = reason.rstrip(".")
    if len(reason) > 500:
        reason = f"{reason[:500]}..."
    return ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {reason}.")
