"""``sketchmeans fit``."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import typer

from sketchmeans.cli.bars import duration, watched
from sketchmeans.cli.certify import say_certificate
from sketchmeans.cli.data import Reading, built_estimator, readable, table_clusterer
from sketchmeans.cli.interrupt import finishing_pass
from sketchmeans.cli.output import (
    check_apart,
    check_can_write,
    check_labels,
    check_report,
    write_labels,
)
from sketchmeans.cli.report import known_classes, written_report
from sketchmeans.cli.screen import Screen


@dataclass(frozen=True)
class Outputs:
    """Files that a fit leaves; None for those that nobody asked for."""

    model: str | None
    labels: str | None
    report: str | None
    checkpoint: str | None

    def check(self, data: str) -> None:
        """Raise where one of them could not be written, or would replace another."""
        check_can_write("--model", self.model)
        check_labels("--labels", self.labels)
        check_report("--report", self.report)
        check_can_write("--checkpoint", self.checkpoint)
        files = {f"--{field.name}": getattr(self, field.name) for field in fields(self)}
        check_apart(files, [data])

    @property
    def files(self) -> list[str]:
        """The files that are there when all is done."""
        return [f for f in (self.model, self.labels, self.report) if f and f != "-"]


def run(
    screen: Screen,
    data: str,
    n_clusters: int,
    estimator: str,
    params: Mapping[str, Any],
    choice: Mapping[str, Any],
    outputs: Outputs,
    reading: Reading,
) -> None:
    """Cluster a table, say what came out, and write it."""
    outputs.check(data)
    built = built_estimator(estimator, n_clusters, params)
    has_checkpoints = "checkpoint" in signature(built.fit).parameters
    if outputs.checkpoint is not None and not has_checkpoints:
        raise typer.BadParameter(
            f"--checkpoint means nothing to --estimator {estimator}; leave it out."
        )
    with readable(data, screen, reading) as table, screen.warnings():
        model = watched(table_clusterer(built, table, **choice), screen)
        start = time.perf_counter()
        with finishing_pass(outputs.checkpoint, screen) as checkpoint:
            model.fit(table, checkpoint=checkpoint)
        seconds = time.perf_counter() - start
        classes = known_classes(model, table)
        failures, proved = _write(screen, model, table, outputs, classes)
    found = _found(model, seconds, classes)
    _say(screen, model, found)
    if proved is not None:
        screen.say()
        say_certificate(screen, proved)
        found["certificate"] = proved.to_dict()
    written = [file for file in outputs.files if file not in failures]
    if written:
        screen.say(f"\nWrote {', '.join(written)}.")
    elif outputs.labels is None and not failures:
        screen.say(
            "\nNothing was written: --model, --labels and --report say what to keep."
        )
    screen.json({**found, "files": written})
    if failures:
        reasons = "; ".join(f"{file}: {reason}" for file, reason in failures.items())
        raise OSError(f"{reasons}.")


def _write(
    screen: Screen, model: Any, table: Any, outputs: Outputs, classes: Any
) -> tuple[dict[str, str], Any]:
    """Write what was asked for; return the files that could not be, with the reason.

    One that fails does not keep the others from being written.  The certificate of the
    report is returned, too.
    """
    from sketchmeans import save

    writers: dict[str | None, Callable[[str], Any]] = {
        outputs.model: lambda file: save(model, file),
        outputs.labels: lambda file: write_labels(model.labels_, file),
        outputs.report: lambda file: written_report(
            screen, model, table, file, classes=classes
        ),
    }
    failures, proved = {}, None
    for file, write in writers.items():
        if file is None:
            continue
        try:
            written = write(file)
        except BrokenPipeError:  # of labels that go to standard output
            raise
        except (OSError, ValueError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            failures[file] = reason.rstrip(".")
        else:
            screen.written.append(file)
            proved = getattr(written, "certificate", proved)
    return failures, proved


def command_line() -> str:
    """Return the command that runs, as it can be typed again."""
    return shlex.join(["sketchmeans", *sys.argv[1:]])


def _found(model: Any, seconds: float, classes: Any) -> dict[str, Any]:
    """Return the result by name."""
    inner = model.estimator_
    found: dict[str, Any] = {
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
        found |= {"kernel": inner.kernel, "gamma": inner.gamma_}
    if hasattr(inner, "landmarks_"):
        found["n_landmarks"] = inner.landmarks_.shape[0]
    if classes is not None:
        from sketchmeans.diagnostics import agreement

        labels = model.labels_[model.labels_ >= 0]
        with_classes = agreement(classes, labels, inner.n_clusters)
        found |= {
            "accuracy": with_classes.accuracy,
            "adjusted_rand": with_classes.adjusted_rand,
            "normalized_mutual_information": (
                with_classes.normalized_mutual_information
            ),
        }
    return found


def _say(screen: Screen, model: Any, found: Mapping[str, Any]) -> None:
    n, k, d = found["n_samples"], found["n_clusters"], len(found["columns"])
    screen.say(
        f"Clustered {n:,} rows of {d:,} columns into {k:,} clusters in "
        f"{duration(found['seconds'])}.",
        style="bold",
    )
    lines = {"cost": f"{found['cost']:.6g}  (mean squared distance to the centre)"}
    passes = f"{found['n_iter']:,} over all rows"
    lines["passes"] = passes if found["converged"] else f"{passes}, not converged"
    if "kernel" in found:
        width = found["gamma"]
        gamma = "" if width is None else f", gamma {width:.4g}"
        lines["kernel"] = f"{found['kernel']}{gamma}"
    if "n_landmarks" in found:
        lines["landmarks"] = f"{found['n_landmarks']:,}, {model.estimator.landmarks}"
    if found["n_dropped"]:
        lines["left out"] = (
            f"{found['n_dropped']:,} rows with missing values (label -1)"
        )
    if "accuracy" in found:
        lines["known classes"] = (
            f"{found['accuracy']:.1%} of rows match, NMI "
            f"{found['normalized_mutual_information']:.3f}, ARI "
            f"{found['adjusted_rand']:.3f}"
        )
    screen.pairs(lines)
    screen.say()
    say_sizes(screen, found["cluster_sizes"], found["exemplar_indices"])


def _bar_length(size: float, largest: float) -> int:
    """Return up to 20; a cluster that has rows has a bar, an empty one has none."""
    return max(round(20 * size / largest), 1) if size else 0


#: Most clusters that are listed.
_LISTED = 30


def say_sizes(screen: Screen, sizes: Any, exemplars: Any) -> None:
    """Print the size of every cluster."""
    total, largest = float(sizes.sum()), float(sizes.max())
    order = (-sizes).argsort(kind="stable")[:_LISTED]
    rows = [
        (
            str(j),
            "█" * _bar_length(float(sizes[j]), largest),
            f"{sizes[j]:,.0f}",
            f"{sizes[j] / total:.1%}",
            f"{exemplars[j]:,}" if sizes[j] else "",
        )
        for j in order.tolist()
    ]
    screen.table(("cluster", "", "rows", "share", "typical row"), rows, left=2)
    if len(sizes) > _LISTED:
        screen.say(f"... and {len(sizes) - _LISTED:,} smaller ones")
