"""``sketchmeans demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sketchmeans.cli.files import check_outputs
from sketchmeans.cli.options import PrintOptions
from sketchmeans.cli.screen import Screen, format_duration

PICTURE, REPORT = "sketchmeans-demo.png", "sketchmeans-demo.html"
TABLE, TABLE_REPORT = "customers.csv", "customers.html"


def demo(
    out: str = ".", as_json: bool = False, quiet: bool = False, debug: bool = False
) -> None:
    """Find segments of customers and clusters of any shape; write pictures."""
    screen = Screen(PrintOptions(as_json, quiet, debug=debug))
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"--out {out} should be a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PICTURE, REPORT, TABLE, TABLE_REPORT):
        check_outputs({"--out": str(folder / name)}, [])
    from sketchmeans.cli.demo_cases import (
        cluster_customers,
        compare_methods,
        make_arms,
        make_digits,
        make_rings,
    )

    with screen.show_status("Finding segments of customers"):
        customers = cluster_customers(folder / TABLE)
    _print_customers(screen, customers)
    results = []
    for make in (make_rings, make_digits, make_arms):
        with screen.show_status("Clustering"):
            case = make()
            results.append((case, compare_methods(case)))
    _print_results(screen, results)
    files = [str(customers.path)]
    try:
        _write_files(screen, customers, results, folder)
        files += [str(folder / name) for name in (TABLE_REPORT, PICTURE, REPORT)]
    except ImportError as error:
        screen.print(f"\nNo picture and no report: {error}")
    screen.print(f"\nWrote {', '.join(files)}.")
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
    segments = {
        "columns": customers.model.columns_,
        "names": customers.found.names,
        "sizes": customers.model.cluster_sizes_,
        "medians": customers.medians,
        "adjusted_rand": customers.adjusted_rand,
    }
    screen.print_json({"customers": segments, "results": found, "files": files})


def _print_customers(screen: Screen, customers: Any) -> None:
    from sketchmeans.cli.demo_cases import NUMBERS

    rows = [
        (
            segment.name,
            f"{segment.size:,}",
            f"{segment.share:.0%}",
            *(f"{value:,.0f}" for value in customers.medians[segment.label]),
        )
        for segment in customers.found.by_size()
    ]
    titles = [f"median {name}" for name in NUMBERS]
    n_rows = customers.found.n_rows
    screen.print(f"Customers: {n_rows:,} rows of {customers.path}", style="bold")
    screen.print_table(("segment", "customers", "share", *titles), rows)
    screen.print(
        f"\nThe adjusted Rand index with the four planted segments is "
        f"{customers.adjusted_rand:.2f} (1 for the same).\n"
    )


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


def _write_files(
    screen: Screen, customers: Any, results: list[Any], folder: Path
) -> None:
    """Write a report on the customers; draw all shapes, and a report on the digits."""
    from sketchmeans.cli.demo_cases import draw_results
    from sketchmeans.report import write_report

    with screen.show_status("Writing the report on customers"):
        write_report(
            customers.model,
            str(customers.path),
            folder / TABLE_REPORT,
            y=customers.segments,
            title="Segments of customers",
            command=f"sketchmeans fit {customers.path} -k 4",
        )
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
