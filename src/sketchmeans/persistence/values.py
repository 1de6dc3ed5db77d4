"""From Python values to JSON and tensors, and back.

Only a fixed set of values goes either way: plain values, arrays, CSR matrices, and
objects of the registered classes as their parameters and attributes.  Nothing in a file
is looked up by a name other than those in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.numerics.linalg import Array
from sketchmeans.persistence.container import Tensors, storable_type
from sketchmeans.persistence.history import VERSION, Version, upgraded, version_text
from sketchmeans.persistence.specs import Registry, Spec, required_names

Json = Any


class Packer:
    """Turns a model into JSON, and collects its tensors and what to warn of."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._names: dict[int, str] = {}  # of arrays that are stored already
        self._kept: list[Any] = []  # an id is an array's own while the array lives
        self.tensors: Tensors = {}
        self.notes: list[str] = []

    def model(self, model: Any, where: str = "") -> Json:
        """Return a fitted object of a known class."""
        spec = self._known(model, where or "the model")
        node = self._object(model, spec, where)
        # A kernel is its parameters.
        if not spec.fitted:
            return node
        note = spec.note(model)
        if note is not None:
            self.notes.append(note)
        node["fitted"] = {
            name: self.value(getattr(model, name), f"{where}{name}", fitted=True)
            for name in spec.fitted
            if name in vars(model)
        }
        return node

    def value(self, value: Any, where: str, *, fitted: bool = False) -> Json:
        """Return a parameter or an attribute; objects fitted or not."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return _finite(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._csr(value, where)
        if isinstance(value, list | tuple):
            items = [self.value(v, f"{where}[{i}]") for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            return {"dict": self._dict(value, where)}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            self.notes.append(
                f"{where} is a {type(value).__name__}, which has been drawn from: the "
                "model file holds None instead. A seed that is an integer is kept."
            )
            return None
        record = self._registry.record_of(value)
        if record is not None:
            fields = {
                name: self.value(getattr(value, name), f"{where}.{name}", fitted=fitted)
                for name in record.fields
            }
            return {"record": type(value).__name__, "fields": fields}
        if fitted:
            return self.model(value, f"{where}.")
        return self._object(value, self._known(value, where), f"{where}.")

    def _object(self, value: Any, spec: Spec, where: str) -> dict[str, Json]:
        params = {
            name: self.value(getattr(value, name), f"{where}params.{name}")
            for name in spec.params
        }
        return {"object": type(value).__name__, "params": params}

    def _known(self, value: Any, where: str) -> Spec:
        spec = self._registry.spec_of(value)
        if spec is not None:
            return spec
        if not hasattr(value, "get_params") and callable(value):
            raise ValueError(
                f"{where}={value!r} is code, and a model file holds none. Use one of "
                "the kernels that have a name, or one of the library's own objects"
            )
        kind = type(value)
        raise ValueError(
            f"{where.rstrip('.')} is of class {kind.__module__}.{kind.__qualname__}, "
            f"and model files know {sorted(self._registry.specs)} only: no code is "
            "read from a file"
        )

    def _dict(self, value: Mapping[Any, Any], where: str) -> dict[str, Json]:
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"{where} has the key {name!r}; keys must be strings")
        return {name: self.value(v, f"{where}[{name!r}]") for name, v in value.items()}

    def _array(self, value: Array, where: str) -> Json:
        if value.dtype == object or value.dtype.kind == "U":
            names = value.tolist()
            if value.ndim == 1 and all(isinstance(name, str) for name in names):
                return {"strings": [str(name) for name in names]}
        if not storable_type(value.dtype):
            raise ValueError(f"{where} is an array of {value.dtype}; use real numbers")
        node: dict[str, Json] = {}
        # Sums depend on the order of the entries in memory, in their last bits.
        if value.ndim == 2 and abs(value.strides[0]) < abs(value.strides[1]):
            node, stored = {"order": "F"}, value.T
        else:
            stored = value
        return {"tensor": self._stored(value, stored, where)} | node

    def _csr(self, value: Any, where: str) -> Json:
        rows = value.tocsr()
        names = {}
        for part in ("data", "indices", "indptr"):
            array = getattr(rows, part)
            if not storable_type(array.dtype):
                raise ValueError(f"{where} is of type {array.dtype}; use real numbers")
            names[part] = self._stored(array, array, f"{where}.{part}")
        matrix = isinstance(value, sparse.spmatrix)
        return {"csr": names, "shape": list(value.shape), "matrix": matrix}

    def _stored(self, array: Array, stored: Array, where: str) -> str:
        """Return the name of a tensor; an array is stored once however often it is."""
        name = self._names.setdefault(id(array), where)
        if name == where:
            self._kept.append(array)
            native = stored.astype(stored.dtype.newbyteorder("="), copy=False)
            self.tensors[name] = np.asarray(native, order="C")
        return name


class Unpacker:
    """Turns JSON and tensors into a model that is checked all over.

    Parameters
    ----------
    registry : Registry
    tensors : dict of ndarray
    version : tuple of int
        That of the file.
    """

    def __init__(
        self, registry: Registry, tensors: Tensors, version: Version = VERSION
    ) -> None:
        self._registry = registry
        self._tensors = tensors
        self._version = version
        self._unused = set(tensors)

    def model(self, node: Json) -> Any:
        """Return the fitted model, if all of the file belongs to it."""
        model = self._object(node, "", fitted=True)
        if not self._registry.specs[node["object"]].fitted:
            raise ValueError(f"a {node['object']} is no model")
        if self._unused:
            raise ValueError(f"the tensors {sorted(self._unused)} belong to nothing")
        return model

    def value(self, node: Json, where: str, *, fitted: bool = False) -> Any:
        """Return a parameter or an attribute."""
        if node is None or isinstance(node, bool | int | str):
            return node
        if isinstance(node, float):
            return _finite(node, where)
        if isinstance(node, list):
            return [self.value(item, f"{where}[{i}]") for i, item in enumerate(node)]
        if "tensor" in node:
            return self._array(node, where)
        if "csr" in node:
            return self._csr(node, where)
        if "object" in node:
            return self._object(node, f"{where}.", fitted=fitted)
        if "record" in node:
            return self._record(node, where, fitted)
        if "tuple" in node:
            _check_keys(node, {"tuple": list}, where)
            return tuple(self.value(node["tuple"], where))
        if "strings" in node:
            _check_keys(node, {"strings": list}, where)
            return np.array(node["strings"], dtype=object)
        _check_keys(node, {"dict": dict}, where)
        return {
            name: self.value(item, f"{where}[{name!r}]")
            for name, item in node["dict"].items()
        }

    def _object(self, node: Json, where: str, *, fitted: bool) -> Any:
        spec = self._spec(node, where)
        fitted = fitted and bool(spec.fitted)
        keys = {"object": str, "params": dict} | ({"fitted": dict} if fitted else {})
        _check_keys(node, keys, where or "the model")
        params, attributes = upgraded(
            node["object"], node["params"], node.get("fitted"), self._version
        )
        self._check_names(f"{where}params", params, spec.params)
        if lacking := sorted(required_names(spec.cls) - set(params)):
            raise ValueError(f"{where}params should not lack {lacking}")
        # Those that an older file does not have take their defaults.
        model = spec.cls(
            **{
                name: self.value(value, f"{where}params.{name}")
                for name, value in params.items()
            }
        )
        spec.check_params(model, f"{where}params.")
        if attributes is not None:
            self._check_names(f"{where}fitted", attributes, spec.fitted)
            for name, value in attributes.items():
                setattr(model, name, self.value(value, f"{where}{name}", fitted=True))
            spec.check_fitted(model, where)
            spec.restore(model)
        return model

    def _check_names(
        self, where: str, names: Collection[str], known: Collection[str]
    ) -> None:
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ValueError(f"{where} should not have {unknown}{self._hint()}")

    def _hint(self) -> str:
        """Return what to do about something unknown in a file of a later version."""
        if self._version <= VERSION:
            return ""
        return (
            ", which only a newer sketchmeans knows: the file is of format "
            f"{version_text(self._version)}, and this version knows formats up to "
            f"{version_text(VERSION)}. Upgrade sketchmeans"
        )

    def _spec(self, node: Json, where: str) -> Spec:
        name = node.get("object") if isinstance(node, dict) else None
        spec = self._registry.specs.get(name) if isinstance(name, str) else None
        if spec is None:
            known = self._hint() or f" should be one of {sorted(self._registry.specs)}"
            raise ValueError(
                f"{where.rstrip('.') or 'the model'} of class {name!r}{known}"
            )
        return spec

    def _record(self, node: Json, where: str, fitted: bool) -> Any:
        _check_keys(node, {"record": str, "fields": dict}, where)
        record = self._registry.records.get(node["record"])
        if record is None or required_names(record.cls) - set(node["fields"]):
            raise ValueError(
                f"{where} should be a known record with all its fields{self._hint()}"
            )
        self._check_names(where, node["fields"], record.fields)
        return record.cls(
            **{
                name: self.value(value, f"{where}.{name}", fitted=fitted)
                for name, value in node["fields"].items()
            }
        )

    def _array(self, node: Json, where: str) -> Array:
        order = {"order": str} if "order" in node else {}
        _check_keys(node, {"tensor": str} | order, where)
        if order and node["order"] != "F":
            raise ValueError(f"{where} has the order {node['order']!r}; only F is one")
        array = self._tensor(node["tensor"], where)
        return array.T if order else array

    def _csr(self, node: Json, where: str) -> Any:
        _check_keys(node, {"csr": dict, "shape": list, "matrix": bool}, where)
        names = ("data", "indices", "indptr")
        _check_keys(node["csr"], dict.fromkeys(names, str), where)
        parts = [self._tensor(node["csr"][name], where) for name in names]
        shape = node["shape"]
        numbers = all(type(size) is int and 0 < size < 2**62 for size in shape)
        if len(shape) != 2 or not numbers or any(part.ndim != 1 for part in parts):
            raise ValueError(f"{where} should be a matrix in CSR form")
        if any(part.dtype not in (np.int32, np.int64) for part in parts[1:]):
            raise ValueError(f"{where} should have indices of 32 or 64 bits")
        make = sparse.csr_matrix if node["matrix"] else sparse.csr_array
        rows = make(tuple(parts), shape=tuple(shape))
        rows.check_format(full_check=True)
        return rows

    def _tensor(self, name: str, where: str) -> Array:
        if name not in self._tensors:
            raise ValueError(f"{where} names the tensor {name!r}, which is missing")
        self._unused.discard(name)
        return self._tensors[name]


def _check_keys(node: Any, keys: Mapping[str, type], where: str) -> None:
    """Raise where an object of JSON has other keys, or values of other types."""
    if set(node) != set(keys):
        raise ValueError(f"{where} has the keys {sorted(node)}, not {sorted(keys)}")
    for name, kind in keys.items():
        if type(node[name]) is not kind:
            raise ValueError(f"{where}: {name} should be a {kind.__name__}")


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}={value} should be finite")
    return float(value)
