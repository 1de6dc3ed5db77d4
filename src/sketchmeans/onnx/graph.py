"""A graph of ONNX operators, one node at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sketchmeans.numerics.linalg import Array

#: Versions of the operators: old enough for runtimes of 2022.
_OPSET, _ML_OPSET, _IR_VERSION = 17, 2, 8
_ML = "ai.onnx.ml"
_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "str": TensorProto.STRING,
}


class Graph:
    """Nodes, constants and inputs of a model; results are the names of tensors.

    A graph within another needs a `prefix`, as names of both must differ.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.inputs: list[Any] = []
        self._n_names = 0

    def input(self, name: str, kind: str, width: int | None) -> str:
        """Add an input of so many columns, of a number type or "str"."""
        shape = ["n", "d" if width is None else width]
        self.inputs.append(helper.make_tensor_value_info(name, _TYPES[kind], shape))
        return name

    def add(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        """Add a node and return its result; arrays are constants."""
        names = [v if isinstance(v, str) else self._constant(v) for v in inputs]
        result = self._name(operator)
        domain = _ML if operator == "LabelEncoder" else ""
        node = helper.make_node(operator, names, [result], domain=domain, **attributes)
        self._nodes.append(node)
        return result

    def cast(self, x: str, dtype: Any) -> str:
        """Return a tensor in another number type."""
        return self.add("Cast", x, to=_TYPES[np.dtype(dtype).name])

    def sum_rows(self, x: str) -> str:
        """Return the sum of each row, as a column."""
        return self.add("ReduceSum", x, np.array([1]), keepdims=1)

    def add_columns(self, x: str, rows: Array, body: Graph, dtype: Any) -> str:
        """Return the sum over columns j of what a body makes of x[:, j], rows[:, j].

        The body has the inputs "sum" (n, m), "x" (n,) and "z" (m,), and one result.
        """
        kind = _TYPES[np.dtype(dtype).name]
        info = helper.make_tensor_value_info
        inner = helper.make_graph(
            body._nodes,
            "column",
            [
                info("sum", kind, ["n", len(rows)]),
                info("x", kind, ["n"]),
                info("z", kind, [len(rows)]),
            ],
            [info(body._nodes[-1].output[0], kind, ["n", len(rows)])],
            body._constants,
        )
        column = self.add("Mul", self.sum_rows(x), np.zeros((1, 1), dtype))
        start = self.add("Add", column, np.zeros((1, len(rows)), dtype))
        return self.add(
            "Scan",
            start,
            x,
            rows,
            body=inner,
            num_scan_inputs=2,
            scan_input_axes=[1, 1],
        )

    def finish(self, result: str, words: str) -> onnx.ModelProto:
        """Return the model, whose output "label" is a result."""
        self._nodes.append(helper.make_node("Identity", [result], ["label"]))
        output = helper.make_tensor_value_info("label", TensorProto.INT64, ["n"])
        graph = helper.make_graph(
            self._nodes, "sketchmeans", self.inputs, [output], self._constants
        )
        versions = [("", _OPSET), (_ML, _ML_OPSET)]
        model = helper.make_model(
            graph,
            producer_name="sketchmeans",
            doc_string=words,
            opset_imports=[helper.make_opsetid(*pair) for pair in versions],
            ir_version=_IR_VERSION,
        )
        onnx.checker.check_model(model)
        return model

    def _constant(self, value: Array) -> str:
        name = self._name("constant")
        array = np.ascontiguousarray(value)
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def _name(self, word: str) -> str:
        self._n_names += 1
        return f"{self._prefix}{word}/{self._n_names}"


def join_columns(graph: Graph, parts: Sequence[str]) -> str:
    """Return features side by side."""
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
