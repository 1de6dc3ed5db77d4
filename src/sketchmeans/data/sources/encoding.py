"""What bytes a file holds: decompressed, and as text in UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from sketchmeans.data.sources.copies import copy_once
from sketchmeans.data.sources.files import FileState

#: Bytes that are copied at a time, and from which an encoding is guessed.
_PART_BYTES = 2**20
#: What Unicode text may begin with, and its encoding.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # which begins as UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def _open_zstd(path: str, mode: str) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(path, mode), "zstd")


#: Endings of compressed files, and what decompresses them.
PACKED: dict[str, Callable[[str, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}


def unpack(state: FileState) -> FileState:
    """Return a file, or a temporary copy of it, decompressed."""
    inner, packing = os.path.splitext(state.path)
    opener = PACKED.get(packing.lower())
    if opener is None:
        return state
    name = os.path.basename(inner)
    return copy_once("unpacked", state, name, _unpack_parts(state, opener))


def _unpack_parts(state: FileState, opener: Callable[..., Any]) -> Iterator[bytes]:
    try:
        with opener(state.place, "rb") as file:
            while part := file.read(_PART_BYTES):
                yield part
    except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # not of the content
        raise state.error("cannot be decompressed", error) from None


def as_utf8(
    state: FileState, encoding: str | None, not_utf8: bool = False
) -> tuple[FileState, str]:
    """Return a file of text, or a copy of it in UTF-8, and the encoding that it has.

    Default is what a mark at its beginning says, or UTF-8, if the first megabyte is in
    it and it is not known that the rest is not, or else that of Windows in Western
    Europe.
    """
    assumed = encoding is None
    if encoding is None:
        encoding = _guess(state, ("cp1252",) if not_utf8 else ("utf-8", "cp1252"))
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "ascii", "utf-8-sig"):
        return state, "utf-8"
    parts = _decode_parts(state, name, "replace" if assumed else "strict")
    return copy_once(("utf-8", name, assumed), state, "text.csv", parts), name


def check_encoding(encoding: str) -> None:
    """Raise if Python knows no encoding of this name that is one of text."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError, TypeError):
        raise ValueError(
            f"encoding={encoding!r} should be one that Python knows, such as 'utf-8', "
            "'utf-16', 'cp1252' or 'latin-1'."
        ) from None


def _guess(state: FileState, encodings: Sequence[str]) -> str:
    with open(state.place, "rb") as file:
        head = file.read(_PART_BYTES)
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    zeros = [half.count(0) / max(len(half), 1) for half in (head[::2], head[1::2])]
    if max(zeros) > 0.5 > 2 * min(zeros):  # every other byte of Latin letters
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    for encoding in encodings:
        try:
            codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _decode_parts(state: FileState, encoding: str, errors: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    with open(state.place, "rb") as file:
        yield from _recode(state, file, decoder, encoding)


def _recode(
    state: FileState, file: IO[bytes], decoder: codecs.IncrementalDecoder, encoding: str
) -> Iterator[bytes]:
    while True:
        part = file.read(_PART_BYTES)
        try:
            text = decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            place = max(file.tell() - len(error.object), 0) + error.start
            raise ValueError(
                f"{state.path} is not in encoding={encoding!r}: byte {place:,} has no "
                "meaning in it."
            ) from None
        yield text.encode("utf-8", "replace")
        if not part:
            return
