"""``sketchmeans demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sketchmeans.cli.bars import duration
from sketchmeans.cli.output import check_can_write
from sketchmeans.cli.screen import Screen

PICTURE, REPORT = "sketchmeans-demo.png", "sketchmeans-demo.html"


def run(screen: Screen, out: str) -> None:
    """Cluster three examples, and leave a picture and a report."""
    from sketchmeans.cli.demo_cases import arms, compared, digits, rings

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"--out {out} should be a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PICTURE, REPORT):
        check_can_write("--out", str(folder / name))
    results = []
    for make in (rings, digits, arms):
        with screen.working(f"Clustering: {make.__name__}"):
            case = make()
            results.append((case, compared(case)))
    _say(screen, results)
    written = [
        path
        for path in (
            _picture(screen, results, folder / PICTURE),
            _report(screen, *results[1], folder / REPORT),
        )
        if path is not None
    ]
    if written:
        screen.say(f"\nWrote {' and '.join(written)}.")
    screen.json({"results": _plain(results), "files": written})


def _say(screen: Screen, results: list[Any]) -> None:
    rows = []
    for case, fits in results:
        for fit in fits:
            cost = getattr(fit.model, "cost_", None)
            rows.append(
                (
                    case.title if fit is fits[0] else "",
                    fit.method,
                    duration(fit.seconds),
                    "" if cost is None else f"{cost:.4f}",
                    f"{fit.nmi:.3f}",
                )
            )
    screen.table(("data", "method", "time", "cost W", "NMI"), rows, left=2)
    screen.say(
        "\nW is the mean squared distance to the centre in the feature space of the "
        "kernel;\nKMeans works in another space. NMI is 1 where the known groups are "
        "found."
    )


def _picture(screen: Screen, results: list[Any], path: Path) -> str | None:
    from sketchmeans.cli.demo_picture import draw

    try:
        with screen.working("Drawing the picture"):
            draw(results, path)
    except ImportError:
        screen.say("\nThe picture needs matplotlib: pip install sketchmeans[report]")
        return None
    return str(path)


def _report(screen: Screen, case: Any, fits: list[Any], path: Path) -> str | None:
    try:
        from sketchmeans.report import write_report

        with screen.working("Writing the report"):
            write_report(
                fits[-1].model,
                case.X,
                path,
                y=case.y,
                image_shape=(8, 8),
                title=f"{case.title}, clustered by {fits[-1].method}",
                command="sketchmeans demo",
            )
    except ImportError as error:
        screen.say(f"\nNo report: {error}")
        return None
    return str(path)


def _plain(results: list[Any]) -> list[dict[str, Any]]:
    return [
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
