"""The options that commands share, under the names of the Python interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, get_type_hints

import typer


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer, in which groups of options are single options.

    A parameter of the command whose type is a dataclass stands for the fields of it.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: t for n, t in hints.items() if is_dataclass(t)}
    parameters = []
    for name, parameter in signature(command).parameters.items():
        options = [(name, hints[name], parameter.default)]
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            options = [(f.name, types[f.name], f.default) for f in fields(groups[name])]
        parameters += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for option, hint, default in options
        ]

    def run(**values: Any) -> None:
        for name, group in groups.items():
            own = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**own)
        command(**values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


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

# --- arguments and options of several commands ----------------------------------------

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a folder or a pattern: .parquet, .csv, .tsv, .arrow, .feather, "
        ".npy, .npz, .svmlight; - reads CSV from standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A file written by fit --model.", show_default=False
    ),
]
NClusters = Annotated[
    int, _clustering("Number of clusters.", "--n-clusters", "-k", metavar="K", min=1)
]
Kernel = Annotated[
    str | None,
    _clustering(
        "Kernel: rbf, laplacian, polynomial, linear, cosine, sigmoid, arc-cosine or "
        "chi2.",
        metavar="NAME",
        default="rbf",
    ),
]
Gamma = Annotated[
    str | None,
    _clustering(
        "Bandwidth of the kernel: a number, mean, median, scale or auto.",
        metavar="NUMBER",
        default="mean",
    ),
]
NLandmarks = Annotated[
    str | None,
    _clustering("Number of landmarks, or auto.", metavar="N", default="auto"),
]
MaxMemory = Annotated[
    str | None,
    _clustering(
        "Memory to use, such as 2GB.", metavar="SIZE", default="half of what is free"
    ),
]
Jobs = Annotated[
    int | None,
    _clustering("Number of threads.", "--jobs", "--n-jobs", default="all cores"),
]
Seed = Annotated[
    int,
    _clustering(
        "Random seed; the same seed gives the same labels.",
        "--seed",
        "--random-state",
        min=0,
    ),
]
LABELS_HELP = (
    "Write the labels to this file: .csv (row,label), .npy or .parquet; - writes CSV "
    "to standard output."
)
LabelsOut = Annotated[str | None, _files(LABELS_HELP, metavar="FILE")]
ModelOut = Annotated[str | None, _files("Save the model to this file.", metavar="FILE")]
ReportOut = Annotated[
    str | None,
    _files("Write a report on the clusters to this HTML file.", metavar="FILE"),
]
CheckpointOut = Annotated[
    str | None,
    _files(
        "Save the state of the fit to this file; the same command resumes from it.",
        metavar="FILE",
    ),
]
Json = Annotated[bool, _output("Print the result as one JSON object.", "--json")]
Quiet = Annotated[
    bool,
    _output("Print only warnings, errors and requested answers.", "--quiet", "-q"),
]
Debug = Annotated[bool, _output("Show the traceback of an error.", "--debug")]

# --- groups of options ----------------------------------------------------------------


@dataclass(frozen=True)
class EstimatorOptions:
    """The estimator and its parameters, as typed."""

    estimator: Annotated[
        Literal["nystrom", "exact", "sketched", "spectral"],
        _clustering(
            "nystrom: kernel k-means on landmarks; exact: kernel k-means on all pairs "
            "of rows, for up to some ten thousand rows; sketched: plain k-means on "
            "reduced columns; spectral: clusters of any shape, by cuts of a graph.",
            "--estimator",
            "--method",
        ),
    ] = "nystrom"
    kernel: Kernel = None
    gamma: Gamma = None
    degree: Annotated[
        float | None, _clustering("Degree of the polynomial kernel.", default="3")
    ] = None
    coef0: Annotated[
        float | None,
        _clustering(
            "Constant term of the polynomial and sigmoid kernels.", default="1"
        ),
    ] = None
    landmarks: Annotated[
        str | None,
        _clustering(
            "How to select landmarks: uniform, kmeans++, ridge-leverage, rpcholesky, "
            "...",
            metavar="NAME",
            default="uniform",
        ),
    ] = None
    n_landmarks: NLandmarks = None
    n_neighbors: Annotated[
        str | None,
        _clustering(
            "Landmarks that a row is connected to in the graph of spectral, or auto.",
            metavar="N",
            default="auto",
        ),
    ] = None
    rank: Annotated[
        int | None,
        _clustering(
            "Number of eigenvectors of the landmarks' kernel matrix to keep.",
            default="all",
        ),
    ] = None
    reducer: Annotated[
        str | None,
        _clustering(
            "Reduce the columns first: svd, sign, sampling or laplacian.",
            metavar="NAME",
        ),
    ] = None
    init: Annotated[
        str | None,
        _clustering(
            "Initial centres: random, k-means++, greedy-k-means++ or local-search.",
            metavar="NAME",
        ),
    ] = None
    n_init: Annotated[
        str | None,
        _clustering("Number of restarts, or auto.", metavar="N", default="auto"),
    ] = None
    max_iter: Annotated[
        int | None,
        _clustering("Maximum number of iterations in each stage.", default="300"),
    ] = None
    tol: Annotated[
        float | None,
        _clustering(
            "Stop when an iteration lowers the cost by no more than this share of it.",
            default="0.0001",
        ),
    ] = None
    max_memory: MaxMemory = None
    n_jobs: Jobs = None
    random_state: Seed = 0


@dataclass(frozen=True)
class TableOptions:
    """How a table is prepared, as typed."""

    columns: Annotated[
        list[str] | None,
        _table(
            "Columns to cluster by: names separated by commas, or numbers from 0 if "
            "there are no names.",
            metavar="NAMES",
            default="all",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        _table("Columns to leave out, separated by commas.", metavar="NAMES"),
    ] = None
    label_column: Annotated[
        str | None,
        _table(
            "Column of known classes: not clustered by, but compared with the "
            "clusters.",
            metavar="NAME",
        ),
    ] = None
    scale: Annotated[
        Literal["standard", "robust", "none"],
        _table(
            "standard: mean 0 and deviation 1; robust: by median and quartiles; none: "
            "as they are, so that columns in large units count most."
        ),
    ] = "standard"
    missing: Annotated[
        Literal["error", "drop", "mean"],
        _table(
            "What to do with missing values: stop with an error, drop the row (its "
            "label is -1), or fill in the mean of the column."
        ),
    ] = "error"


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, as typed; None to detect it."""

    header: Annotated[
        Literal["yes", "no"] | None,
        _table(
            "Whether the first line of a text file holds column names.",
            default="detected",
        ),
    ] = None
    zero_based: Annotated[
        Literal["yes", "no"] | None,
        _table(
            "Whether svmlight files count features from 0.",
            default="detected, or as in the fit",
        ),
    ] = None


@dataclass(frozen=True)
class PrintOptions:
    """How much is printed, as typed."""

    as_json: Json = False
    quiet: Quiet = False
    verbose: Annotated[
        bool, _output("Print one line per stage and per iteration.", "--verbose", "-v")
    ] = False
    debug: Debug = False
