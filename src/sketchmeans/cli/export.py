"""``sketchmeans export`` and ``card``: a saved model for services and for people."""

from __future__ import annotations

import sys
from pathlib import Path

from sketchmeans.cli.files import STREAM, check_outputs
from sketchmeans.cli.options import PrintOptions
from sketchmeans.cli.predict import load_clusters
from sketchmeans.cli.screen import Screen


def export(model: str, *, onnx: str, print_options: PrintOptions) -> None:
    """Write a saved model as an ONNX graph, which labels rows in any language."""
    screen = Screen(print_options)
    check_outputs({"--onnx": onnx}, [model], onnx=(".onnx",))
    from sketchmeans.numerics.memory import format_bytes
    from sketchmeans.onnx import to_onnx

    graph = to_onnx(load_clusters(model))
    content = graph.SerializeToString()
    _write(onnx, content)
    inputs = [value.name for value in graph.graph.input]
    screen.print(f"Wrote {onnx}, {format_bytes(len(content))}.")
    screen.print_json({"files": [onnx], "size": len(content), "inputs": inputs})


def card(model: str, *, out: str = STREAM, print_options: PrintOptions) -> None:
    """Describe a saved model in Markdown: segments, columns, method and limits."""
    screen = Screen(print_options, labels_on_output=out == STREAM)
    if out != STREAM:
        check_outputs({"--out": out}, [model], out=(".md",))
    from sketchmeans.diagnostics import model_card

    text = model_card(load_clusters(model), title=f"Model card: {Path(model).name}")
    if out == STREAM:
        sys.stdout.write(text)
        return
    _write(out, text.encode("utf-8", errors="replace"))
    screen.print(f"Wrote {out}.")
    screen.print_json({"files": [out]})


def _write(path: str, content: bytes) -> None:
    from sketchmeans.numerics.atomic_file import open_atomic

    with open_atomic(path) as file:
        file.write(content)
