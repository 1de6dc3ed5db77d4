"""The options that commands share, with the words of the Python interface."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

_MODEL = "How to cluster"
_TABLE = "The table"
_FILES = "Files"
_TALK = "What is printed"

EstimatorName = Literal["nystrom", "exact", "sketched"]
ScaleName = Literal["standard", "robust", "none"]
MissingName = Literal["error", "drop", "mean"]
YesNo = Literal["yes", "no"]

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a folder or a pattern: .parquet, .csv, .tsv, .arrow, .feather, "
        ".npy, .npz, .svmlight; - is CSV from standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A file that fit --model wrote.", show_default=False
    ),
]
NClusters = Annotated[
    int,
    typer.Option(
        "--n-clusters",
        "-k",
        metavar="K",
        help="Number of clusters.",
        rich_help_panel=_MODEL,
        min=1,
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="rbf, laplacian, polynomial, linear, cosine, sigmoid, arc-cosine, chi2. ",
        show_default="rbf",
        rich_help_panel=_MODEL,
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Bandwidth: a number, mean, median or scale.",
        show_default="mean",
        rich_help_panel=_MODEL,
    ),
]
Degree = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Of the polynomial kernel.",
        show_default="3",
        rich_help_panel=_MODEL,
    ),
]
Coef0 = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Of the polynomial and sigmoid kernels.",
        show_default="1",
        rich_help_panel=_MODEL,
    ),
]
Landmarks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How landmarks are chosen: uniform, kmeans++, ridge-leverage, rpcholesky, "
        "...",
        show_default="uniform",
        rich_help_panel=_MODEL,
    ),
]
NLandmarks = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Number of landmarks, or auto.", rich_help_panel=_MODEL
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Eigen-directions of the landmarks to keep.",
        show_default="all",
        rich_help_panel=_MODEL,
    ),
]
Reducer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Reduce the columns first: svd, sign, sampling, laplacian.",
        rich_help_panel=_MODEL,
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="First centres: random, k-means++, greedy-k-means++, local-search.",
        rich_help_panel=_MODEL,
    ),
]
NInit = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Number of restarts, or auto.", rich_help_panel=_MODEL
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most passes in each stage.",
        show_default="300",
        rich_help_panel=_MODEL,
    ),
]
Tol = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Relative drop of the cost at which passes end.",
        show_default="0.0001",
        rich_help_panel=_MODEL,
    ),
]
Estimator = Annotated[
    EstimatorName,
    typer.Option(
        help="nystrom: kernel k-means on landmarks; exact: on all pairs of rows, for "
        "up to some ten thousand; sketched: plain k-means on sketched columns.",
        rich_help_panel=_MODEL,
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory to use, such as 2GB.",
        show_default="half of what is free",
        rich_help_panel=_MODEL,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "--n-jobs",
        metavar="N",
        help="Threads.",
        show_default="all cores",
        rich_help_panel=_MODEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        "--random-state",
        metavar="N",
        help="The same seed gives the same labels.",
        rich_help_panel=_MODEL,
        min=0,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns to cluster by: names, separated by commas; numbers from 0 where "
        "there are no names.",
        show_default="all",
        rich_help_panel=_TABLE,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns to leave out, separated by commas.",
        rich_help_panel=_TABLE,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A column of known classes: left out, and compared with the clusters.",
        rich_help_panel=_TABLE,
    ),
]
Scale = Annotated[
    ScaleName,
    typer.Option(
        help="standard: mean 0, deviation 1; robust: by median and quartiles; none: "
        "columns in large units then count most.",
        rich_help_panel=_TABLE,
    ),
]
Missing = Annotated[
    MissingName,
    typer.Option(
        help="Rows with missing values: an error, left out (label -1), or filled with "
        "the mean.",
        rich_help_panel=_TABLE,
    ),
]
Header = Annotated[
    YesNo | None,
    typer.Option(
        help="Whether text starts with the names of the columns.",
        show_default="found out",
        rich_help_panel=_TABLE,
    ),
]
ZeroBased = Annotated[
    YesNo | None,
    typer.Option(
        help="Whether features of svmlight files are counted from 0.",
        show_default="found out, or as in the fit",
        rich_help_panel=_TABLE,
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Save what is done here; the same command resumes from it.",
        rich_help_panel=_FILES,
    ),
]
ModelOut = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Save the model here.", rich_help_panel=_FILES),
]
LabelsOut = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the labels here: .csv (row,label), .npy or .parquet; - is CSV on "
        "standard output.",
        rich_help_panel=_FILES,
    ),
]
ReportOut = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write a report of the clusters here, as one HTML file.",
        rich_help_panel=_FILES,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object.", rich_help_panel=_TALK)
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Nothing but errors and warnings.", rich_help_panel=_TALK
    ),
]
QuietAnswer = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Nothing but the answer, errors and warnings.",
        rich_help_panel=_TALK,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="A line a stage and a pass.", rich_help_panel=_TALK
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error is from.", rich_help_panel=_TALK),
]
