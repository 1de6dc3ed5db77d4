"""The commands, with their options; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sketchmeans.cli import options as o
from sketchmeans.cli.screen import Screen, current

app = typer.Typer(
    name="sketchmeans",
    help="Cluster tables of any size: k-means and kernel k-means through sketches.",
    epilog="Exit codes: 0 done, 1 bad data, 2 bad usage, 130 stopped by Ctrl-C, 143 by "
    "SIGTERM.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from sketchmeans import __version__

        typer.echo(f"sketchmeans {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _screen(
    as_json: bool,
    quiet: bool,
    verbose: bool,
    debug: bool,
    *,
    stream: bool = False,
    answers: bool = False,
) -> Screen:
    """Return the screen of a command.

    `stream` says that standard output is taken, `answers` that what is printed is what
    the command is for.
    """
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other.")
    if stream and as_json:
        raise typer.BadParameter("--json and labels cannot both go to standard output.")
    screen = Screen(
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
        debug=debug,
        on_error=stream,
        answers=answers,
    )
    current.set(screen)
    return screen


@app.command()
def fit(
    data: o.Data,
    n_clusters: o.NClusters,
    model: o.ModelOut = None,
    labels: o.LabelsOut = None,
    report: o.ReportOut = None,
    checkpoint: o.Checkpoint = None,
    columns: o.Columns = None,
    exclude: o.Exclude = None,
    label_column: o.LabelColumn = None,
    scale: o.Scale = "standard",
    missing: o.Missing = "error",
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    estimator: o.Estimator = "nystrom",
    kernel: o.Kernel = None,
    gamma: o.Gamma = None,
    degree: o.Degree = None,
    coef0: o.Coef0 = None,
    landmarks: o.Landmarks = None,
    n_landmarks: o.NLandmarks = None,
    rank: o.Rank = None,
    reducer: o.Reducer = None,
    init: o.Init = None,
    n_init: o.NInit = None,
    max_iter: o.MaxIter = None,
    tol: o.Tol = None,
    max_memory: o.MaxMemory = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Cluster a table; write a model, labels and a report."""
    from sketchmeans.cli import fit as command
    from sketchmeans.cli.data import Reading, number_or_word, whole_or_auto

    screen = _screen(as_json, quiet, verbose, debug, stream=labels == "-")
    params: dict[str, Any] = {
        "kernel": kernel,
        "gamma": number_or_word(gamma),
        "degree": degree,
        "coef0": coef0,
        "landmarks": landmarks,
        "n_landmarks": number_or_word(n_landmarks),
        "rank": rank,
        "reducer": reducer,
        "init": init,
        "n_init": whole_or_auto("--n-init", n_init),
        "max_iter": max_iter,
        "tol": tol,
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    table = {
        "columns": columns,
        "exclude": exclude,
        "label_column": label_column,
        "scale": scale,
        "missing": missing,
    }
    outputs = command.Outputs(model, labels, report, checkpoint)
    reading = Reading(header, zero_based)
    command.run(screen, data, n_clusters, estimator, params, table, outputs, reading)


@app.command()
def predict(
    model: o.ModelFile,
    data: o.Data,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write the labels here: .csv (row,label), .npy or .parquet; - is CSV "
            "on standard output.",
        ),
    ] = "-",
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Label the rows of a table with a saved model."""
    from sketchmeans.cli import predict as command
    from sketchmeans.cli.data import Reading

    screen = _screen(as_json, quiet, verbose, debug, stream=out == "-")
    command.run(screen, model, data, out, Reading(header, zero_based))


@app.command()
def report(
    model: o.ModelFile,
    data: o.Data,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Write the report here.")
    ] = "report.html",
    image_shape: Annotated[
        str | None,
        typer.Option(
            metavar="HEIGHTxWIDTH",
            help="Rows are images of this shape, such as 28x28, and shown as such.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Explain a saved model on a table in pictures, as one HTML file."""
    from sketchmeans.cli import report as command
    from sketchmeans.cli.data import Reading

    screen = _screen(as_json, quiet, verbose, debug)
    reading = Reading(header, zero_based)
    command.run(screen, model, data, out, image_shape, title, reading)


@app.command()
def certify(
    model: o.ModelFile,
    data: o.Data,
    seconds: Annotated[
        float,
        typer.Option(metavar="S", help="Time to look for a proof.", min=0.0),
    ] = 60.0,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="R", help="Stop when the cost is proved to be at most R × the best."
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="Probability of what is left to chance if time is short; 1 leaves "
            "nothing to chance.",
        ),
    ] = 0.95,
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.QuietAnswer = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Prove how far a saved model is from the best possible clustering."""
    from sketchmeans.cli import certify as command
    from sketchmeans.cli.data import Reading

    screen = _screen(as_json, quiet, verbose, debug, answers=True)
    options = {
        "max_seconds": seconds,
        "ratio": ratio,
        "confidence": confidence,
        "random_state": seed,
    }
    command.run(screen, model, data, options, Reading(header, zero_based))


@app.command()
def compare(
    data: o.Data,
    n_clusters: o.NClusters,
    columns: o.Columns = None,
    exclude: o.Exclude = None,
    label_column: o.LabelColumn = None,
    scale: o.Scale = "standard",
    missing: o.Missing = "error",
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    kernel: o.Kernel = None,
    gamma: o.Gamma = None,
    landmarks: Annotated[
        str,
        typer.Option(
            help="Landmark selectors to compare, separated by commas, or all."
        ),
    ] = "uniform,kmeans++,ridge-leverage,rpcholesky",
    n_landmarks: o.NLandmarks = None,
    max_memory: o.MaxMemory = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.QuietAnswer = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Compare ways to choose landmarks, and plain k-means, on a table."""
    from sketchmeans.cli import compare as command
    from sketchmeans.cli.data import Reading, number_or_word

    screen = _screen(as_json, quiet, verbose, debug, answers=True)
    params = {
        "kernel": kernel,
        "gamma": number_or_word(gamma),
        "n_landmarks": number_or_word(n_landmarks),
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    table = {
        "columns": columns,
        "exclude": exclude,
        "label_column": label_column,
        "scale": scale,
        "missing": missing,
    }
    reading = Reading(header, zero_based)
    command.run(screen, data, n_clusters, landmarks, params, table, reading)


@app.command()
def choose(
    data: o.Data,
    n_clusters: Annotated[
        str,
        typer.Option(
            "--n-clusters",
            "-k",
            help="Numbers of clusters to try: 2-12, or 5,10,20; or one, to choose only "
            "the bandwidth.",
        ),
    ] = "2-12",
    gamma: Annotated[
        str | None,
        typer.Option(
            help="Bandwidths to try, separated by commas; or one, to choose only the "
            "number of clusters.",
            show_default="7 around the mean",
            metavar="NUMBERS",
        ),
    ] = None,
    kernel: o.Kernel = None,
    columns: o.Columns = None,
    exclude: o.Exclude = None,
    label_column: o.LabelColumn = None,
    scale: o.Scale = "standard",
    missing: o.Missing = "error",
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    report: o.ReportOut = None,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.QuietAnswer = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Suggest a number of clusters and a bandwidth, with the reason."""
    from sketchmeans.cli import choose as command
    from sketchmeans.cli.data import Reading

    screen = _screen(as_json, quiet, verbose, debug, answers=True)
    table = {
        "columns": columns,
        "exclude": exclude,
        "label_column": label_column,
        "scale": scale,
        "missing": missing,
    }
    params = {"kernel": kernel, "n_jobs": jobs, "random_state": seed}
    reading = Reading(header, zero_based)
    command.run(screen, data, n_clusters, gamma, params, table, report, reading)


@app.command()
def info(
    file: Annotated[
        str,
        typer.Argument(metavar="MODEL|DATA", help="A model, or a table; - is CSV."),
    ],
    header: o.Header = None,
    zero_based: o.ZeroBased = None,
    as_json: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Say what is in a model file or a table."""
    from sketchmeans.cli import info as command
    from sketchmeans.cli.data import Reading

    screen = _screen(as_json, False, False, debug)
    command.run(screen, file, Reading(header, zero_based))


@app.command()
def demo(
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Leave the picture and report here.")
    ] = ".",
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Cluster three examples: a table, a picture and a report."""
    from sketchmeans.cli import demo as command

    command.run(_screen(as_json, quiet, False, debug), out)
