"""``sketchmeans fit`` and ``sketchmeans predict``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any

import typer

from sketchmeans.cli import options as o
from sketchmeans.cli.data import (
    STREAM,
    make_clusterer,
    make_estimator,
    open_model_rows,
    open_table,
    parse_count,
    parse_number,
    read_classes,
)
from sketchmeans.cli.output import LABELS, REPORT, check_outputs, write_labels
from sketchmeans.cli.progress import Display
from sketchmeans.cli.report import write_model_report
from sketchmeans.cli.screen import Screen, format_duration
from sketchmeans.cli.signals import finish_iteration

#: Most clusters that are listed.
_MAX_LISTED = 30


def fit(
    data: o.Data,
    n_clusters: o.NClusters,
    *,
    model: o.ModelOut = None,
    labels: o.LabelsOut = None,
    report: o.ReportOut = None,
    checkpoint: o.CheckpointOut = None,
    table_options: o.TableOptions,
    file_options: o.FileOptions,
    estimator_options: o.EstimatorOptions,
    print_options: o.PrintOptions,
) -> None:
    """Cluster a table; write a model, labels and a report."""
    screen = Screen(print_options, labels_on_output=labels == STREAM)
    outputs = {"--model": model, "--labels": labels, "--report": report}
    files = {**outputs, "--checkpoint": checkpoint}
    check_outputs(files, [data], {"--labels": LABELS, "--report": REPORT})
    typed = vars(estimator_options)
    params = {
        **typed,
        "gamma": parse_number(typed["gamma"]),
        "n_landmarks": parse_number(typed["n_landmarks"]),
        "n_init": parse_count("--n-init", typed["n_init"]),
        "n_neighbors": parse_count("--n-neighbors", typed["n_neighbors"]),
    }
    name = params.pop("estimator")
    estimator = make_estimator(name, n_clusters, params)
    known = signature(estimator.fit).parameters
    if checkpoint is not None and "checkpoint" not in known:
        raise typer.BadParameter(
            f"--checkpoint has no meaning for --estimator {name}; leave it out."
        )
    with open_table(data, file_options, screen) as table:
        clusterer = make_clusterer(table_options, estimator, table)
        start = time.perf_counter()
        with (
            Display(screen) as display,
            finish_iteration(checkpoint, screen) as saved,
        ):
            display.attach(clusterer).fit(table, checkpoint=saved)
        seconds = time.perf_counter() - start
        classes = read_classes(clusterer, table)
        failures = _write_outputs(screen, clusterer, table, outputs, classes)
    result = _describe_fit(clusterer, seconds, classes)
    _print_fit(screen, clusterer, result)
    _print_outputs(screen, result, outputs, failures)


def _write_outputs(
    screen: Screen,
    model: Any,
    table: Any,
    outputs: Mapping[str, str | None],
    classes: Any,
) -> dict[str, str]:
    """Write what was asked for; return why files could not be written.

    One that fails does not keep the others from being written.
    """
    from sketchmeans import save

    writers: dict[str, Callable[[str], None]] = {
        "--model": lambda file: save(model, file),
        "--labels": lambda file: write_labels(model.labels_, file),
        "--report": lambda file: write_model_report(
            screen, model, table, file, classes=classes
        ),
    }
    failures = {}
    for option, file in outputs.items():
        if file is None:
            continue
        try:
            writers[option](file)
        except BrokenPipeError:  # of labels on standard output
            raise
        except (OSError, ValueError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            failures[file] = reason.rstrip(".")
        else:
            screen.written.append(file)
    return failures


def _describe_fit(model: Any, seconds: float, classes: Any) -> dict[str, Any]:
    """Return the result by name."""
    inner = model.estimator_
    result: dict[str, Any] = {
        "estimator": type(inner).__name__,
        "n_clusters": inner.n_clusters,
        "n_samples": len(model.labels_),
        "n_dropped": model.n_dropped_,
        "columns": model.columns_,
        "seconds": seconds,
        "cost": model.cost_,
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "cluster_sizes": model.cluster_sizes_,
        "exemplar_indices": model.exemplar_indices_,
    }
    if hasattr(inner, "kernel_"):
        result |= {"kernel": inner.kernel, "gamma": inner.gamma_}
    if hasattr(inner, "landmarks_"):
        result["n_landmarks"] = inner.landmarks_.shape[0]
    if hasattr(inner, "ncut_"):
        result |= {
            "n_neighbors": inner.n_neighbors_,
            "ncut": inner.ncut_,
            "ncut_bound": inner.ncut_bound_,
        }
    if classes is not None:
        from sketchmeans.diagnostics import agreement

        labels = model.labels_[model.labels_ >= 0]
        found = agreement(classes, labels, inner.n_clusters)
        for name in ("accuracy", "adjusted_rand", "normalized_mutual_information"):
            result[name] = getattr(found, name)
    return result


def _print_fit(screen: Screen, model: Any, result: Mapping[str, Any]) -> None:
    n, k, d = result["n_samples"], result["n_clusters"], len(result["columns"])
    screen.print(
        f"Clustered {n:,} rows of {d:,} columns into {k:,} clusters in "
        f"{format_duration(result['seconds'])}.",
        style="bold",
    )
    lines = {"cost": f"{result['cost']:.6g}  (mean squared distance to the centre)"}
    if "ncut" in result:
        least = f"no {k:,} clusters have less than {result['ncut_bound']:.4g}"
        lines = {"normalised cut": f"{result['ncut']:.4g}  ({least})"}
    iterations = f"{result['n_iter']:,} over all rows"
    not_converged = "" if result["converged"] else ", not converged"
    lines["iterations"] = f"{iterations}{not_converged}"
    if "kernel" in result:
        width = result["gamma"]
        gamma = "" if width is None else f", gamma {width:.4g}"
        lines["kernel"] = f"{result['kernel']}{gamma}"
    if "n_landmarks" in result:
        how = getattr(model.estimator, "landmarks", "centroids")
        lines["landmarks"] = f"{result['n_landmarks']:,}, {how}"
    if "n_neighbors" in result:
        lines["neighbours"] = f"{result['n_neighbors']:,} landmarks for each row"
    if result["n_dropped"]:
        lines["left out"] = (
            f"{result['n_dropped']:,} rows with missing values (label -1)"
        )
    if "accuracy" in result:
        lines["known classes"] = (
            f"{result['accuracy']:.1%} of rows match, NMI "
            f"{result['normalized_mutual_information']:.3f}, ARI "
            f"{result['adjusted_rand']:.3f}"
        )
    screen.print_pairs(lines)
    screen.print()
    print_sizes(screen, result["cluster_sizes"], result["exemplar_indices"])


def _print_outputs(
    screen: Screen,
    result: Mapping[str, Any],
    outputs: Mapping[str, str | None],
    failures: Mapping[str, str],
) -> None:
    """Print which files were written; raise OSError if some could not be."""
    files = [f for f in outputs.values() if f not in (None, STREAM, *failures)]
    if files:
        screen.print(f"\nWrote {', '.join(map(str, files))}.")
    elif outputs["--labels"] is None and not failures:
        screen.print(
            "\nNothing was written; use --model, --labels or --report to keep results."
        )
    screen.print_json({**result, "files": files})
    if failures:
        reasons = "; ".join(f"{file}: {reason}" for file, reason in failures.items())
        raise OSError(f"{reasons}.")


def print_sizes(screen: Screen, sizes: Any, exemplars: Any) -> None:
    """Print the size of every cluster, with bars of up to 20 characters."""
    total, largest = float(sizes.sum()), float(sizes.max())
    rows = [
        (
            str(j),
            "█" * max(round(20 * sizes[j] / largest), int(sizes[j] > 0)),
            f"{sizes[j]:,.0f}",
            f"{sizes[j] / total:.1%}",
            f"{exemplars[j]:,}" if sizes[j] else "",
        )
        for j in (-sizes).argsort(kind="stable")[:_MAX_LISTED].tolist()
    ]
    screen.print_table(("cluster", "", "rows", "share", "typical row"), rows, left=2)
    if len(sizes) > _MAX_LISTED:
        screen.print(f"... and {len(sizes) - _MAX_LISTED:,} smaller clusters")


def predict(
    model: o.ModelFile,
    data: o.Data,
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help=o.LABELS_HELP)] = STREAM,
    file_options: o.FileOptions,
    print_options: o.PrintOptions,
) -> None:
    """Label the rows of a table with a saved model."""
    screen = Screen(print_options, labels_on_output=out == STREAM)
    check_outputs({"--out": out}, [model, data], {"--out": LABELS})
    from sketchmeans import TableClusterer, load
    from sketchmeans.cli.counted_rows import CountedTable

    fitted = load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which has no clusters."
        )
    with (
        open_table(data, file_options, screen) as table,
        Display(screen) as display,
    ):
        start = time.perf_counter()
        display.next("Labelling rows")
        # Rows with missing values are found first.
        n_passes = 2 if getattr(fitted, "missing", None) == "drop" else 1
        rows: Any = CountedTable(table, display, n_passes)
        if not isinstance(fitted, TableClusterer):
            rows = open_model_rows(fitted, rows)
        labels = fitted.predict(rows)
        display.finish()
        seconds = time.perf_counter() - start
    dropped = int((labels < 0).sum())
    write_labels(labels, out)
    files = [] if out == STREAM else [out]
    screen.print_json(
        {
            "n_samples": len(labels),
            "n_dropped": dropped,
            "seconds": seconds,
            "files": files,
        }
    )
    if files or screen.verbose:
        note = f"; {dropped:,} with missing values have the label -1" if dropped else ""
        where = f" Wrote {out}." if files else ""
        took = format_duration(seconds)
        screen.print(f"Labelled {len(labels):,} rows in {took}{note}.{where}")
