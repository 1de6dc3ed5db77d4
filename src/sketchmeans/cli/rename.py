"""``sketchmeans rename``: names for the segments of a saved model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import typer

from sketchmeans.cli.files import check_outputs
from sketchmeans.cli.options import PrintOptions
from sketchmeans.cli.screen import Screen


def rename(model: str, names: list[str], *, print_options: PrintOptions) -> None:
    """Name the segments of a saved model; other commands and reports use the names."""
    screen = Screen(print_options)
    check_outputs({"MODEL": model}, [])
    from sketchmeans import load, save
    from sketchmeans.cluster.segment_names import rename_segments, segment_names

    fitted = load(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which has no segments."
        )
    before = segment_names(fitted)
    try:
        rename_segments(fitted, _parse_names(names, len(before)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with warnings.catch_warnings():  # of what was said when the model was saved
        warnings.simplefilter("ignore")
        save(fitted, model)
    after = segment_names(fitted)
    changes = [
        (str(label), old, new)
        for label, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new
    ]
    screen.print_table(("label", "old name", "new name"), changes, right=2)
    screen.print(f"Wrote {model}.")
    screen.print_json({"files": [model], "segment_names": after})


def _parse_names(typed: Sequence[str], k: int) -> dict[int, Any]:
    """Return names by label, as in 3="Heavy buyers"."""
    names: dict[int, Any] = {}
    for text in typed:
        label, sign, name = text.partition("=")
        if not (sign and label.strip().isdecimal()):
            raise typer.BadParameter(
                f"{text!r} should be LABEL=NAME with a label from 0 to {k - 1}, such "
                'as 0="Heavy buyers".'
            )
        if int(label) in names:
            raise typer.BadParameter(f"{text!r} names segment {int(label)} twice.")
        names[int(label)] = name
    return names
