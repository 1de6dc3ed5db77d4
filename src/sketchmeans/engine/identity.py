"""What makes two fits the same: parameters and rows, compared by value.

Two fits are the same if every parameter that affects the result has the same value and
every row and weight has the same bits.  `repr` would not do: it leaves out the middle
of arrays and the values of sparse matrices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.base import is_csr
from sketchmeans.data.sources.files import FileState
from sketchmeans.numerics.tensor_file import array_bytes

#: Parameters that do not change the result.
_WITHOUT_EFFECT = frozenset({"n_jobs", "verbose", "max_memory"})
#: Longest text of a parameter.
_MAX_TEXT = 200
#: Rows of a source whose file is looked up.
_LOCATED_ROWS = 1024


def identify_fit(estimator: Any, rows: Rows) -> dict[str, str]:
    """Return texts by name that differ between different fits; one pass over the rows.

    Raises
    ------
    ValueError
        If a parameter is code, or an object whose values cannot be compared.
    """
    params = {
        name: _shorten(describe(value, name))
        for name, value in estimator.get_params(deep=False).items()
        if name not in _WITHOUT_EFFECT
    }
    return {
        "the version of sketchmeans": version("sketchmeans"),
        "estimator": type(estimator).__name__,
        **params,
        "X.shape": str((len(rows), rows.n_features)),
        "X.dtype": np.dtype(rows.X.dtype).name,
        "sample_weight": describe(rows.weights, "sample_weight"),
        "the rows' digest": digest_rows(rows),
    }


def digest_rows(rows: Rows) -> str:
    """Return a digest of all rows, the same for arrays and files and any threads.

    Dense and CSR rows have different digests, as a fit treats them differently.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.numerics.parallel import Workers
    >>> from sketchmeans.data.rows import as_rows
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> with Workers(1) as one, Workers(2) as two:
    ...     same = digest_rows(as_rows(X, one)) == digest_rows(as_rows(X, two))
    >>> same
    True
    """
    total = hashlib.sha256(b"csr" if rows.is_sparse else b"dense")
    for digest in rows.map(_digest_block, block_height(rows.n_features, 0)):
        total.update(digest)
    return total.hexdigest()


def _digest_block(block: Block) -> bytes:
    # Processors have instructions for SHA-256, which makes it three times as fast as
    # the other digests of the standard library.
    total = hashlib.sha256()
    parts = [block]
    if is_csr(block):
        numbers = (block.indptr - block.indptr[0], block.indices)
        parts = [*(part.astype(np.int64) for part in numbers), block.data]
    for part in parts:
        total.update(array_bytes(part))
    return total.digest()


def describe(value: Any, where: str) -> str:
    """Return a text that differs for different values of a parameter.

    Examples
    --------
    >>> describe((1, [0.5, "a"]), "init")
    "(1, [0.5, 'a'])"
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple):
        items = ", ".join(describe(v, f"{where}[{i}]") for i, v in enumerate(value))
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    if isinstance(value, Mapping):
        parts = (
            f"{describe(name, where)}: {describe(item, f'{where}[{name!r}]')}"
            for name, item in value.items()
        )
        return f"{{{', '.join(sorted(parts))}}}"
    if sparse.issparse(value):
        rows = sparse.csr_array(value, copy=True)
        rows.sum_duplicates()
        return _describe_array("a sparse matrix", rows)
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind not in "biufcSU":
            return f"an array of {describe(array.tolist(), where)}"
        return _describe_array("an array", array)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _describe_object(value, where)
    what = (
        "is code, which"
        if callable(value)
        else f"is of class {type(value).__name__}, whose values"
    )
    raise ValueError(
        f"{where}={value!r} {what} a checkpoint cannot compare: the fit that resumes "
        "must have the same. Fit without a checkpoint, or use one of the library's own "
        "objects."
    )


def _describe_array(kind: str, array: Any) -> str:
    return (
        f"{kind} of shape {array.shape}, type {array.dtype.name} and digest "
        f"{_digest_block(array).hex()}"
    )


def _describe_object(value: Any, where: str) -> str:
    """Return an estimator, kernel or selector by its class and its parameters."""
    cls = type(value)
    ours = cls.__module__.partition(".")[0] == "sketchmeans"
    name = cls.__name__ if ours else f"{cls.__module__}.{cls.__qualname__}"
    params = ", ".join(
        f"{key}={describe(item, f'{where}.{key}')}"
        for key, item in sorted(value.get_params(deep=False).items())
        if key not in _WITHOUT_EFFECT
    )
    return f"{name}({params})"


def _shorten(text: str) -> str:
    """Return a text of a line or two; a digest stands for the rest of a long one."""
    if len(text) <= _MAX_TEXT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:_MAX_TEXT]}... ({len(text):,} characters with digest {digest})"


def stamp_files(rows: Rows) -> list[FileState]:
    """Return the states of the files that rows are read from; of very many, of some."""
    source: Any = rows.X
    if not isinstance(source, Source):
        return []
    numbers = np.linspace(0, len(source) - 1, min(len(source), _LOCATED_ROWS))
    paths = {source.locate(int(number))[0] for number in numbers}
    return [state for path in sorted(paths) if (state := _state(path))]


def find_changed(states: Iterable[FileState]) -> list[str]:
    """Return the files that are no longer in this state."""
    return [state.path for state in states if _state(state.path) != state]


def _state(path: str) -> FileState | None:
    try:
        return FileState.of(path)
    except (OSError, ValueError):  # the name of a source need not be that of a file
        return None
