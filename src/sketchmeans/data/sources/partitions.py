"""Columns whose values are in the names of folders: year=2024/part-0.parquet."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from sketchmeans.data.sources.base import ReadOptions, Source
from sketchmeans.data.sources.derived import WrappedSource, check_columns, check_known
from sketchmeans.data.sources.files import FileState, suffix_of
from sketchmeans.data.sources.formats import has_option
from sketchmeans.numerics.linalg import Array

Value = str | int | None

#: How Hive writes a value that is not there.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def find_partitions(folder: str, states: Sequence[FileState]) -> list[dict[str, Value]]:
    """Return the columns that the folders of each file name, with their values.

    A column is one of whole numbers if all its values are, else of words.
    """
    if not os.path.isdir(folder):
        return [{} for _ in states]
    found = [_parse_folders(os.path.relpath(state.path, folder)) for state in states]
    for state, values in zip(states, found, strict=True):
        if values.keys() != found[0].keys():
            raise ValueError(
                f"{state.path} is in folders that name the columns {list(values)}, "
                f"{states[0].path} in ones that name {list(found[0])}; all files "
                "should have the same."
            )
    if found[0] and not has_option(states[0], "columns"):
        name, value = next(iter(found[0].items()))
        pattern = os.path.join(folder, "**", f"*{suffix_of(states[0].path)}")
        raise ValueError(
            f"The folder {folder} has its files in folders such as "
            f"'{name}={value}', whose names are values of a column, and the files have "
            f"no names of columns. To do without it, name the files: {pattern}"
        )
    for name in found[0]:
        column = [values[name] for values in found]
        if all(value is None or _is_integer(value) for value in column):
            for values in found:
                values[name] = None if (v := values[name]) is None else int(v)
    return found


def _parse_folders(path: str) -> dict[str, Value]:
    """Return the columns that the folders of a path name.

    Examples
    --------
    >>> _parse_folders("year=2024/town=Bad%20Urach/part-0.parquet")
    {'year': '2024', 'town': 'Bad Urach'}
    """
    pairs = [part.partition("=") for part in Path(path).parent.parts if "=" in part]
    return {
        unquote(name): None if value == _NO_VALUE else unquote(value)
        for name, _, value in pairs
    }


def _is_integer(value: str | int) -> bool:
    text = str(value)
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 16 and text == str(int(text))


def leave_to_files(
    options: ReadOptions, partitions: Mapping[str, Value]
) -> ReadOptions:
    """Return options without the columns that are not in the files."""
    columns, label = options.columns, options.label_column
    if columns is not None:
        columns = check_columns("columns", columns, label)
        columns = [name for name in columns if name not in partitions]
        if not columns:
            raise ValueError(
                f"columns={options.columns!r} should have a column that is in the "
                "files, and not only in the names of their folders."
            )
    return replace(
        options, columns=columns, label_column=None if label in partitions else label
    )


class PartitionedSource(WrappedSource):
    """Rows of a file, with columns that have the same value in all of them."""

    def __init__(
        self, inner: Source, partitions: Mapping[str, Value], options: ReadOptions
    ) -> None:
        super().__init__(inner)
        own = list(inner.feature_names or ())
        self._label = partitions.get(options.label_column or "")
        self._has_label = options.label_column in partitions
        numbers = {
            name: np.nan if value is None else float(value)
            for name, value in partitions.items()
            if not isinstance(value, str) and name != options.label_column
        }
        names = [*(n for n in own if n not in numbers), *numbers]
        if options.columns is not None:
            names = list(options.columns)
            check_known(inner.path, names, [*own, *numbers])
        self._constants = [
            (j, numbers[name]) for j, name in enumerate(names) if name in numbers
        ]
        self._places = [j for j, name in enumerate(names) if name not in numbers]
        self._wanted = [own.index(names[j]) for j in self._places]
        self.feature_names, self.shape = tuple(names), (len(inner), len(names))
        if self._constants:
            self.dtype = np.result_type(inner.dtype, np.float32)
        self.thread_memory += 4096 * inner.shape[1] * inner.dtype.itemsize

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        return self._fill(np.asarray(self.inner.read(start, stop)), out)

    def take(self, indices: Array) -> Array:
        return self._fill(np.asarray(self.inner.take(indices)), None)

    def labels(self) -> Array:
        if self._has_label:
            return np.full(len(self), self._label)
        return self.inner.labels()

    def _fill(self, block: Array, out: Array | None) -> Array:
        out = self._new_block(len(block)) if out is None else out
        out[:, self._places] = block[:, self._wanted]
        for j, value in self._constants:
            out[:, j] = value
        return out
