"""A schema and tensors in a safetensors file, with a digest over both."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as bytes_from_tensors

from sketchmeans.linalg import Array
from sketchmeans.whole_file import whole_file

#: What the metadata call the format, and the version that is written.
FORMAT, VERSION = "sketchmeans-model", 1

#: Most bytes of a header, as in the safetensors library.
_MOST_HEADER = 100_000_000

_METADATA = {"format", "version", "schema", "sha256"}

#: NumPy's names of the types that tensors may have, and those of the file.
_TYPES = {
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "bool": "BOOL",
}

Tensors = dict[str, Array]


def storable_type(dtype: np.dtype[Any]) -> bool:
    """Say whether a file can hold arrays of this type."""
    return dtype.name in _TYPES


def digest(version: str, schema: str, tensors: Tensors) -> str:
    """Return the SHA-256 over everything that a model is made of."""
    total = hashlib.sha256(f"{version}\n{schema}\n".encode())
    for name in sorted(tensors):
        array = tensors[name]
        shape = ",".join(str(size) for size in array.shape)
        total.update(f"{name}:{_TYPES[array.dtype.name]}:{shape}\n".encode())
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def write_model(path: str | os.PathLike[str], schema: str, tensors: Tensors) -> None:
    """Write a file, whole or not at all."""
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "schema": schema,
        "sha256": digest(str(VERSION), schema, tensors),
    }
    data = bytes_from_tensors(tensors, metadata)
    start = 8 + int.from_bytes(data[:8], "little")
    # The library writes the names in any order; the same model is to give the same
    # file.  Spaces keep the tensors aligned.
    header = json.dumps(json.loads(data[8:start]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _MOST_HEADER:
        raise ValueError(
            f"its names and parameters take more than {_MOST_HEADER:,} bytes"
        )
    with whole_file(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        file.write(memoryview(data)[start:])


def read_model(path: str | os.PathLike[str]) -> tuple[str, Tensors]:
    """Return the schema and the tensors of a file that is intact.

    The header is looked at before anything else is read: a file of another kind may
    be larger than memory.
    """
    with Path(path).open("rb") as file:
        metadata = _checked_metadata(_read_header(file))
        file.seek(0)
        data = file.read()
    schema = metadata["schema"]
    tensors = _unpacked_tensors(data)
    if digest(metadata["version"], schema, tensors) != metadata["sha256"]:
        raise ValueError("its content does not fit its SHA-256: the file is damaged")
    return schema, tensors


def parsed_json(text: str) -> Any:
    """Return what JSON says, if it is strict and no name stands twice."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _read_header(file: Any) -> dict[str, Any]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or length > min(size - 8, _MOST_HEADER):
        raise ValueError("it is no safetensors file, or it is cut off")
    header = parsed_json(file.read(length).decode())
    if not isinstance(header, dict):
        raise ValueError("its header should be a JSON object")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict) or entry.get("dtype") not in _TYPES.values():
            raise ValueError(f"its tensor {name!r} should have a known type")
    return header


def _checked_metadata(header: dict[str, Any]) -> dict[str, str]:
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ValueError("it is a safetensors file, but no model of sketchmeans")
    version = metadata.get("version")
    # A plain number: `int` would also take "+1", " 1" and "1_0".
    if not isinstance(version, str) or not version.isascii() or not version.isdigit():
        raise ValueError(f"its version {version!r} should be a number")
    if len(version) > 9 or int(version) > VERSION:
        raise ValueError(
            f"it was written by a newer sketchmeans, in format {version[:9]}; this one "
            f"reads formats up to {VERSION}. Upgrade sketchmeans"
        )
    if int(version) < 1:
        raise ValueError(f"its version {version} should be at least 1")
    if set(metadata) != _METADATA:
        raise ValueError(f"its metadata should have the keys {sorted(_METADATA)}")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata should be strings")
    return metadata


def _unpacked_tensors(data: bytes) -> Tensors:
    """Return the tensors in memory of NumPy, aligned and writable."""
    try:
        # Checks that shapes, types and places fit one another and the file.
        views = tensors_from_bytes(data)
    except SafetensorError as error:
        raise ValueError(f"it is damaged or cut off ({error})") from error
    return {name: np.array(views.pop(name)) for name in list(views)}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in its JSON")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
