"""Named arrays and a text in one safetensors file, with a digest over both.

Model files and checkpoints are such files.  Sizes in the header are checked against the
size of the file before anything else is read, so that reading a damaged or forged file
takes little memory.  ``docs/model-files.md`` describes the format.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from sketchmeans.numerics.atomic_file import open_atomic
from sketchmeans.numerics.linalg import Array

Tensors = dict[str, Array]

#: Most bytes of a header, and most values in it or in the text: a few bytes of JSON can
#: take a hundred in memory.
_MAX_HEADER, _MAX_VALUES = 8 * 2**20, 400_000

#: Most axes of an array of NumPy.
_MAX_AXES = 64

_METADATA = {"format", "version", "schema", "sha256"}

#: NumPy's names of the types that tensors may have, and those of the file.
_TYPES = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64"}
_TYPES |= {f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)}
_TYPES |= {f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)}
_NAMES = {kind: name for name, kind in _TYPES.items()}


class ForeignFileError(ValueError):
    """A file of another kind."""


@dataclass(frozen=True)
class TensorFile:
    """The content of an intact file: its version, its text and its arrays."""

    version: str
    text: str
    tensors: Tensors


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Say whether a file can hold arrays of this type."""
    return dtype.name in _TYPES


def write_tensors(
    path: str | os.PathLike[str],
    kind: str,
    version: str,
    text: str,
    tensors: Mapping[str, Array],
) -> None:
    """Write a file of this kind and version, completely or not at all.

    Raises
    ------
    ValueError
        If names and text are longer than `read_tensors` accepts.
    """
    # Wide types first, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    ends = [0, *accumulate(tensors[name].nbytes for name in names)]
    metadata = {
        "format": kind,
        "version": version,
        "schema": text,
        "sha256": _digest(version, text, tensors),
    }
    entries = {
        name: {
            "dtype": _TYPES[tensors[name].dtype.name],
            "shape": list(tensors[name].shape),
            "data_offsets": ends[i : i + 2],
        }
        for i, name in enumerate(names)
    }
    header = json.dumps({"__metadata__": metadata, **entries}, sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _MAX_HEADER or _count_values(header) > _MAX_VALUES:
        raise ValueError(
            f"its names and parameters take {len(header):,} bytes of JSON and "
            f"{_count_values(header):,} values, and at most {_MAX_HEADER:,} and "
            f"{_MAX_VALUES:,} can be loaded. Give lists as arrays, and tables "
            "without names of columns"
        )
    with open_atomic(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for name in names:
            file.write(array_bytes(tensors[name]))


def read_tensors(
    path: str | os.PathLike[str], kind: str, check_version: Callable[[Any], Any]
) -> TensorFile:
    """Return the content of a file, if it is intact and of this kind.

    Raises
    ------
    ForeignFileError
        If the file is of another kind.
    ValueError
        If it is damaged, or `check_version` raises it.
    """
    with Path(path).open("rb") as file:
        header = _read_header(file)
        metadata = header.pop("__metadata__", None)
        if not isinstance(metadata, dict) or metadata.get("format") != kind:
            raise ForeignFileError(f"it is a safetensors file, but not a {kind}")
        check_version(metadata.get("version"))  # before keys that it may have changed
        if set(metadata) != _METADATA:
            raise ValueError(f"its metadata should have the keys {sorted(_METADATA)}")
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata should be strings")
        tensors = {name: _read_tensor(file, entry) for name, entry in header.items()}
    version, text = metadata["version"], metadata["schema"]
    if _digest(version, text, tensors) != metadata["sha256"]:
        raise ValueError("its content does not fit its SHA-256: the file is damaged")
    return TensorFile(version, text, tensors)


def parse_json(text: str) -> Any:
    """Return the value of strict JSON of limited size, without repeated names."""
    if _count_values(text.encode(errors="surrogatepass")) > _MAX_VALUES:
        raise ValueError(f"its JSON has more than {_MAX_VALUES:,} values")
    try:
        return json.loads(
            text, object_pairs_hook=_check_unique, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _read_header(file: IO[bytes]) -> dict[str, Any]:
    """Return the header, if its tensors follow one another to the end of the file.

    They are listed in this order.
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or length > size - 8:
        raise ForeignFileError("it is not a safetensors file, or it is cut off")
    if length > _MAX_HEADER:
        raise ValueError(
            f"its header of {length:,} bytes should have at most {_MAX_HEADER:,}"
        )
    try:
        header = parse_json(file.read(length).decode())
    except ValueError as error:
        raise ForeignFileError(str(error)) from error
    if not isinstance(header, dict):
        raise ForeignFileError("its header should be a JSON object")
    about = {"__metadata__": header.pop("__metadata__", None)}
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") not in _TYPES.values():
            raise ValueError(f"its tensor {name!r} should have a known type")
        offsets = entry.get("data_offsets")
        if not isinstance(offsets, list) or [type(o) for o in offsets] != [int, int]:
            raise ValueError(f"its tensor {name!r} should have a start and an end")
        shape = entry.get("shape")
        if not isinstance(shape, list) or not all(type(s) is int for s in shape):
            raise ValueError(f"its tensor {name!r} should have a shape")
        if len(shape) > _MAX_AXES:  # whose product may be too long to compute
            raise ValueError(f"its tensor {name!r} has {len(shape):,} axes")
    header = dict(sorted(header.items(), key=lambda item: item[1]["data_offsets"]))
    end = 0
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        wanted = prod(entry["shape"]) * np.dtype(_NAMES[entry["dtype"]]).itemsize
        if start != end or stop - start != wanted or min(entry["shape"], default=0) < 0:
            raise ValueError(
                f"its tensor {name!r} of shape {entry['shape']} takes bytes {start:,} "
                f"to {stop:,}: it is damaged"
            )
        end = stop
    if end != size - 8 - length:
        raise ValueError(
            f"its tensors take {end:,} bytes and {size - 8 - length:,} are there: it "
            "is damaged or cut off"
        )
    return header | about


def _read_tensor(file: IO[bytes], entry: dict[str, Any]) -> Array:
    """Return the tensor that comes next, read into its own memory."""
    dtype = np.dtype(_NAMES[entry["dtype"]])
    try:
        array = np.empty(entry["shape"], dtype.newbyteorder("<"))
    except (OverflowError, ValueError) as error:  # no bytes, in a shape such as 0 × 2⁷⁰
        raise ValueError(f"a tensor has the shape {entry['shape']}: {error}") from None
    content: Any = array.reshape(-1).view(np.uint8)
    if file.readinto(content) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError("it was cut off while it was read")
    return array.astype(dtype, copy=False)


def _digest(version: str, text: str, tensors: Mapping[str, Array]) -> str:
    """Return the SHA-256 over the content of a file."""
    total = hashlib.sha256(f"{version}\n{text}\n".encode())
    for name in sorted(tensors):
        array = tensors[name]
        shape = ",".join(str(size) for size in array.shape)
        total.update(f"{name}:{_TYPES[array.dtype.name]}:{shape}\n".encode())
        total.update(array_bytes(array))
    return total.hexdigest()


def array_bytes(array: Array) -> memoryview:
    """Return the values of an array in C order and little-endian, as in the file."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return little.reshape(-1).view(np.uint8).data


def _count_values(text: bytes) -> int:
    """Return at least the number of values in JSON: each follows such a sign."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice in its JSON")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
