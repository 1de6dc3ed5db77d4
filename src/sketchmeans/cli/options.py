"""The options that commands share, under the names of the Python interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer


def _in_panel(panel: str) -> Callable[..., Any]:
    """Return a function that makes options of one panel of the help."""

    def option(help: str, *names: str, **settings: Any) -> Any:
        return typer.Option(*names, help=help, rich_help_panel=panel, **settings)

    return option


_clustering, _table, _files, _output = map(
    _in_panel, ("Clustering", "Table", "Files", "Output")
)

YesNo = Literal["yes", "no"]

# --- arguments ------------------------------------------------------------------------

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

# --- clustering -----------------------------------------------------------------------

NClusters = Annotated[
    int,
    _clustering("Number of clusters.", "--n-clusters", "-k", metavar="K", min=1),
]
Estimator = Annotated[
    Literal["nystrom", "exact", "sketched"],
    _clustering(
        "nystrom: kernel k-means on landmarks; exact: kernel k-means on all pairs of "
        "rows, for up to some ten thousand rows; sketched: plain k-means on reduced "
        "columns."
    ),
]
Kernel = Annotated[
    str | None,
    _clustering(
        "Kernel: rbf, laplacian, polynomial, linear, cosine, sigmoid, arc-cosine or "
        "chi2.",
        metavar="NAME",
        show_default="rbf",
    ),
]
Gamma = Annotated[
    str | None,
    _clustering(
        "Bandwidth of the kernel: a number, mean, median or scale.",
        metavar="NUMBER",
        show_default="mean",
    ),
]
Degree = Annotated[
    float | None,
    _clustering("Degree of the polynomial kernel.", metavar="NUMBER", show_default="3"),
]
Coef0 = Annotated[
    float | None,
    _clustering(
        "Constant term of the polynomial and sigmoid kernels.",
        metavar="NUMBER",
        show_default="1",
    ),
]
Landmarks = Annotated[
    str | None,
    _clustering(
        "How to select landmarks: uniform, kmeans++, ridge-leverage, rpcholesky, ...",
        metavar="NAME",
        show_default="uniform",
    ),
]
NLandmarks = Annotated[
    str | None,
    _clustering("Number of landmarks, or auto.", metavar="N", show_default="auto"),
]
Rank = Annotated[
    int | None,
    _clustering(
        "Number of eigenvectors of the landmarks' kernel matrix to keep.",
        metavar="N",
        show_default="all",
    ),
]
Reducer = Annotated[
    str | None,
    _clustering(
        "Reduce the columns first: svd, sign, sampling or laplacian.", metavar="NAME"
    ),
]
Init = Annotated[
    str | None,
    _clustering(
        "Initial centres: random, k-means++, greedy-k-means++ or local-search.",
        metavar="NAME",
    ),
]
NInit = Annotated[
    str | None,
    _clustering("Number of restarts, or auto.", metavar="N", show_default="auto"),
]
MaxIter = Annotated[
    int | None,
    _clustering(
        "Maximum number of iterations in each stage.", metavar="N", show_default="300"
    ),
]
Tol = Annotated[
    float | None,
    _clustering(
        "Stop when an iteration lowers the cost by no more than this share of it.",
        metavar="NUMBER",
        show_default="0.0001",
    ),
]
MaxMemory = Annotated[
    str | None,
    _clustering(
        "Memory to use, such as 2GB.",
        metavar="SIZE",
        show_default="half of what is free",
    ),
]
Jobs = Annotated[
    int | None,
    _clustering(
        "Number of threads.",
        "--jobs",
        "--n-jobs",
        metavar="N",
        show_default="all cores",
    ),
]
Seed = Annotated[
    int,
    _clustering(
        "Random seed; the same seed gives the same labels.",
        "--seed",
        "--random-state",
        metavar="N",
        min=0,
    ),
]

# --- the table ------------------------------------------------------------------------

Columns = Annotated[
    list[str] | None,
    _table(
        "Columns to cluster by: names separated by commas, or numbers from 0 if there "
        "are no names.",
        metavar="NAMES",
        show_default="all",
    ),
]
Exclude = Annotated[
    list[str] | None,
    _table("Columns to leave out, separated by commas.", metavar="NAMES"),
]
LabelColumn = Annotated[
    str | None,
    _table(
        "Column of known classes: not clustered by, but compared with the clusters.",
        metavar="NAME",
    ),
]
Scale = Annotated[
    Literal["standard", "robust", "none"],
    _table(
        "standard: mean 0 and deviation 1; robust: by median and quartiles; none: as "
        "they are, so that columns in large units count most."
    ),
]
Missing = Annotated[
    Literal["error", "drop", "mean"],
    _table(
        "What to do with missing values: stop with an error, drop the row (its label "
        "is -1), or fill in the mean of the column."
    ),
]
Header = Annotated[
    YesNo | None,
    _table(
        "Whether the first line of a text file holds column names.",
        show_default="detected",
    ),
]
ZeroBased = Annotated[
    YesNo | None,
    _table(
        "Whether svmlight files count features from 0.",
        show_default="detected, or as in the fit",
    ),
]

# --- files and output -----------------------------------------------------------------

LABELS_HELP = (
    "Write the labels to this file: .csv (row,label), .npy or .parquet; - writes CSV "
    "to standard output."
)

Checkpoint = Annotated[
    str | None,
    _files(
        "Save the state of the fit to this file; the same command resumes from it.",
        metavar="FILE",
    ),
]
ModelOut = Annotated[str | None, _files("Save the model to this file.", metavar="FILE")]
LabelsOut = Annotated[str | None, _files(LABELS_HELP, metavar="FILE")]
ReportOut = Annotated[
    str | None,
    _files("Write a report on the clusters to this HTML file.", metavar="FILE"),
]
Json = Annotated[bool, _output("Print the result as one JSON object.", "--json")]
Quiet = Annotated[bool, _output("Print only warnings and errors.", "--quiet", "-q")]
QuietAnswer = Annotated[
    bool, _output("Print only the answer, warnings and errors.", "--quiet", "-q")
]
Verbose = Annotated[
    bool, _output("Print one line per stage and per iteration.", "--verbose", "-v")
]
Debug = Annotated[bool, _output("Show the traceback of an error.", "--debug")]
