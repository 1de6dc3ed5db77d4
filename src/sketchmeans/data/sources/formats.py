"""The formats of files, and what opens them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sketchmeans.data.sources.base import ReadOptions
from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.data.sources.encoding import unpack
from sketchmeans.data.sources.files import FileState, find_files, suffix_of

#: Suffixes, and the module and function that open such a file.
FORMATS = {
    ".npy": ("npy", "open_npy"),
    ".npz": ("npz", "open_npz"),
    ".parquet": ("parquet", "open_parquet"),
    ".pq": ("parquet", "open_parquet"),
    ".arrow": ("arrow", "open_arrow"),
    ".feather": ("arrow", "open_arrow"),
    ".csv": ("delimited", "open_delimited"),
    ".tsv": ("delimited", "open_delimited"),
    ".txt": ("delimited", "open_delimited"),
    ".tab": ("delimited", "open_delimited"),
    ".xlsx": ("spreadsheet", "open_spreadsheet"),
    ".xlsm": ("spreadsheet", "open_spreadsheet"),
    ".ods": ("spreadsheet", "open_spreadsheet"),
    ".svmlight": ("svmlight", "SvmlightSource"),
    ".svm": ("svmlight", "SvmlightSource"),
    ".libsvm": ("svmlight", "SvmlightSource"),
}
#: The options that mean something to each of them.
_TABLE = ("columns", "label_column", "dtype")
OPTIONS: dict[str, tuple[str, ...]] = {
    "npy": (),
    "npz": (),
    "parquet": _TABLE,
    "arrow": _TABLE,
    "delimited": (*_TABLE, "header", "dialect", *vars(Dialect())),
    "spreadsheet": (*_TABLE, "header", "sheet", "dialect", *vars(Dialect())),
    "svmlight": ("dtype", "zero_based"),
}
#: Why an option means nothing to the others.
_UNUSED = {
    "columns": "no named columns",
    "label_column": "no named columns",
    "dtype": "a type of its own",
    "header": "no line of names to look for",
    "zero_based": "no features that are numbered in the file",
    "dialect": "no text",
    "sheet": "no sheets",
}
#: What users install where a library is missing.
_EXTRAS = {"pyarrow": "files", "python_calamine": "excel", "fsspec": "remote"}


def find_states(name: str) -> list[FileState]:
    """Return the files that a path stands for, all of one kind and none empty.

    Compressed files are decompressed to temporary copies.
    """
    if "://" in name:
        fetch = import_function(name, "remote", "fetch")
        found: list[FileState] = fetch(name, FORMATS)
    else:
        found = [FileState.of(file) for file in find_files(name, FORMATS)]
    files = [state.path for state in found]
    for file in files:
        if suffix_of(file) not in FORMATS:
            raise ValueError(
                f"{file} ends in {suffix_of(file)!r}; {say_what_is_read(file)}"
            )
        if FORMATS[suffix_of(file)] != FORMATS[suffix_of(files[0])]:
            raise ValueError(
                f"{name} holds both {files[0]} and {file}; all files should be of one "
                "kind: name them with a pattern such as '*.npy'."
            )
    states = [unpack(state) for state in found]
    for state in states:
        if state.size == 0:
            raise ValueError(f"{state.path} is empty.")
    return states


def say_what_is_read(file: str) -> str:
    """Return what to do about a file of a format that is not read."""
    if suffix_of(file) in (".xls", ".xlsb"):
        return "save it as .xlsx, .ods or .csv in the program that wrote it."
    return f"it should end in one of {sorted(FORMATS)}."


def check_options(state: FileState, options: ReadOptions) -> None:
    """Raise if an option means nothing to the format of a file."""
    module, _ = FORMATS[suffix_of(state.path)]
    for option, reason in _UNUSED.items():
        value = getattr(options, option)
        if isinstance(value, Dialect):  # name what the user has said
            said = ((k, v) for k, v in vars(value).items() if v not in (None, ()))
            option, value = next(said, (option, None))
        if value is not None and option not in OPTIONS[module]:
            raise ValueError(
                f"{option}={value!r} should be None for {state.path}: a "
                f"{suffix_of(state.path)} file has {reason}."
            )


def has_option(state: FileState, option: str) -> bool:
    """Say whether an option means something to the format of a file."""
    return option in OPTIONS[FORMATS[suffix_of(state.path)][0]]


def is_stream(X: Any) -> bool:
    """Say whether an object streams Arrow batches and is not a table in memory.

    DuckDB relations, readers of record batches, pyarrow's datasets and scanners, and
    lazy frames of polars are; data frames can be turned into arrays.
    """
    if isinstance(X, type) or hasattr(X, "__array__"):
        return False
    return is_dataset(X) or is_lazy(X) or hasattr(X, "__arrow_c_stream__")


def is_dataset(X: Any) -> bool:
    """Say whether an object is a dataset of pyarrow's."""
    return hasattr(X, "to_batches") and hasattr(X, "scanner")


def is_lazy(X: Any) -> bool:
    """Say whether an object is a lazy frame of polars."""
    return type(X).__module__.startswith("polars.") and hasattr(X, "collect_batches")


def import_reader(state: FileState, function: str | None = None) -> Callable[..., Any]:
    """Return what opens files of this format, or another function of its module."""
    module, opener = FORMATS[suffix_of(state.path)]
    name = opener if function is None else f"{module}_{function}"
    return import_function(state.path, module, name)


def import_function(what: str, module: str, function: str) -> Callable[..., Any]:
    """Return a function of a module; an error says which library is missing."""
    try:
        return getattr(import_module(f"sketchmeans.data.sources.{module}"), function)
    except ImportError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        raise ImportError(
            f"{what} is read through {library.replace('_', '-')}, which is not "
            f"installed: pip install sketchmeans[{_EXTRAS[library]}]"
        ) from None
