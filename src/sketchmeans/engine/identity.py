"""What makes a fit this one: its parameters and its rows, by value.

Two fits are the same if every parameter that has a part in the result has the same
value and every row and weight has the same bits.  Nothing rests on `repr`, which leaves
out the middle of arrays and the values of sparse matrices.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.data.sources import Source
from sketchmeans.numerics.linalg import Array

#: Parameters that change no result.
_WITHOUT_EFFECT = frozenset({"n_jobs", "verbose", "max_memory"})
#: Longest text of a parameter.
_LONGEST = 200
#: Rows of a source that are asked for the file that they are in.
_LOCATED_ROWS = 1024


def identity_of(estimator: Any, rows: Rows) -> dict[str, str]:
    """Return what makes a fit this one, by name, in texts that differ if it does.

    A pass over all rows.

    Raises
    ------
    ValueError
        If a parameter is code, or an object whose values cannot be told.
    """
    params = {
        name: _shortened(described(value, name))
        for name, value in estimator.get_params(deep=False).items()
        if name not in _WITHOUT_EFFECT
    }
    return {
        "the version of sketchmeans": version("sketchmeans"),
        "estimator": type(estimator).__name__,
        **params,
        "X.shape": str((len(rows), rows.n_features)),
        "X.dtype": np.dtype(rows.X.dtype).name,
        "sample_weight": described(rows.weights, "sample_weight"),
        "the rows' digest": rows_digest(rows),
    }


def rows_digest(rows: Rows) -> str:
    """Return a digest of all rows, whatever they are stored in, and how many threads.

    Rows in an array and in a file have the same digest; dense and CSR rows do not, as
    a fit works on them in other ways.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.numerics.parallel import Workers
    >>> from sketchmeans.data.rows import as_rows
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> with Workers(1) as one, Workers(2) as two:
    ...     same = rows_digest(as_rows(X, one)) == rows_digest(as_rows(X, two))
    >>> same
    True
    """
    total = hashlib.sha256()
    total.update(b"csr" if rows.is_sparse else b"dense")
    for digest in rows.map(_block_digest, block_height(rows.n_features, 0)):
        total.update(digest)
    return total.hexdigest()


def _block_digest(block: Block) -> bytes:
    # Processors have instructions for SHA-256, which makes it three times as fast as
    # the others of the standard library.
    found = hashlib.sha256()
    if sparse.issparse(block):
        for numbers in (block.indptr - block.indptr[0], block.indices):
            _update(found, numbers.astype(np.int64))
        _update(found, block.data)
    else:
        _update(found, block)
    return found.digest()


def _update(digest: Any, array: Array) -> None:
    """Add the values of an array to a digest: in C order and the machine's bytes."""
    native = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    digest.update(native.reshape(-1).view(np.uint8).data)


# --- parameters -----------------------------------------------------------------------


def described(value: Any, where: str) -> str:
    """Return a text that differs for other values of a parameter.

    Examples
    --------
    >>> described((1, [0.5, "a"]), "init")
    "(1, [0.5, 'a'])"
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple):
        items = ", ".join(described(v, f"{where}[{i}]") for i, v in enumerate(value))
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    if isinstance(value, Mapping):
        parts = (
            f"{described(name, where)}: {described(item, f'{where}[{name!r}]')}"
            for name, item in value.items()
        )
        return f"{{{', '.join(sorted(parts))}}}"
    if sparse.issparse(value):
        return _sparse_text(value)
    if hasattr(value, "__array__"):
        return _array_text(np.asarray(value), where)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _object_text(value, where)
    raise ValueError(f"{where}={value!r} {_refusal(value)}")


def _shortened(text: str) -> str:
    """Return a text of a line or two; the digest stands for the rest of a long one."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[:_LONGEST]}... ({len(text):,} characters with digest {digest})"


def _refusal(value: Any) -> str:
    rest = "the fit that resumes must have the same. Fit without a checkpoint."
    if callable(value):
        return (
            f"is code, which a checkpoint cannot compare: {rest[:-1]}, or use one of "
            "the library's own objects in the place of a function."
        )
    return (
        f"is of class {type(value).__name__}, whose values a checkpoint cannot "
        f"compare: {rest}"
    )


def _object_text(value: Any, where: str) -> str:
    """Return an estimator, kernel or selector by its class and its parameters."""
    kind = type(value)
    ours = kind.__module__.partition(".")[0] == "sketchmeans"
    name = kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    params = ", ".join(
        f"{key}={described(item, f'{where}.{key}')}"
        for key, item in sorted(value.get_params(deep=False).items())
        if key not in _WITHOUT_EFFECT
    )
    return f"{name}({params})"


def _array_text(array: Array, where: str) -> str:
    if array.dtype.kind not in "biufcSU":
        return f"an array of {described(array.tolist(), where)}"
    digest = hashlib.sha256()
    _update(digest, array)
    return (
        f"an array of shape {array.shape}, type {array.dtype.name} and digest "
        f"{digest.hexdigest()}"
    )


def _sparse_text(value: Any) -> str:
    rows = sparse.csr_array(value, copy=True)
    rows.sum_duplicates()
    return (
        f"a sparse matrix of shape {rows.shape}, type {rows.dtype.name} and digest "
        f"{_block_digest(rows).hex()}"
    )


# --- files ----------------------------------------------------------------------------

#: Size, and the time of the last change in nanoseconds.
Stamp = tuple[int, int]


def file_stamps(rows: Rows) -> dict[str, Stamp]:
    """Return the size and the last change of the files that rows are read from.

    None for rows in memory.  Of very many files some are looked at.
    """
    source: Any = rows.X
    if not isinstance(source, Source):
        return {}
    numbers = np.linspace(0, len(source) - 1, min(len(source), _LOCATED_ROWS))
    paths = {source.locate(int(number))[0] for number in numbers}
    return {path: stamp for path in sorted(paths) if (stamp := _stamp(path))}


def changed_files(before: Mapping[str, Stamp]) -> str:
    """Return in words which files have changed; an empty text if none has."""
    found = []
    for path, stamp in before.items():
        now = _stamp(path)
        if now != tuple(stamp):
            is_now = "is gone" if now is None else f"has {_stamp_text(now)}"
            found.append(f"{path} had {_stamp_text(stamp)}, and {is_now}")
    return "; ".join(found)


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # what errors call a source may be no file
        return None
    return found.st_size, found.st_mtime_ns


def _stamp_text(stamp: Stamp) -> str:
    size, nanoseconds = stamp
    when = datetime.fromtimestamp(nanoseconds // 10**9, UTC)
    return f"{size:,} bytes of {when:%Y-%m-%d %H:%M:%S} UTC"
