"""From Python values to JSON and tensors, and back.

Only a fixed set of values goes either way: plain values, arrays, CSR matrices, and
objects of the registered classes as their parameters and attributes.  No name in a file
is looked up anywhere but in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.tensor_file import Tensors, is_storable
from sketchmeans.persistence.history import VERSION, Version, format_version, upgrade
from sketchmeans.persistence.kinds import Spec, constructor_parameters
from sketchmeans.persistence.registry import RECORDS, SPECS, find_class

Json = Any

_CSR = ("data", "indices", "indptr")


class Encoder:
    """Turns a model into JSON, and collects its tensors and warnings."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # of arrays that are stored already
        self._stored: list[Any] = []  # keeps these arrays, and so their ids, alive
        self.tensors: Tensors = {}
        self.warnings: list[str] = []

    def encode_model(self, model: Any, where: str = "") -> Json:
        """Return a fitted object of a known class."""
        spec = self._find_spec(model, where or "the model")
        node = self._encode_object(model, spec, where)
        if not spec.fitted:  # a kernel is its parameters
            return node
        if (warning := spec.warn(model)) is not None:
            self.warnings.append(warning)
        node["fitted"] = {
            name: self.encode(getattr(model, name), f"{where}{name}", fitted=True)
            for name in spec.fitted
            if name in vars(model)
        }
        return node

    def encode(self, value: Any, where: str, *, fitted: bool = False) -> Json:
        """Return a parameter or an attribute; objects in it are fitted or not."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return _check_finite(value, where)
        if isinstance(value, np.ndarray):
            return self._encode_array(value, where)
        if sparse.issparse(value):
            return self._encode_csr(value, where)
        if isinstance(value, list | tuple):
            items = [
                self.encode(v, f"{where}[{i}]", fitted=fitted)
                for i, v in enumerate(value)
            ]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            return {"dict": self._encode_dict(value, where)}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            self.warnings.append(
                f"{where} is a {type(value).__name__}, which has been drawn from: the "
                "model file holds None instead. A seed that is an integer is kept."
            )
            return None
        if (record := find_class(RECORDS, value)) is not None:
            fields = {
                name: self.encode(
                    getattr(value, name), f"{where}.{name}", fitted=fitted
                )
                for name in record.fields
            }
            return {"record": record.name, "fields": fields}
        if fitted:
            return self.encode_model(value, f"{where}.")
        return self._encode_object(value, self._find_spec(value, where), f"{where}.")

    def _encode_object(self, value: Any, spec: Spec, where: str) -> dict[str, Json]:
        spec.check_left_out(value, where)
        params = {
            name: self.encode(
                getattr(value, name),
                f"{where}params.{name}",
                fitted=name in spec.holds_fitted,
            )
            for name in spec.params
        }
        return {"object": spec.name, "params": params}

    def _find_spec(self, value: Any, where: str) -> Spec:
        spec = find_class(SPECS, value)
        if spec is not None:
            return spec
        if not hasattr(value, "get_params") and callable(value):
            raise ValueError(
                f"{where}={value!r} is code, and a model file holds none. Use one of "
                "the kernels that have a name, or one of the library's own objects"
            )
        cls = type(value)
        raise ValueError(
            f"{where.rstrip('.')} is of class {cls.__module__}.{cls.__qualname__}, "
            f"and model files know {sorted(SPECS)} only: no code is read from a file"
        )

    def _encode_dict(self, value: Mapping[Any, Any], where: str) -> dict[str, Json]:
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"{where} has the key {name!r}; keys must be strings")
        return {n: self.encode(item, f"{where}[{n!r}]") for n, item in value.items()}

    def _encode_array(self, value: Array, where: str) -> Json:
        if value.dtype == object or value.dtype.kind == "U":
            names = value.tolist()
            if value.ndim == 1 and all(isinstance(name, str) for name in names):
                return {"strings": [str(name) for name in names]}
        # The last bits of sums depend on the order of the entries in memory.
        if value.ndim == 2 and abs(value.strides[0]) < abs(value.strides[1]):
            return {"tensor": self._store(value, value.T, where), "order": "F"}
        return {"tensor": self._store(value, value, where)}

    def _encode_csr(self, value: Any, where: str) -> Json:
        matrix = value.tocsr()
        names = {}
        for part in _CSR:
            array = getattr(matrix, part)
            names[part] = self._store(array, array, f"{where}.{part}")
        is_matrix = isinstance(value, sparse.spmatrix)
        return {"csr": names, "shape": list(value.shape), "matrix": is_matrix}

    def _store(self, array: Array, stored: Array, where: str) -> str:
        """Return the name of a tensor; an array in several places is stored once."""
        if not is_storable(array.dtype):
            raise ValueError(f"{where} is an array of {array.dtype}; use real numbers")
        name = self._names.setdefault(id(array), where)
        if name == where:
            self._stored.append(array)
            native = stored.astype(stored.dtype.newbyteorder("="), copy=False)
            self.tensors[name] = np.asarray(native, order="C")
        return name


class Decoder:
    """Turns JSON and tensors of a file of some version into a model, and checks all."""

    def __init__(self, tensors: Tensors, version: Version = VERSION) -> None:
        self._tensors = tensors
        self._version = version
        self._unused = set(tensors)

    def decode_model(self, node: Json) -> Any:
        """Return the fitted model, if all of the file belongs to it."""
        model = self._decode_object(node, "", fitted=True)
        if not SPECS[node["object"]].is_model:
            raise ValueError(f"a {node['object']} is not a model")
        if self._unused:
            raise ValueError(f"the tensors {sorted(self._unused)} are not used")
        return model

    def decode(self, node: Json, where: str, *, fitted: bool = False) -> Any:
        """Return a parameter or an attribute."""
        if node is None or isinstance(node, bool | int | str):
            return node
        if isinstance(node, float):
            return _check_finite(node, where)
        if isinstance(node, list):
            return [
                self.decode(item, f"{where}[{i}]", fitted=fitted)
                for i, item in enumerate(node)
            ]
        if "tensor" in node:
            return self._decode_array(node, where)
        if "csr" in node:
            return self._decode_csr(node, where)
        if "object" in node:
            return self._decode_object(node, f"{where}.", fitted=fitted)
        if "record" in node:
            return self._decode_record(node, where, fitted)
        if "tuple" in node:
            _check_keys(node, {"tuple": list}, where)
            return tuple(self.decode(node["tuple"], where, fitted=fitted))
        if "strings" in node:
            _check_keys(node, {"strings": list}, where)
            return np.array(node["strings"], dtype=object)
        _check_keys(node, {"dict": dict}, where)
        return {
            name: self.decode(item, f"{where}[{name!r}]")
            for name, item in node["dict"].items()
        }

    def _decode_object(self, node: Json, where: str, *, fitted: bool) -> Any:
        name = node.get("object") if isinstance(node, dict) else None
        spec = SPECS.get(name) if isinstance(name, str) else None
        if spec is None:
            known = self._hint() or f" should be one of {sorted(SPECS)}"
            raise ValueError(
                f"{where.rstrip('.') or 'the model'} of class {name!r}{known}"
            )
        keys: dict[str, type] = {"object": str, "params": dict}
        if fitted and spec.fitted:
            keys["fitted"] = dict
        _check_keys(node, keys, where or "the model")
        params, attributes = upgrade(
            spec.name, node["params"], node.get("fitted"), self._version
        )
        self._check_names(f"{where}params", params, spec.params)
        _check_complete(f"{where}params", params, spec.cls)
        # Parameters that an older file does not have take their defaults.
        model = spec.cls(
            **{
                name: self.decode(
                    value, f"{where}params.{name}", fitted=name in spec.holds_fitted
                )
                for name, value in params.items()
            }
        )
        spec.check_params(model, f"{where}params.")
        if attributes is not None:
            self._check_names(f"{where}fitted", attributes, spec.fitted)
            for name, value in attributes.items():
                setattr(model, name, self.decode(value, f"{where}{name}", fitted=True))
            spec.check_fitted(model, where)
        return model

    def _decode_record(self, node: Json, where: str, fitted: bool) -> Any:
        _check_keys(node, {"record": str, "fields": dict}, where)
        record = RECORDS.get(node["record"])
        if record is None:
            raise ValueError(f"{where} should be a known record{self._hint()}")
        fields, _ = upgrade(record.name, node["fields"], None, self._version)
        _check_complete(where, fields, record.cls)
        self._check_names(where, fields, record.fields)
        return record.cls(
            **{
                name: self.decode(value, f"{where}.{name}", fitted=fitted)
                for name, value in fields.items()
            }
        )

    def _check_names(
        self, where: str, names: Collection[str], known: Collection[str]
    ) -> None:
        if unknown := sorted(set(names) - set(known)):
            raise ValueError(f"{where} should not have {unknown}{self._hint()}")

    def _hint(self) -> str:
        """Return what to do about something unknown in a file of a later version."""
        if self._version <= VERSION:
            return ""
        return (
            ", which only a newer sketchmeans knows: the file is of format "
            f"{format_version(self._version)}, and this version knows formats up to "
            f"{format_version()}. Upgrade sketchmeans"
        )

    def _decode_array(self, node: Json, where: str) -> Array:
        order = {"order": str} if "order" in node else {}
        _check_keys(node, {"tensor": str} | order, where)
        if order and node["order"] != "F":
            raise ValueError(f"{where} has the order {node['order']!r}, not 'F'")
        array = self._find_tensor(node["tensor"], where)
        return array.T if order else array

    def _decode_csr(self, node: Json, where: str) -> Any:
        _check_keys(node, {"csr": dict, "shape": list, "matrix": bool}, where)
        _check_keys(node["csr"], dict.fromkeys(_CSR, str), where)
        parts = [self._find_tensor(node["csr"][name], where) for name in _CSR]
        shape = node["shape"]
        numbers = all(type(size) is int and 0 < size < 2**62 for size in shape)
        if len(shape) != 2 or not numbers or any(part.ndim != 1 for part in parts):
            raise ValueError(f"{where} should be a matrix in CSR form")
        if any(part.dtype not in (np.int32, np.int64) for part in parts[1:]):
            raise ValueError(f"{where} should have indices of 32 or 64 bits")
        make = sparse.csr_matrix if node["matrix"] else sparse.csr_array
        matrix = make(tuple(parts), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _find_tensor(self, name: str, where: str) -> Array:
        if name not in self._tensors:
            raise ValueError(f"{where} names the tensor {name!r}, which is missing")
        self._unused.discard(name)
        return self._tensors[name]


def _check_complete(where: str, names: Collection[str], cls: type[Any]) -> None:
    """Raise if a parameter of a constructor that has no default is missing."""
    required = {name for name, is_ in constructor_parameters(cls).items() if is_}
    if lacking := sorted(required - set(names)):
        raise ValueError(f"{where} should have {lacking}")


def _check_keys(node: Any, keys: Mapping[str, type], where: str) -> None:
    """Raise if an object of JSON has other keys, or values of other types."""
    if set(node) != set(keys):
        raise ValueError(f"{where} has the keys {sorted(node)}, not {sorted(keys)}")
    for name, kind in keys.items():
        if type(node[name]) is not kind:
            raise ValueError(f"{where}: {name} should be a {kind.__name__}")


def _check_finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}={value} should be finite")
    return float(value)
