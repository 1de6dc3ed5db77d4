"""The files that a path stands for: one, those of a folder, or those of a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection
from pathlib import Path


def files_of(name: str, suffixes: Collection[str]) -> list[str]:
    """Return the files that a path stands for, in the sorted order of their paths.

    Those of a folder are all below it that have one of the suffixes.  Folders and
    files whose names start with a dot or an underscore are left out, as writers leave
    such for themselves: _SUCCESS, .crc.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If a folder is named after values of a column, which would be lost, or a file
        is found on two ways, through a link.
    """
    if os.path.isdir(name):
        files = _below(name, suffixes)
        if not files:
            raise FileNotFoundError(
                f"The folder {name} has no file that ends in one of {sorted(suffixes)}."
            )
    elif os.path.exists(name):
        files = [name]
    else:
        files = []
        for found in sorted(set(glob.glob(name, recursive=True))):
            if not os.path.isdir(found):
                files.append(found)
            # What ** matches is a folder on the way to the files that it matches, too.
            elif "**" not in name:
                files += _below(found, suffixes)
        if not files:
            raise FileNotFoundError(f"There is no file {name}.")
    return sorted(_each_once(name, files))


def suffix_of(name: str) -> str:
    """Return the end of a file's name, in small letters."""
    return Path(name).suffix.lower()


def _below(folder: str, suffixes: Collection[str]) -> list[str]:
    files = []
    parents = {folder: {os.path.realpath(folder)}}
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in folders:
            path = os.path.join(place, name)
            real = os.path.realpath(path)
            if real in parents[place]:
                raise ValueError(f"The folder {path} is a link to one that it is in.")
            parents[path] = parents[place] | {real}
        wanted = [
            name
            for name in names
            if name[0] not in "._" and suffix_of(name) in suffixes
        ]
        _check_no_values(folder, place, wanted)
        files += [os.path.join(place, name) for name in wanted]
    return files


def _check_no_values(folder: str, place: str, names: list[str]) -> None:
    """Raise where files are in folders that say values: year=2024/part-0.parquet."""
    parts = Path(os.path.relpath(place, folder)).parts
    values = [part for part in parts if "=" in part]
    if values and names:
        pattern = os.path.join(folder, "**", f"*{suffix_of(names[0])}")
        raise ValueError(
            f"The folder {folder} has its files in folders such as {values[0]!r}, "
            "whose names are values of a column; these are not read. To do without the "
            f"column, name the files: {pattern}"
        )


def _each_once(name: str, files: list[str]) -> list[str]:
    """Return the files, if no two of them are the same."""
    found: dict[str, str] = {}
    for file in files:
        other = found.setdefault(os.path.realpath(file), file)
        if other != file:
            raise ValueError(
                f"{name} holds the same file twice: {other} and {file}. Its rows would "
                "count double."
            )
    return files
