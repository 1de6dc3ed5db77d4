"""A schema and tensors in a safetensors file, with a digest over both."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as bytes_from_tensors

from sketchmeans.numerics.atomic_file import whole_file
from sketchmeans.numerics.linalg import Array
from sketchmeans.persistence.history import VERSION, Version, version_text

#: What the metadata call the format.
FORMAT = "sketchmeans-model"

#: Most bytes of a header, and most values in it or in the schema: a few bytes of JSON
#: can take a hundred in memory.
_MOST_HEADER, _MOST_VALUES = 8 * 2**20, 400_000

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

#: A version: "1" of the first release is 1.0.
_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})(?:\.(0|[1-9][0-9]{0,8}))?")


class ModelFile(NamedTuple):
    """The content of a file that is intact."""

    version: Version
    schema: str
    tensors: Tensors


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
    version = version_text(VERSION)
    metadata = {
        "format": FORMAT,
        "version": version,
        "schema": schema,
        "sha256": digest(version, schema, tensors),
    }
    data = bytes_from_tensors(tensors, metadata)
    start = 8 + int.from_bytes(data[:8], "little")
    # The library writes the names in any order; the same model is to give the same
    # file.  Spaces keep the tensors aligned.
    header = json.dumps(json.loads(data[8:start]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _MOST_HEADER or _n_values(header) > _MOST_VALUES:
        raise ValueError(
            f"its names and parameters take {len(header):,} bytes of JSON and "
            f"{_n_values(header):,} values, and at most {_MOST_HEADER:,} and "
            f"{_MOST_VALUES:,} can be loaded. Give lists as arrays, and tables "
            "without names of columns"
        )
    with whole_file(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        file.write(memoryview(data)[start:])


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Return the version, the schema and the tensors of a file that is intact.

    The header is looked at before anything else is read: a file of another kind may
    be larger than memory.
    """
    with Path(path).open("rb") as file:
        metadata = _checked_metadata(_read_header(file))
        version = _checked_version(metadata["version"])
        file.seek(0)
        data = file.read()
    schema = metadata["schema"]
    tensors = _unpacked_tensors(data)
    if digest(metadata["version"], schema, tensors) != metadata["sha256"]:
        raise ValueError("its content does not fit its SHA-256: the file is damaged")
    return ModelFile(version, schema, tensors)


def parsed_json(text: str) -> Any:
    """Return what JSON says, if it is strict and short and no name stands twice."""
    if _n_values(text.encode(errors="surrogatepass")) > _MOST_VALUES:
        raise ValueError(f"its JSON has more than {_MOST_VALUES:,} values")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _n_values(text: bytes) -> int:
    """Return at least the number of values in JSON: each comes after such a sign."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _read_header(file: Any) -> dict[str, Any]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or length > size - 8:
        raise ValueError("it is no safetensors file, or it is cut off")
    if length > _MOST_HEADER:
        raise ValueError(
            f"its header of {length:,} bytes should have at most {_MOST_HEADER:,}"
        )
    header = parsed_json(file.read(length).decode())
    if not isinstance(header, dict):
        raise ValueError("its header should be a JSON object")
    end = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict) or entry.get("dtype") not in _TYPES.values():
            raise ValueError(f"its tensor {name!r} should have a known type")
        end = max(end, _end_of(name, entry))
    if end != size - 8 - length:
        raise ValueError(
            f"its tensors take {end:,} bytes and {size - 8 - length:,} are there: it "
            "is damaged or cut off"
        )
    return header


def _end_of(name: str, entry: dict[str, Any]) -> int:
    """Return where the bytes of a tensor end."""
    offsets = entry.get("data_offsets")
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or any(type(offset) is not int for offset in offsets)
    ):
        raise ValueError(f"its tensor {name!r} should have a start and an end")
    return int(offsets[1])


def _checked_metadata(header: dict[str, Any]) -> dict[str, str]:
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ValueError("it is a safetensors file, but no model of sketchmeans")
    _checked_version(metadata.get("version"))  # before keys that it may have changed
    if set(metadata) != _METADATA:
        raise ValueError(f"its metadata should have the keys {sorted(_METADATA)}")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata should be strings")
    return metadata


def _checked_version(text: Any) -> Version:
    """Return a version that this library can read."""
    found = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"its version {text!r:.40} should be two numbers, as in 1.1")
    major, minor = int(found[1]), int(found[2] or 0)
    if major > VERSION[0]:
        raise ValueError(
            f"it was written by a newer sketchmeans, in format {text}; this one "
            f"reads formats up to {version_text(VERSION)}. Upgrade sketchmeans"
        )
    if major < 1:
        raise ValueError(f"its version {text} should be at least 1")
    return major, minor


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
