"""Named arrays and a few facts in an uncompressed .npz file, with a digest over both.

NumPy can read the file.  It is read here without NumPy's loader, which takes the size
of an array from its header before it looks at the file: whatever a damaged file says,
no more memory is taken than the file is large.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from sketchmeans.numerics.atomic_file import whole_file
from sketchmeans.numerics.linalg import Array

#: The arrays that hold the facts as JSON, and the digest.
_ABOUT, _DIGEST = "about", "digest"
#: Bytes that are read at a time.
_CHUNK = 2**20
#: Most bytes of the facts, and of the list of parts, which takes twenty times as much
#: in memory.
_MOST_ABOUT = _MOST_DIRECTORY = 4 * 2**20


def write_arrays(
    path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a file, whole or not at all."""
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    content: dict[str, Any] = {_ABOUT: text, **arrays}
    content[_DIGEST] = np.frombuffer(_digest(content), np.uint8)
    with whole_file(path) as file:
        np.savez(file, **content)


def read_arrays(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the facts and the arrays of a file; no facts if it is of another kind.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    with Path(path).open("rb") as file:
        try:
            content = _content(file)
            if _ABOUT not in content or _DIGEST not in content:
                return {}, {}
            digest = content.pop(_DIGEST).tobytes()
            if digest != _digest(content):
                raise ValueError("its content does not fit its digest: it is damaged")
            about = json.loads(content.pop(_ABOUT).tobytes())
        except Exception as error:  # zipfile and NumPy raise whatever comes to pass
            raise ValueError(str(error) or type(error).__name__) from error
    return about if isinstance(about, dict) else {}, content


def _content(file: IO[bytes]) -> dict[str, Array]:
    """Return the arrays of an archive; none of a file that is no archive."""
    if file.read(2) != b"PK":
        return {}
    size = os.fstat(file.fileno()).st_size
    if _directory_size(file, size) > _MOST_DIRECTORY:
        raise ValueError("it has too many parts")
    content = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > size:
            raise ValueError("its parts are larger than the file")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
            name = member.filename.removesuffix(".npy")
            if name in content or (name == _ABOUT and member.file_size > _MOST_ABOUT):
                raise ValueError(f"{name} is there twice, or too large")
            with archive.open(member) as part:
                content[name] = _array(part, member.file_size)
    return content


def _directory_size(file: IO[bytes], size: int) -> int:
    """Return the bytes of the list of parts, which `zipfile` reads as a whole.

    It stands in a record at the end, or in a larger one before that which a locator
    leads to.  Files have no comment behind, as those of `numpy.savez`.
    """
    file.seek(max(size - 98, 0))
    end = file.read().rjust(98, b"\0")
    if not end.startswith(b"PK\5\6", 76):
        raise ValueError("its end is missing")
    found = int.from_bytes(end[88:92], "little")
    if end.startswith(b"PK\6\7", 56):  # of files of more than 4 GB
        if not end.startswith(b"PK\6\6"):
            raise ValueError("its end is damaged")
        found = max(int.from_bytes(end[40:48], "little"), found % 0xFFFFFFFF)
    file.seek(0)
    return found


def _array(part: IO[bytes], size: int) -> Array:
    """Return an array as `numpy.save` writes it, if its header fits its size."""
    version = np.lib.format.read_magic(part)
    if version == (1, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(part)
    elif version == (2, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(part)
    else:
        raise ValueError(f"an array is in version {version} of NumPy's format")
    count = 1
    for length in shape:
        count *= int(length)
    left = size - part.tell()
    if dtype.kind not in "biuf" or min(shape, default=0) < 0:
        raise ValueError(f"an array of type {dtype} and shape {shape} is none of ours")
    if count * dtype.itemsize != left:
        raise ValueError(f"an array of {left} bytes has the shape {shape} of {dtype}")
    values = np.empty(count, dtype)
    room: Any = values.view(np.uint8)
    for start in range(0, left, _CHUNK):
        piece = part.read(min(_CHUNK, left - start))
        room[start : start + _CHUNK] = np.frombuffer(piece, np.uint8)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _digest(content: Mapping[str, Array]) -> bytes:
    total = hashlib.blake2b(digest_size=32)
    for name in sorted(content):
        array = np.asarray(content[name])
        total.update(f"{name}:{array.dtype.str}:{array.shape}\n".encode())
        flat = np.ascontiguousarray(array).reshape(-1)
        total.update(flat.view(np.uint8).data)
    return total.digest()
