"""Files that a command writes, each completely or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from glob import glob
from os.path import realpath
from pathlib import Path
from typing import Any

import typer

from sketchmeans.cli.data import STREAM

_LABEL_SUFFIXES = (".csv", ".npy", ".parquet")
#: Lines of text that are joined at a time.
_LINES = 100_000


def check_outputs(
    files: Mapping[str, str | None],
    inputs: Iterable[str],
    suffixes: Mapping[str, tuple[str, ...]],
) -> None:
    """Raise if a file cannot be written, or would replace one that is needed.

    `files` has the path of each option, `suffixes` the endings that an option allows.
    """
    # Not `Path.resolve`, which fails if links form a loop.
    names = {realpath(file): "a file that is read" for file in _expand(inputs)}
    for option, path in files.items():
        allowed = suffixes.get(option, ())
        if path is None or (path == STREAM and ".csv" in allowed):
            continue
        _check_output(option, path, allowed)
        place = realpath(path)
        if place in names:
            raise typer.BadParameter(f"{option} {path} is also {names[place]}.")
        names[place] = f"the file of {option}"


LABELS, REPORT = _LABEL_SUFFIXES, (".html",)


def _check_output(option: str, path: str, suffixes: tuple[str, ...]) -> None:
    from sketchmeans.numerics.atomic_file import check_can_write

    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise typer.BadParameter(f"{option} {path} is a folder; it should be a file.")
    if not os.path.isdir(folder):
        raise typer.BadParameter(f"{option} {path}: there is no folder {folder}.")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise typer.BadParameter(f"{option} {path} should end in {known}.")
    try:
        check_can_write(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = getattr(error, "strerror", None) or error
        raise typer.BadParameter(f"{option} {path}: {reason}.") from error
    if suffixes == REPORT:
        import sketchmeans.report  # noqa: F401 - its error says what to install
    if path.lower().endswith(".parquet"):
        try:
            import pyarrow  # noqa: F401 - before the long work
        except ImportError:
            raise typer.BadParameter(
                f"{option} {path} needs pyarrow: pip install sketchmeans[files]"
            ) from None


def _expand(paths: Iterable[str]) -> Iterator[str]:
    """Yield files, also those of patterns and folders."""
    for path in paths:
        if path != STREAM:
            pattern = str(Path(path) / "*") if Path(path).is_dir() else path
            yield from glob(pattern) or [path]


def write_labels(labels: Any, path: str) -> None:
    """Write labels to a file, or to standard output as CSV."""
    import numpy as np

    from sketchmeans.numerics.atomic_file import open_atomic

    if path == STREAM:
        for text in _csv_lines(labels):
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    suffix = Path(path).suffix.lower()
    with open_atomic(path) as file:
        if suffix == ".npy":
            np.save(file, labels)
        elif suffix == ".csv":
            file.writelines(text.encode() for text in _csv_lines(labels))
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            columns = {"row": np.arange(len(labels)), "label": np.asarray(labels)}
            pq.write_table(pa.table(columns), file)


def _csv_lines(labels: Any) -> Iterator[str]:
    yield "row,label\n"
    for start in range(0, len(labels), _LINES):
        part = labels[start : start + _LINES].tolist()
        yield "".join(f"{row},{label}\n" for row, label in enumerate(part, start))
