"""What has changed since a fit, as one HTML file: nothing is computed here."""

from __future__ import annotations

import os
from typing import Any

from sketchmeans.diagnostics import ColumnChange, Drift
from sketchmeans.numerics.atomic_file import check_can_write, open_atomic
from sketchmeans.report.drawing import Download, make_csv
from sketchmeans.report.page import load_template
from sketchmeans.report.words import format_count, format_share

#: Columns on the page: those that moved, and so many others.
_OTHER_COLUMNS = 40
#: Most changes in words; the tables hold all.
_SENTENCES = 12
_WHAT = {"missing": "missing values", "new levels": "new values"}


def write_drift_report(
    found: Drift,
    path: str | os.PathLike[str],
    *,
    title: str = "What has changed since the fit",
    command: str | None = None,
) -> None:
    """Write what `diagnostics.drift` found as one HTML file.

    The page is self-contained: no network, no scripts.  The file appears whole or not
    at all.

    Costs nothing beyond the file.

    Parameters
    ----------
    found : Drift
    path : str or PathLike
        The HTML file to write; one that exists is replaced.
    title : str, optional
    command : str, optional
        The command that makes the page again.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import SketchedKMeans, diagnostics, report
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> found = diagnostics.drift(SketchedKMeans(2, random_state=0).fit(X), X, X_old=X)
    >>> with TemporaryDirectory() as folder:
    ...     report.write_drift_report(found, f"{folder}/drift.html")
    """
    if not isinstance(found, Drift):
        raise TypeError(f"found={found!r} should be a Drift, as drift returns it.")
    check_can_write(path)
    html = render_drift(found, title, command)
    with open_atomic(path) as file:
        file.write(html.encode())


def render_drift(found: Drift, title: str, command: str | None) -> str:
    """Return the HTML of the page."""
    shown = [c for i, c in enumerate(found.columns) if c.is_alarm or i < _OTHER_COLUMNS]
    return load_template("drift.html").render(
        title=title,
        lead=_describe_result(found),
        tiles=_make_tiles(found),
        alarms=found.sentences[:_SENTENCES],
        n_more_alarms=max(len(found.sentences) - _SENTENCES, 0),
        segments=_make_segments(found),
        columns=[_make_column(column) for column in shown],
        n_more=len(found.columns) - len(shown),
        unusual=_describe_unusual(found),
        method=_describe_method(found),
        downloads=_make_downloads(found),
        command=command,
    )


def _describe_result(found: Drift) -> str:
    n_alarms = len(found.sentences)
    if not n_alarms:
        return (
            f"{format_count(found.n_new, 'new row')} are like the "
            f"{found.n_old:,} of the fit: no change beyond chance."
        )
    changes = format_count(n_alarms, "change")
    return f"{changes} in {format_count(found.n_new, 'new row')} beyond chance."


def _make_tiles(found: Drift) -> list[tuple[str, str, str]]:
    moved = {column.name for column in found.columns if column.is_alarm}
    changed = sum(part.verdict != "as before" for part in found.segments)
    return [
        (f"{found.n_new:,}", "rows now", f"{found.n_old:,} in the fit"),
        (f"{changed:,}", "segments changed", f"of {len(found.segments):,}"),
        (f"{len(moved):,}", "columns moved", ""),
        (
            format_share(found.unusual.new_share),
            "unusual rows",
            f"{format_share(found.unusual.old_share)} in the fit",
        ),
    ]


def _make_segments(found: Drift) -> list[dict[str, Any]]:
    """Return the segments, the largest first."""
    largest = max(max(part.old_share, part.new_share) for part in found.segments)
    return [
        {
            "name": part.name,
            "old": f"{part.old_share:.1%}",
            "new": f"{part.new_share:.1%}",
            "rows": f"{part.new_rows:,}",
            "old_width": f"{part.old_share / largest:.1%}",
            "new_width": f"{part.new_share / largest:.1%}",
            "verdict": part.verdict if part.verdict != "as before" else "",
            "alarm": part.verdict != "as before",
        }
        for part in sorted(found.segments, key=lambda part: -part.old_share)
    ]


def _make_column(column: ColumnChange) -> dict[str, Any]:
    what = _WHAT.get(column.what)
    return {
        "name": column.name if what is None else f"{column.name}: {what}",
        "old": column.old,
        "new": column.new,
        "shift": f"{column.distance:.1%}",
        "verdict": "moved" if column.is_alarm else "",
        "alarm": column.is_alarm,
    }


def _describe_unusual(found: Drift) -> list[str]:
    rows, names = found.unusual, [part.name for part in found.segments]
    if not rows.n_rows:
        return ["No row is farther out than 99% of those of the fit."]
    verdict = "more than by chance" if rows.is_alarm else "chance can explain that"
    nearest = int(rows.segments.argmax())
    text = [
        f"{format_count(rows.n_rows, 'row')} ({format_share(rows.new_share)}) are "
        f"farther out than 99% of the rows of the fit: {verdict}. Most of them, "
        f"{rows.segments[nearest]:,}, are nearest to {names[nearest]}.",
        f"Farthest out: rows {', '.join(f'{n:,}' for n in rows.row_numbers)}.",
    ]
    if rows.columns:
        words = [column.contrast for column in rows.columns]
        text.append(f"They differ most in {'; '.join(words)}.")
    return text


def _describe_method(found: Drift) -> str:
    return (
        "Sizes of segments, shares of levels and gaps are compared by Fisher's exact "
        "test, numbers and dates by the test of Kolmogorov and Smirnov. If the new "
        f"rows were drawn as those of the fit were, the chance of any alarm on this "
        f"page would be at most {found.level:.2g}. Changes of less than a tenth of a "
        "segment or 2% of the rows are no alarm, however certain."
    )


def _make_downloads(found: Drift) -> list[tuple[str, Download]]:
    segments = make_csv(
        "segments.csv",
        ["segment", "rows then", "rows now", "then", "now", "p", "verdict"],
        *zip(
            *(
                (
                    *(p.name, p.old_rows, p.new_rows, p.old_share, p.new_share),
                    *(p.p_value, p.verdict),
                )
                for p in found.segments
            ),
            strict=True,
        ),
    )
    if not found.columns:
        return [("Segments", segments)]
    columns = make_csv(
        "columns.csv",
        ["column", "what", "then", "now", "shift", "p", "moved"],
        *zip(
            *(
                (c.name, c.what, c.old, c.new, c.distance, c.p_value, str(c.is_alarm))
                for c in found.columns
            ),
            strict=True,
        ),
    )
    return [("Segments", segments), ("Columns", columns)]
