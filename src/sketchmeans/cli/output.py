"""Files that a command leaves: each of them whole, or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from glob import glob
from os.path import realpath
from pathlib import Path
from typing import IO, Any

import typer

from sketchmeans.cli.data import STREAM

_LABEL_SUFFIXES = (".csv", ".npy", ".parquet")
#: Lines of text that are put together at a time.
_LINES = 100_000


def check_can_write(
    option: str, path: str | None, suffixes: tuple[str, ...] = ()
) -> None:
    """Raise where a file could not be written, before hours of work are lost."""
    if path is None or (path == STREAM and ".csv" in suffixes):
        return
    from sketchmeans.numerics.atomic_file import check_can_write as check_file

    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise typer.BadParameter(f"{option} {path} is a folder; it should be a file.")
    if not os.path.isdir(folder):
        raise typer.BadParameter(f"{option} {path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{option} {path}: {folder} cannot be written to.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise typer.BadParameter(f"{option} {path} is no ordinary file.")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise typer.BadParameter(f"{option} {path} should end in {known}.")
    try:
        check_file(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = getattr(error, "strerror", None) or error
        raise typer.BadParameter(f"{option} {path}: {reason}.") from error


def check_apart(outputs: Mapping[str, str | None], inputs: Iterable[str]) -> None:
    """Raise where a file would replace another one that the command needs or leaves."""
    # Not `Path.resolve`, which fails where links go round in circles.
    names = {realpath(file): "a file that is read" for file in _expanded(inputs)}
    for option, path in outputs.items():
        if path is None or path == STREAM:
            continue
        place = realpath(path)
        if place in names:
            raise typer.BadParameter(f"{option} {path} is also {names[place]}.")
        names[place] = f"the file of {option}"


def _expanded(paths: Iterable[str]) -> Iterator[str]:
    """Yield files, those of patterns and of folders among them."""
    for path in paths:
        if path != STREAM:
            pattern = str(Path(path) / "*") if Path(path).is_dir() else path
            yield from glob(pattern) or [path]


def check_labels(option: str, path: str | None) -> None:
    """Raise where labels could not be written."""
    check_can_write(option, path, _LABEL_SUFFIXES)
    if path is not None and path.lower().endswith(".parquet"):
        try:
            import pyarrow  # noqa: F401 - before hours of work
        except ImportError:
            raise typer.BadParameter(
                f"{option} {path} is written through pyarrow, which is not installed: "
                "pip install sketchmeans[files]"
            ) from None


def check_report(option: str, path: str | None) -> None:
    """Raise where a report could not be drawn or written."""
    check_can_write(option, path, (".html",))
    if path is not None:
        import sketchmeans.report  # noqa: F401 - says what is not installed


def write_labels(labels: Any, path: str) -> None:
    """Write labels to a file, or to standard output as CSV."""
    from sketchmeans.numerics.atomic_file import open_atomic

    if path == STREAM:
        for text in _lines(labels):
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    with open_atomic(path) as file:
        _WRITERS[Path(path).suffix.lower()](labels, file)


def _lines(labels: Any) -> Iterator[str]:
    yield "row,label\n"
    for start in range(0, len(labels), _LINES):
        part = labels[start : start + _LINES].tolist()
        yield "".join(f"{row},{label}\n" for row, label in enumerate(part, start))


def _write_csv(labels: Any, file: IO[bytes]) -> None:
    for text in _lines(labels):
        file.write(text.encode())


def _write_npy(labels: Any, file: IO[bytes]) -> None:
    import numpy as np

    np.save(file, labels)


def _write_parquet(labels: Any, file: IO[bytes]) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"row": np.arange(len(labels)), "label": np.asarray(labels)})
    pq.write_table(table, file)


_WRITERS = {".csv": _write_csv, ".npy": _write_npy, ".parquet": _write_parquet}
