"""The options of all commands, under the names of the Python interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import typer

#: The estimators by the name that is typed.
ESTIMATORS = {
    "nystrom": "NystromKMeans",
    "exact": "KernelKMeans",
    "sketched": "SketchedKMeans",
    "spectral": "SpectralKMeans",
}


@dataclass(frozen=True)
class EstimatorOptions:
    """The estimator and its parameters, as typed."""

    estimator: Literal["nystrom", "exact", "sketched", "spectral"] = "nystrom"
    kernel: str | None = None
    gamma: str | None = None
    degree: float | None = None
    coef0: float | None = None
    landmarks: str | None = None
    n_landmarks: str | None = None
    n_neighbors: str | None = None
    rank: int | None = None
    reducer: str | None = None
    init: str | None = None
    n_init: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    max_memory: str | None = None
    n_jobs: int | None = None
    random_state: int = 0


@dataclass(frozen=True)
class TableOptions:
    """How a table is prepared, as typed."""

    columns: list[str] | None = None
    exclude: list[str] | None = None
    label_column: str | None = None
    as_kinds: list[str] | None = None
    scale: Literal["auto", "standard", "robust", "log", "none"] = "auto"
    missing: Literal["auto", "fill", "mean", "drop", "error"] = "auto"


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, as typed; None to detect it."""

    header: Literal["yes", "no"] | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    skip_rows: int | None = None
    na: list[str] | None = None
    trim: Literal["yes", "no"] | None = None
    sheet: str | None = None
    zero_based: Literal["yes", "no"] | None = None


@dataclass(frozen=True)
class PrintOptions:
    """How much is printed, as typed."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def _argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def _in_panel(panel: str) -> Callable[..., Any]:
    """Return a function that makes options of one panel of the help."""

    def option(help: str, *names: str, default: str | None = None, **more: Any) -> Any:
        """Make an option; `default` describes the default if that is None."""
        more |= {} if default is None else {"show_default": default}
        return typer.Option(*names, help=help, rich_help_panel=panel, **more)

    return option


_clustering, _table, _files, _output = map(
    _in_panel, ("Clustering", "Table", "Files", "Output")
)

_out = partial(typer.Option, "--out", "-o")
_FILE: dict[str, Any] = {"metavar": "FILE"}
_NAME: dict[str, Any] = {"metavar": "NAME"}
_COUNT: dict[str, Any] = {"metavar": "N", "default": "auto"}
_LABELS_HELP = (
    "Write the labels to this file: .csv or .parquet with the names of the segments, "
    ".npy without; - writes CSV to standard output."
)

#: The options by the name of the parameter; those of one command after its name.
OPTIONS: dict[str, Any] = {
    "data": _argument(
        "DATA",
        "A file, a folder or a pattern: .csv, .tsv, .txt, .xlsx, .ods, .parquet, "
        ".arrow, .feather, .npy, .npz, .svmlight, also compressed (.gz, .bz2, .xz, "
        ".zst); - reads CSV from standard input.",
    ),
    "model": _argument("MODEL", "A file written by fit --model."),
    "info.file": _argument(
        "MODEL|DATA", "A model or a table; - reads CSV from standard input."
    ),
    "names": _argument(
        "LABEL=NAME", 'New names by label, such as 3="Heavy buyers" 0=Regulars.'
    ),
    # --- clustering
    "n_clusters": _clustering(
        "Number of clusters.", "--n-clusters", "-k", metavar="K", min=1
    ),
    "fit.n_clusters": _clustering(
        "Number of clusters, or auto: what choose suggests for 2 to 12.",
        "--n-clusters",
        "-k",
        metavar="K",
    ),
    "choose.n_clusters": typer.Option(
        "--n-clusters",
        "-k",
        help="Numbers of clusters to try: 2-12, or 5,10,20; or a single number, to "
        "choose only the bandwidth.",
    ),
    "estimator": _clustering(
        "nystrom: kernel k-means on landmarks; exact: kernel k-means on all pairs of "
        "rows, for up to some ten thousand rows; sketched: plain k-means on reduced "
        "columns; spectral: clusters of any shape, by cuts of a graph.",
        "--estimator",
        "--method",
    ),
    "kernel": _clustering(
        "Kernel: rbf, laplacian, polynomial, linear, cosine, sigmoid, arc-cosine or "
        "chi2.",
        default="rbf",
        **_NAME,
    ),
    "gamma": _clustering(
        "Bandwidth of the kernel: a number, mean, median, scale or auto.",
        metavar="NUMBER",
        default="mean",
    ),
    "choose.gamma": typer.Option(
        help="Bandwidths to try, separated by commas; or a single one, to choose only "
        "the number of clusters.",
        show_default="7 around the mean",
        metavar="NUMBERS",
    ),
    "degree": _clustering("Degree of the polynomial kernel.", default="3"),
    "coef0": _clustering(
        "Constant term of the polynomial and sigmoid kernels.", default="1"
    ),
    "landmarks": _clustering(
        "How to select landmarks: uniform, diagonal, column-norm, leverage, "
        "ridge-leverage, bless, k-means++, kmeans, k-dpp, greedy, cholesky or "
        "rpcholesky.",
        default="uniform",
        **_NAME,
    ),
    "compare.landmarks": typer.Option(
        help="Landmark selectors to compare, separated by commas, or all."
    ),
    "n_landmarks": _clustering("How many landmarks, or auto.", **_COUNT),
    "n_neighbors": _clustering(
        "Landmarks that a row is connected to in the graph of spectral, or auto.",
        **_COUNT,
    ),
    "rank": _clustering(
        "Number of eigenvectors of the landmarks' kernel matrix to keep.", default="all"
    ),
    "reducer": _clustering(
        "Reduce the columns first: svd, sign, sampling or laplacian.", **_NAME
    ),
    "init": _clustering(
        "Initial centres: auto, random, k-means++, greedy-k-means++, k-means|| or "
        "local-search.",
        **_NAME,
    ),
    "n_init": _clustering("Number of restarts, or auto.", **_COUNT),
    "max_iter": _clustering(
        "Maximum number of iterations in each stage.", default="300"
    ),
    "tol": _clustering(
        "Stop when an iteration lowers the cost by no more than this share of it.",
        default="0.0001",
    ),
    "max_memory": _clustering(
        "Memory to use, such as 2GB.", metavar="SIZE", default="half of what is free"
    ),
    "n_jobs": _clustering(
        "Number of threads.", "--jobs", "--n-jobs", default="all cores"
    ),
    "random_state": _clustering(
        "Random seed; the same seed gives the same labels.",
        "--seed",
        "--random-state",
        min=0,
    ),
    "workers": typer.Option(
        help="Plan for a cluster of so many workers.", metavar="N", min=1
    ),
    "memory": typer.Option(
        help="Memory of each worker, or of this machine, such as 8GB.", metavar="SIZE"
    ),
    "certify": _output(
        "Prove how far the clusters are from the best possible, for this time.",
        "--certify",
        metavar="SECONDS",
        min=0.1,
    ),
    "seconds": typer.Option(help="Time to look for a proof.", metavar="S", min=0.0),
    "ratio": typer.Option(
        help="Stop when the cost is proved to be at most R × the best.", metavar="R"
    ),
    "confidence": typer.Option(
        help="Probability of what is left to chance if time is short; 1 leaves nothing "
        "to chance.",
        metavar="P",
    ),
    # --- tables
    "columns": _table(
        "Columns to cluster by: names separated by commas, or numbers from 0 if there "
        "are no names.",
        metavar="NAMES",
        default="all",
    ),
    "exclude": _table("Columns to leave out, separated by commas.", metavar="NAMES"),
    "label_column": _table(
        "Column of known classes: not clustered by, but compared with the clusters.",
        **_NAME,
    ),
    "as_kinds": _table(
        "The kind of a column where it is not the one that is found: numeric, boolean, "
        "category, ordinal or date. May be repeated; info shows the kinds.",
        "--as",
        metavar="NAME=KIND",
    ),
    "scale": _table(
        "auto: mean 0 and deviation 1, skewed amounts by their logarithm; standard: "
        "without logarithms; robust: by median and quartiles; log: all by their "
        "logarithm; none: as they are, so that columns in large units count most."
    ),
    "missing": _table(
        "What to do with missing values: fill in the median of the column (categories "
        "get a level of their own), fill in the mean, drop the row (its label is -1), "
        "or stop with an error; auto: fill, and error where columns have no names."
    ),
    "header": _table(
        "Whether the first line of a text file holds column names.", default="detected"
    ),
    "sep": _table(
        "What separates the values of a text file: , ; tab or another character.",
        metavar="SIGN",
        default="detected",
    ),
    "decimal": _table(
        "Decimal mark of a text file: . or ,", metavar="SIGN", default="detected"
    ),
    "encoding": _table(
        "Encoding of a text file, such as utf-8, utf-16 or cp1252.",
        metavar="NAME",
        default="detected",
    ),
    "skip_rows": _table(
        "Lines of a text file above the column names.",
        metavar="N",
        min=0,
        default="detected",
    ),
    "na": _table(
        "Text that stands for a missing value, beside NA, N/A, null, NaN, ? and -; "
        "may be repeated.",
        metavar="TEXT",
    ),
    "trim": _table(
        "Whether to leave out lines of units, totals and notes.", default="yes"
    ),
    "sheet": _table(
        "Sheet of a spreadsheet, by name or number from 0.",
        metavar="NAME",
        default="first that is a table",
    ),
    "zero_based": _table(
        "Whether svmlight files count features from 0.",
        default="detected, or as in the fit",
    ),
    # --- files that are written
    "fit.out": _files(
        "Write the file that the ending asks for: the model (.skm), labels (.csv, "
        ".npy, .parquet) or a report (.html, .xlsx). May be repeated.",
        "--out",
        "-o",
        **_FILE,
    ),
    "fit.model": _files("Save the model to this file.", **_FILE),
    "labels": _files(_LABELS_HELP, **_FILE),
    "identifier": _files(
        "Write this column beside the labels, in place of row numbers; a number from 0 "
        "if there are no names.",
        "--id",
        **_NAME,
    ),
    "keep_columns": _files(
        "Write all columns of the table beside the labels.", "--keep-columns"
    ),
    "choose.report": _files(
        "Write a report on the clusters to this HTML file.",
        "--report",
        "--out",
        "-o",
        **_FILE,
    ),
    "report": _files(
        "Write a report on the segments to this file: .html or .xlsx.", **_FILE
    ),
    "checkpoint": _files(
        "Save the state of the fit to this file; the same command resumes from it.",
        **_FILE,
    ),
    "predict.out": _out(
        help="Write segment, distance, margin, memberships and unusual rows to this "
        "file: .csv or .parquet; labels only to a .npy; - writes CSV to standard "
        "output.",
        **_FILE,
    ),
    "drift.data": _argument("NEW", "A table of new rows, with the columns of the fit."),
    "drift.out": _out(help="Write a report to this .html file, too.", **_FILE),
    "level": _output(
        "Chance of any alarm if nothing has changed, at most.",
        "--level",
        metavar="P",
        min=1e-6,
        max=0.5,
    ),
    "row": _argument("ROW", "The number of a row from 0, or its identifier with --id."),
    "explain.identifier": typer.Option(
        "--id", help="The column in which ROW is looked for.", **_NAME
    ),
    "like": _files(
        "Keep the labels and names of this model for segments that are the same.",
        "--like",
        metavar="MODEL",
    ),
    "labels_only": _files("Write the labels and nothing else.", "--labels-only"),
    "unusual": _output(
        "Call rows unusual that are farther out than all but this share of the rows "
        "of the fit.",
        "--unusual",
        metavar="SHARE",
        min=0.001,
        max=0.5,
        default="0.01",
    ),
    "old": _files(
        "The table of the fit, for a model that keeps nothing of it.", "--old", **_FILE
    ),
    "card.out": _out(help="A .md file; default is standard output.", **_FILE),
    "onnx": typer.Option("--onnx", help="The .onnx file to write.", **_FILE),
    "report.out": _out(help="Write the report to this file: .html or .xlsx.", **_FILE),
    "xlsx": typer.Option(
        help="Write the same to this workbook of Excel, too.", metavar="FILE"
    ),
    "report.identifier": typer.Option(
        "--id",
        help="Column that names typical rows.",
        show_default="the first identifier",
        metavar="NAME",
    ),
    "demo.out": _out(
        help="Write the picture and the report to this folder.", metavar="FOLDER"
    ),
    "image_shape": typer.Option(
        help="Show rows as images of this shape, such as 28x28.", metavar="HEIGHTxWIDTH"
    ),
    "title": typer.Option(help="Title of the report."),
    # --- what is printed
    "as_json": _output("Print the result as one JSON object.", "--json"),
    "quiet": _output(
        "Print only warnings, errors and requested answers.", "--quiet", "-q"
    ),
    "verbose": _output(
        "Print one line per stage and per iteration.", "--verbose", "-v"
    ),
    "debug": _output("Show the traceback of an error.", "--debug"),
}
