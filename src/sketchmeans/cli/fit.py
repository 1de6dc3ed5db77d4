"""``sketchmeans fit`` and ``sketchmeans predict``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import typer

from sketchmeans.cli.columns import print_used_columns
from sketchmeans.cli.explain import (
    count_rows,
    describe_kernel,
    find_certificate,
    print_certificate,
    print_sizes,
)
from sketchmeans.cli.files import (
    LABELS,
    MODEL,
    REPORT,
    STREAM,
    check_outputs,
    make_clusterer,
    make_estimator,
    open_table,
    read_classes,
)
from sketchmeans.cli.labels import choose_beside, write_labels
from sketchmeans.cli.options import (
    EstimatorOptions,
    FileOptions,
    PrintOptions,
    TableOptions,
)
from sketchmeans.cli.plan import expect_duration
from sketchmeans.cli.predict import load_clusters
from sketchmeans.cli.progress import Display
from sketchmeans.cli.report import write_model_report
from sketchmeans.cli.screen import Screen, format_duration
from sketchmeans.cli.signals import finish_iteration

#: Numbers of clusters that -k auto tries.
COUNTS = range(2, 13)


def fit(
    data: str,
    n_clusters: str,
    *,
    out: list[str] | None = None,
    model: str | None = None,
    labels: str | None = None,
    report: str | None = None,
    checkpoint: str | None = None,
    like: str | None = None,
    certify: float | None = None,
    identifier: str | None = None,
    keep_columns: bool = False,
    table_options: TableOptions,
    file_options: FileOptions,
    estimator_options: EstimatorOptions,
    print_options: PrintOptions,
) -> None:
    """Cluster a table; write a model, labels and a report."""
    outputs = {"--model": model, "--labels": labels, "--report": report}
    _sort_outputs(outputs, out or [])
    screen = Screen(print_options, labels_on_output=outputs["--labels"] == STREAM)
    files = {**outputs, "--checkpoint": checkpoint}
    check_outputs(files, [data], labels=LABELS, report=REPORT)
    params = dict(vars(estimator_options))
    name = params.pop("estimator")
    k = _parse_count(n_clusters)
    estimator = make_estimator(name, k or 2, params)
    _check_meaning(name, estimator, checkpoint, certify)
    from sketchmeans import save
    from sketchmeans.cluster.segment_names import segment_names
    from sketchmeans.diagnostics import calibrate

    with open_table(data, file_options, screen) as table:
        clusterer = make_clusterer(table_options, estimator, table)
        beside = choose_beside(table, outputs["--labels"], identifier, keep_columns)
        earlier = None if like is None else _load_earlier(like, table)
        start = time.perf_counter()
        if k is None:
            k = _choose_count(screen, clusterer, table, estimator_options)
            clusterer.set_params(estimator__n_clusters=k)
        with Display(screen) as display, finish_iteration(checkpoint, screen) as saved:
            expect_duration(display, screen, clusterer, table)
            display.attach(clusterer).fit(table, checkpoint=saved)
        seconds = time.perf_counter() - start
        classes = read_classes(clusterer, table)
        rows = clusterer.prepare(table)  # once: text is looked through as it is opened
        _name_segments(screen, clusterer, rows)
        if earlier is not None:
            _match_segments(screen, clusterer, earlier, table)
        if outputs["--model"] is not None:
            calibrate(clusterer, rows)
        writers: dict[str, Callable[[str], object]] = {
            "--model": lambda file: save(clusterer, file),
            "--labels": lambda file: write_labels(
                clusterer.labels_, file, beside, segment_names(clusterer)
            ),
            "--report": lambda file: write_model_report(
                screen, clusterer, table, file, classes
            ),
        }
        failures = _write_outputs(screen, outputs, writers)
        proof = None
        if certify is not None:
            with Display(screen) as display:
                proof = find_certificate(
                    display, clusterer, rows, max_seconds=certify, random_state=0
                )
    result = _describe_fit(clusterer, seconds, classes)
    _print_fit(screen, clusterer, result)
    if proof is not None:
        screen.print()
        print_certificate(screen, proof)
        result["certificate"] = {**proof.to_dict(), "interval": proof.interval}
    _print_outputs(screen, result, outputs, failures)


def _check_meaning(
    name: str, estimator: Any, checkpoint: str | None, certify: float | None
) -> None:
    """Raise for an option that an estimator has no use for."""
    if (
        checkpoint is not None
        and "checkpoint" not in signature(estimator.fit).parameters
    ):
        raise typer.BadParameter(
            f"--checkpoint has no meaning for --estimator {name}; leave it out."
        )
    if certify is not None and name == "spectral":
        raise typer.BadParameter(
            "--certify has no meaning for --estimator spectral, whose result says how "
            "small a normalised cut can be; leave it out."
        )


def _name_segments(screen: Screen, model: Any, rows: Any) -> None:
    """Name the segments after what sets them apart; the fit is kept if that fails."""
    from sketchmeans.diagnostics.segments import name_fitted

    try:
        name_fitted(model, rows)
    except (OSError, ValueError, MemoryError) as error:
        screen.print_error(f"Segments have no names: {error}", "Warning", "yellow")


def _load_earlier(path: str, table: Any) -> Any:
    """Return the model whose segments are kept, if it can predict this table."""
    from sketchmeans import TableClusterer

    earlier = load_clusters(path)
    if not isinstance(earlier, TableClusterer):
        raise typer.BadParameter(
            f"--like {path} holds a {type(earlier).__name__}; it should be a model as "
            "fit --model writes it."
        )
    earlier.prepare(table)  # before the long work: an error lists missing columns
    return earlier


def _match_segments(screen: Screen, model: Any, earlier: Any, table: Any) -> None:
    """Give segments the labels and names of an earlier model, and say which are new."""
    from sketchmeans.cluster.segment_names import segment_names
    from sketchmeans.diagnostics import match_labels

    with screen.show_status("Matching segments"):
        found = match_labels(model, earlier, table)
    names, old = segment_names(model), segment_names(earlier)
    new = [names[j] for j in (found.old_labels < 0).nonzero()[0].tolist()]
    gone = [old[j] for j in found.dissolved]
    text = f"{len(names) - len(new):,} of {len(names):,} segments are as before"
    text += f"; new: {', '.join(new)}" if new else ""
    text += f"; gone: {', '.join(gone)}" if gone else ""
    screen.print(f"{text}.")


def _sort_outputs(outputs: dict[str, str | None], files: Sequence[str]) -> None:
    """Add files to what is written, each as what its ending says."""
    endings = {"--labels": (*LABELS, STREAM), "--report": REPORT, "--model": MODEL}
    for file in files:
        known = [name for name, ends in endings.items() if file.endswith(ends)]
        if not known:
            raise typer.BadParameter(
                f"--out {file} should end in .skm (model), {', '.join(LABELS)} "
                "(labels), .html or .xlsx (report)."
            )
        if outputs[known[0]] is not None:
            raise typer.BadParameter(
                f"--out {file}: {known[0]} {outputs[known[0]]} is written already."
            )
        outputs[known[0]] = file


def _parse_count(text: str) -> int | None:
    """Return the number of clusters that was typed; None for auto."""
    if text == "auto":
        return None
    if not (text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(
            f"--n-clusters {text} should be a whole number of at least 1, or auto."
        )
    return int(text)


def _choose_count(
    screen: Screen, model: Any, table: Any, options: EstimatorOptions
) -> int:
    """Return the number of clusters that is clear in a table, and say so."""
    from sketchmeans.diagnostics import choose_n_clusters

    with Display(screen) as display:
        rows = display.attach(model).fit_preparation(table).prepare(table)
        if len(rows) < 3 * COUNTS[0]:
            raise ValueError(
                f"-k auto needs at least {3 * COUNTS[0]} rows, but {rows.path} has "
                f"{len(rows)}."
            )
        with display.stage(f"Trying {COUNTS[0]} to {COUNTS[-1]} clusters"):
            found = choose_n_clusters(
                rows,
                [k for k in COUNTS if k <= len(rows) // 3],
                n_jobs=options.n_jobs,
                random_state=options.random_state,
            )
    screen.print(found.note)
    return found.n_clusters


def _write_outputs(
    screen: Screen,
    outputs: Mapping[str, str | None],
    writers: Mapping[str, Callable[[str], object]],
) -> dict[str, str]:
    """Write what was asked for; return why files could not be written.

    One that fails does not keep the others from being written.
    """
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
    from sketchmeans.cluster.segment_names import segment_names

    inner = model.estimator_
    result: dict[str, Any] = {
        "estimator": type(inner).__name__,
        "n_clusters": inner.n_clusters,
        "n_samples": len(model.labels_),
        "n_dropped": model.n_dropped_,
        "columns": model.columns_,
        "kinds": model.kinds_,
        "reasons": {column.name: column.reason for column in model.plan_},
        "column_weights": model.column_weights_,
        "seconds": seconds,
        "cost": model.cost_,
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "cluster_sizes": count_rows(model.cluster_sizes_),
        "exemplar_indices": model.exemplar_indices_,
        "segment_names": segment_names(model),
    }
    result |= describe_kernel(inner)
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
    if model.plan_:
        screen.print()
        print_used_columns(screen, model)
    screen.print()
    sizes, exemplars = result["cluster_sizes"], result["exemplar_indices"]
    print_sizes(screen, sizes, exemplars, result["segment_names"])


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
