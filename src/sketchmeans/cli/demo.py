"""``sketchmeans demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sketchmeans.cli.files import check_outputs
from sketchmeans.cli.options import PrintOptions
from sketchmeans.cli.screen import Screen, format_duration

PICTURE, REPORT = "sketchmeans-demo.png", "sketchmeans-demo.html"


def demo(
    out: str = ".", as_json: bool = False, quiet: bool = False, debug: bool = False
) -> None:
    """Cluster three examples; write a picture and a report."""
    screen = Screen(PrintOptions(as_json, quiet, debug=debug))
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"--out {out} should be a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PICTURE, REPORT):
        check_outputs({"--out": str(folder / name)}, [])
    from sketchmeans.cli.demo_cases import (
        compare_methods,
        make_arms,
        make_digits,
        make_rings,
    )

    results = []
    for make in (make_rings, make_digits, make_arms):
        with screen.show_status("Clustering"):
            case = make()
            results.append((case, compare_methods(case)))
    _print_results(screen, results)
    files: list[str] = []
    try:
        _write_files(screen, results, folder)
        files = [str(folder / PICTURE), str(folder / REPORT)]
        screen.print(f"\nWrote {' and '.join(files)}.")
    except ImportError as error:
        screen.print(f"\nNo picture and no report: {error}")
    found = [
        {
            "data": case.name,
            "n_samples": len(case.X),
            "method": fit.method,
            "seconds": fit.seconds,
            "cost": getattr(fit.model, "cost_", None),
            "nmi": fit.nmi,
        }
        for case, fits in results
        for fit in fits
    ]
    screen.print_json({"results": found, "files": files})


def _print_results(screen: Screen, results: list[Any]) -> None:
    rows = [
        (
            case.title if fit is fits[0] else "",
            fit.method,
            format_duration(fit.seconds),
            f"{fit.model.cost_:.4f}" if hasattr(fit.model, "cost_") else "",
            f"{fit.nmi:.3f}",
        )
        for case, fits in results
        for fit in fits
    ]
    screen.print_table(("data", "method", "time", "cost W", "NMI"), rows, left=2)
    screen.print(
        "\nW is the mean squared distance to the centre in the feature space of the "
        "kernel;\nKMeans works in another space. NMI is 1 where the groups are found."
    )


def _write_files(screen: Screen, results: list[Any], folder: Path) -> None:
    """Draw all results, and write a report on the digits."""
    from sketchmeans.cli.demo_cases import draw_results
    from sketchmeans.report import write_report

    with screen.show_status("Drawing the picture"):
        draw_results(results, folder / PICTURE)
    case, fits = results[1]
    with screen.show_status("Writing the report"):
        write_report(
            fits[-1].model,
            case.X,
            folder / REPORT,
            y=case.y,
            image_shape=(8, 8),
            title=f"{case.title}, clustered by {fits[-1].method}",
            command="sketchmeans demo",
        )
