"""Files elsewhere, such as s3://bucket/rows.parquet: copied once through fsspec."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import fsspec

from sketchmeans.data.sources.copies import copy_by_key
from sketchmeans.data.sources.files import FileState, suffix_of

_PART_BYTES = 2**22


def fetch(url: str, suffixes: Collection[str]) -> list[FileState]:
    """Return the states of temporary copies of a file, a folder or a pattern."""
    try:
        files, place = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise ValueError(f"{url} cannot be opened: {error}") from None
    if any(sign in place for sign in "*?["):
        found = files.glob(place)
    elif files.isdir(place):
        paths = files.find(place)
        found = [path for path in paths if suffix_of(path) in suffixes]
    else:
        found = [place] if files.exists(place) else []
    if not found:
        raise FileNotFoundError(f"There is no file {url}.")
    return [_copy(files, path) for path in sorted(found)]


def _copy(files: Any, path: str) -> FileState:
    url = files.unstrip_protocol(path)
    name = path.rstrip("/").rpartition("/")[2]
    return copy_by_key((url, files.ukey(path)), url, name, _read_parts(files, path))


def _read_parts(files: Any, path: str) -> Iterator[bytes]:
    with files.open(path, "rb") as file:
        while part := file.read(_PART_BYTES):
            yield part
