"""Files that are damaged, or made to do harm."""

import copy
import json
import pickle
import re
import resource
import signal
import sys
import time
import tracemalloc
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import sketchmeans
from sketchmeans import (
    KernelKMeans,
    ModelFileError,
    NystromKMeans,
    SketchedKMeans,
    TableClusterer,
)
from tests.persistence.test_model_files import assert_same
from tests.stored_models import read_model, write_model

pytestmark = pytest.mark.filterwarnings("ignore:The model file of a KernelKMeans")

X = np.random.default_rng(0).random((120, 9))
CSR = sparse.csr_array(np.where(X > 0.5, X, 0.0))
NAMED = pd.DataFrame(X, columns=list("abcdefghi"))

MODELS = {
    "nystrom": (NystromKMeans(3, n_landmarks=12, random_state=0), X),
    "automatic": (NystromKMeans(3, reducer="sampling", random_state=0), NAMED),
    "csr": (NystromKMeans(3, n_landmarks=12, reducer="sign", random_state=0), CSR),
    "given": (KernelKMeans(3, kernel="precomputed", random_state=0), X @ X.T),
    "exact": (KernelKMeans(3, kernel="poly", random_state=0), CSR),
    "table": (TableClusterer(SketchedKMeans(3, random_state=0), exclude=["b"]), NAMED),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return fitted models, and the files that they are in."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name, (model, table) in MODELS.items():
        found[name] = model.fit(table), folder / f"{name}.skm"
        sketchmeans.save(*found[name])
    return found


# --- nothing bad happens --------------------------------------------------------------

_watching: list[str] = []
_watched = {"exec", "compile", "import", "pickle.find_class", "os.system"}
_watched |= {"subprocess.Popen", "os.exec", "os.posix_spawn", "ctypes.dlopen"}


def _watch(event, args):
    if _watching and event in _watched:
        _watching.append(f"{event} {args!r:.200}")


sys.addaudithook(_watch)


@contextmanager
def contained(seconds, memory=300 * 2**20):
    """Let a block of code take little time and memory, and run no code."""
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)

    def too_slow(*_):
        raise TimeoutError(f"more than {seconds} s")

    old = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, before[1]))
    _watching[:] = ["watching"]
    try:
        yield
    finally:
        seen = _watching[1:]
        _watching.clear()
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert seen == []


def test_the_containment_holds():
    with pytest.raises(MemoryError), contained(5):
        np.ones(2**27)
    with pytest.raises(TimeoutError), contained(1):
        time.sleep(5)
    with pytest.raises(AssertionError, match="compile"), contained(5):
        exec("1 + 1")


def outcome(path):
    """Return what a file holds, or else the error, which names the file."""
    try:
        return sketchmeans.load(path), None
    except ModelFileError as caught:
        error = caught
    assert repr(str(path)) in str(error)
    assert len(str(error)) < 2000
    return None, error


def load_or_refuse(path, model):
    """Load a file; return whether it held the model, and fail at anything else."""
    again, error = outcome(path)
    if error is None:
        assert_same(model, again)
    return error is None


# --- damage ---------------------------------------------------------------------------


def split(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, payload):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + payload


def flip_bits(data, rng):
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def flip_bits_of_header(data, rng):
    length = 8 + int.from_bytes(data[:8], "little")
    return flip_bits(data[:length], rng) + data[length:]


def cut(data, rng):
    return data[: rng.integers(len(data))]


def insert(data, rng):
    at = rng.integers(len(data))
    return data[:at] + rng.bytes(rng.integers(1, 20)) + data[at:]


def remove(data, rng):
    at = rng.integers(len(data))
    return data[:at] + data[at + rng.integers(1, 20) :]


def blank(data, rng):
    at, size = rng.integers(len(data)), rng.integers(1, 200)
    filler = bytes([rng.choice([0, 255, 32])]) * len(data[at : at + size])
    return data[:at] + filler + data[at + size :]


def other_length(data, rng):
    length = 2 ** int(rng.choice([0, 1, 16, 31, 40, 63, 64])) - 1
    return length.to_bytes(8, "little") + data[8:]


def edit_tensor(data, rng):
    header, payload = split(data)
    name = rng.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    match rng.integers(6):
        case 0:  # a shape of exabytes
            entry["shape"] = [int(2 ** rng.integers(30, 63)) for _ in entry["shape"]]
        case 1:
            entry["dtype"] = str(rng.choice(["F32", "I64", "U8", "BF16", "F8_E4M3"]))
        case 2:
            entry["data_offsets"][1] += int(2 ** rng.integers(0, 60))
        case 3:
            entry["data_offsets"] = [0, 8]
        case 4:
            header[f"{name}x"] = header.pop(name)
        case 5:
            entry["shape"] = [0, 2**62]
    return joined(header, payload)


def edit_metadata(data, rng):
    header, payload = split(data)
    metadata = header["__metadata__"]
    name = str(rng.choice(list(metadata)))
    match rng.integers(4):
        case 0:
            del metadata[name]
        case 1:
            metadata[name] = str(
                rng.choice(["", "2", "-1", "{}", "[" * 10**5, "1e999"])
            )
        case 2:
            metadata[name] = metadata[name].swapcase()
        case 3:
            metadata[name] = metadata[name].replace("0", "1", 1)
    return joined(header, payload)


def append(data, rng):
    return data + rng.bytes(rng.integers(1, 100))


DAMAGE = [
    flip_bits,
    flip_bits_of_header,
    cut,
    insert,
    remove,
    blank,
    other_length,
    edit_tensor,
    edit_metadata,
    append,
]


def test_a_thousand_damaged_files(saved, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.skm"
    outcomes = []
    originals = [(model, file.read_bytes()) for model, file in saved.values()]
    load_or_refuse(saved["nystrom"][1], saved["nystrom"][0])  # all is imported
    with contained(60):
        for turn in range(1000):
            model, data = originals[turn % len(originals)]
            damage = DAMAGE[turn // len(originals) % len(DAMAGE)]
            path.write_bytes(damage(data, rng))
            outcomes.append(load_or_refuse(path, model))
    # Some damage is none: a bit of a space, or bytes that were zero already.
    assert 0 < sum(outcomes) < 50


def test_every_bit_of_every_tensor_counts(saved, tmp_path):
    data, rng = saved["nystrom"][1].read_bytes(), np.random.default_rng(1)
    start = 8 + int.from_bytes(data[:8], "little")
    for at in rng.choice(np.arange(start, len(data)), 100, replace=False):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.integers(8)
        (tmp_path / "m.skm").write_bytes(changed)
        with pytest.raises(ModelFileError, match="SHA-256"):
            sketchmeans.load(tmp_path / "m.skm")


def test_files_of_other_kinds(tmp_path):
    class Harm:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    path = tmp_path / "m.skm"
    contents = [
        b"",
        b"\0" * 8,
        b"\0" * 100,
        pickle.dumps(Harm()),
        b"a,b\n1,2\n" * 1000,
        joined([], b""),
        joined({}, b""),
        joined({"__metadata__": {"format": "pt"}}, b""),
    ]
    with contained(10):
        for content in contents:
            path.write_bytes(content)
            with pytest.raises(ModelFileError, match=r"m\.skm"):
                sketchmeans.load(path)


ENTRY = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
BOMBS = {
    "a header of many bytes": "{" + " " * 9_000_000 + "}",
    "many tensors": "{" + ",".join(ENTRY % i for i in range(140_000)) + "}",
    "many axes": '{"a":{"dtype":"F32","shape":[%s7],"data_offsets":[0,0]}}'
    % ("999999999999999999," * 300_000),
    "many values": '{"a":[' + "[]," * 2_000_000 + "[]]}",
    "many values in the schema": json.dumps(
        {
            "__metadata__": {
                "format": "sketchmeans-model",
                "version": "1.2",
                "sha256": "0" * 64,
                "schema": "[" + "[]," * 2_000_000 + "[]]",
            }
        }
    ),
    "values that are spelled otherwise": json.dumps(
        {
            "__metadata__": {
                "format": "sketchmeans-model",
                "version": "1.2",
                "sha256": "0" * 64,
                "schema": "[" + "0;" * 1_000_000 + "0]",
            }
        }
    ).replace(";", "\\u002c"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_little_memory_is_taken_before_a_header_is_refused(name, tmp_path):
    header = BOMBS[name].encode()
    path = tmp_path / "m.skm"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    reason = "bytes should have at most|more than 400,000 values|SHA-256|axes"
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=reason):
            sketchmeans.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * 8 * 2**20


def test_a_model_with_too_many_names_is_not_saved(tmp_path):
    names = [f"column {i} with a long name{'.' * 400}" for i in range(20_000)]
    table = pd.DataFrame(np.ones((3, len(names)), np.float32), columns=names)
    model = SketchedKMeans(1, reducer="sampling", random_state=0).fit(table)
    with pytest.raises(ModelFileError, match="tables without names of columns"):
        sketchmeans.save(model, tmp_path / "m.skm")
    assert list(tmp_path.iterdir()) == []


def test_a_huge_file_with_the_header_of_a_model_is_not_read(saved, tmp_path):
    path = tmp_path / "m.skm"
    path.write_bytes(saved["nystrom"][1].read_bytes())
    with path.open("r+b") as file:
        file.truncate(2**40)  # takes no room on the disk
    with contained(5), pytest.raises(ModelFileError, match=r"bytes and .* are there"):
        sketchmeans.load(path)


def test_a_huge_file_of_another_kind_is_not_read(tmp_path):
    path = tmp_path / "table.npy"
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + b"v" * 100)
        file.truncate(2**40)  # takes no room on the disk
    with contained(5), pytest.raises(ModelFileError, match="not a safetensors file"):
        sketchmeans.load(path)


# --- forgery: content that is wrong, under a digest that is right ---------------------


def parts(file):
    _, schema, tensors = read_model(file)
    return json.loads(schema), tensors


def forged(path, schema, tensors):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    write_model(path, text, {n: np.ascontiguousarray(t) for n, t in tensors.items()})
    return path


def set_param(name, value):
    def edit(node, tensors):
        node["params"][name] = value

    return edit


def set_fitted(name, value):
    def edit(node, tensors):
        node["fitted"][name] = value

    return edit


def set_tensor(name, change):
    def edit(node, tensors):
        tensors[name] = change(tensors[name])

    return edit


def with_nan(array):
    return np.where(np.arange(array.size).reshape(array.shape) == 3, np.nan, array)


def both(*edits):
    def edit(node, tensors):
        for one in edits:
            one(node, tensors)

    return edit


def narrow_kernel(**params):
    return {"object": "RBF", "params": params}


FORGERIES = {
    # Names
    "another class": (
        "nystrom",
        lambda node, _: node.update(object="os.system"),
        r"class 'os\.system' should be one of",
    ),
    "a class of no models": (
        "nystrom",
        lambda node, _: node.update(narrow_kernel(gamma=1.0)) or node.pop("fitted"),
        "RBF is not a model|are not used",
    ),
    "a class by its path": (
        "nystrom",
        set_param("kernel", {"object": "sketchmeans.kernels.RBF", "params": {}}),
        r"params\.kernel of class 'sketchmeans\.kernels\.RBF' should be one of",
    ),
    "an object of another family": (
        "nystrom",
        set_param("kernel", {"object": "Uniform", "params": {"replace": False}}),
        r"kernel of class Uniform should be one of",
    ),
    "an unknown parameter": (
        "nystrom",
        set_param("callback", 1),
        r"params should not have \['callback'\]\.$",
    ),
    "a missing parameter without a default": (
        "table",
        lambda node, _: node["params"].pop("estimator"),
        r"params should have \['estimator'\]",
    ),
    "a missing field": (
        "automatic",
        lambda node, _: node["fitted"]["landmark_path_"]["fields"].pop("gain"),
        r"landmark_path_ should have \['gain'\]",
    ),
    "an unknown attribute": (
        "nystrom",
        set_fitted("predict", 1),
        r"fitted should not have \['predict'\]",
    ),
    "a missing attribute": (
        "nystrom",
        lambda node, _: node["fitted"].pop("rank_"),
        "rank_ is missing",
    ),
    "a tensor too many": (
        "nystrom",
        lambda _, tensors: tensors.update(extra=np.ones(3)),
        r"tensors \['extra'\] are not used",
    ),
    "a tensor too few": (
        "nystrom",
        lambda _, tensors: tensors.pop("_means"),
        "_means names the tensor '_means', which is missing",
    ),
    # Types
    "a number as a string": (
        "nystrom",
        set_param("n_clusters", "3"),
        "n_clusters='3' should be an integer",
    ),
    "a flag as a number": ("nystrom", set_fitted("converged_", 1), "true or false"),
    "no threads": ("nystrom", set_param("n_jobs", 0), "n_jobs=0 should be a nonzero"),
    "memory below zero": (
        "nystrom",
        set_param("max_memory", -1),
        "max_memory=-1 should be bytes, a string such as '2GB' or null",
    ),
    "memory in an unknown unit": (
        "exact",
        set_param("max_memory", "12 parsecs"),
        "max_memory='12 parsecs' should be bytes",
    ),
    "memory beyond all floats": (
        "nystrom",
        set_param("max_memory", 10**400),
        "max_memory=10+ should be bytes",
    ),
    "a kernel of no name": (
        "nystrom",
        set_param("kernel", "eval"),
        "kernel='eval' should be one of",
    ),
    "a metric of no name": (
        "nystrom",
        set_fitted(
            "kernel_", {"object": "Pairwise", "params": {"metric": "f", "params": None}}
        ),
        "metric='f' should be one of",
    ),
    "an argument that a metric has not": (
        "nystrom",
        set_fitted(
            "kernel_",
            {
                "object": "Pairwise",
                "params": {"metric": "chi2", "params": {"dict": {"n_jobs": 99}}},
            },
        ),
        r"kernel_\.params should not have \['n_jobs'\]",
    ),
    "a bandwidth that is a rule": (
        "nystrom",
        set_fitted("kernel_", narrow_kernel(gamma="mean")),
        "gamma='mean' should be a finite number",
    ),
    "a bandwidth below zero": (
        "nystrom",
        set_fitted("kernel_", narrow_kernel(gamma=-1.0)),
        "gamma=-1.0 should be positive",
    ),
    "integers for floats": (
        "nystrom",
        set_tensor("dual_coef_", lambda a: a.astype(np.int64)),
        "dual_coef_ of type int64 .* should be an array of floats",
    ),
    "an array for a number": (
        "nystrom",
        lambda node, _: node["fitted"].update(cost_=node["fitted"]["cost_path_"]),
        "(?s)cost_=.* should be a finite number",
    ),
    "an order of another sort": (
        "nystrom",
        set_fitted("_means", {"tensor": "_means", "order": "K"}),
        "order 'K'",
    ),
    # Numbers
    "not a number": (
        "nystrom",
        set_tensor("landmarks_", with_nan),
        "landmarks_ should hold finite numbers only",
    ),
    "not a number, sparse": (
        "exact",
        set_tensor("X_fit_.data", with_nan),
        "X_fit_ should hold finite numbers only",
    ),
    # Shapes
    "coefficients of fewer landmarks": (
        "nystrom",
        set_tensor("dual_coef_", lambda a: a[:-1]),
        r"landmarks_\.shape\[0\]=12 should be 11, as in other attributes",
    ),
    "landmarks of fewer features": (
        "nystrom",
        set_tensor("landmarks_", lambda a: a[:, :-1]),
        r"landmarks_\.shape\[1\]=8 should be 9",
    ),
    "landmarks that are not reduced": (
        "automatic",
        lambda node, tensors: tensors.update(
            landmarks_=np.ones((len(tensors["landmarks_"]), 9))
        ),
        r"landmarks_\.shape\[1\]=9 should be",
    ),
    "means of other shape": (
        "nystrom",
        set_tensor("_means", lambda a: a.T),
        r"_means\.shape\[0\]=12 should be 3",
    ),
    "three dimensions": (
        "nystrom",
        set_tensor("_means", lambda a: a[None]),
        "should have 2 dimensions",
    ),
    "nothing": (
        "nystrom",
        set_tensor("cost_path_", lambda a: a[:0]),
        "cost_path_.* should not be empty",
    ),
    "too few names": (
        "automatic",
        lambda node, _: node["fitted"]["feature_names_in_"]["strings"].pop(),
        "feature_names_in_=8 should be 9",
    ),
    "names that are numbers": (
        "automatic",
        set_fitted("feature_names_in_", {"strings": list(range(9))}),
        "feature_names_in_ should be an array of strings",
    ),
    "a rank above the landmarks": ("nystrom", set_fitted("rank_", 13), "rank_=13"),
    "the reducer of another table": (
        "automatic",
        both(
            lambda node, _: node["fitted"]["reducer_"]["fitted"].update(
                n_features_in_=8
            ),
            lambda node, _: node["fitted"]["reducer_"]["fitted"].pop(
                "feature_names_in_"
            ),
            set_tensor("reducer_.probabilities_", lambda a: a[:8]),
            set_tensor("reducer_._sketch.features", lambda a: np.arange(len(a))),
        ),
        r"reducer_\.n_features_in_=8 should be 9",
    ),
    "a feature beyond the last": (
        "automatic",
        set_tensor("reducer_._sketch.features", lambda a: a + 9),
        "features should be ascending and below n_features_in_=9",
    ),
    "features out of order": (
        "automatic",
        set_tensor("reducer_._sketch.features", lambda a: a[::-1]),
        "features should be ascending",
    ),
    "too many signs": (
        "csr",
        lambda node, _: node["fitted"]["reducer_"]["fitted"]["_sketch"][
            "fields"
        ].update(width=10**9),
        "bits.shape=.* should fit the width",
    ),
    "row numbers beyond the last": (
        "given",
        set_tensor("X_fit_", lambda a: a + 1),
        "X_fit_ should hold row numbers below 120",
    ),
    "given values behind a reducer": (
        "automatic",
        set_fitted("kernel_", {"object": "Precomputed", "params": {}}),
        "reducer_ should be None where kernel values are given",
    ),
    "an estimator of other names": (
        "table",
        lambda node, _: node["fitted"]["estimator_"]["fitted"].pop("feature_names_in_"),
        r"estimator_\.reducer_\.feature_names_in_|feature_names_in_ should be",
    ),
    "negative row numbers": (
        "given",
        set_tensor("X_fit_", lambda a: a - 1),
        "X_fit_ should hold row numbers below 120",
    ),
    "sparse indices beyond the last": (
        "exact",
        set_tensor("X_fit_.indices", lambda a: a + 1),
        "ind",
    ),
    "sparse rows in disorder": (
        "exact",
        set_tensor("X_fit_.indptr", lambda a: np.r_[0, a[-2:0:-1], a[-1]]),
        "ind",
    ),
    "sparse indices that are floats": (
        "exact",
        set_tensor("X_fit_.indices", lambda a: a.astype(np.float64)),
        "indices of 32 or 64 bits",
    ),
    "a sparse matrix of exabytes": (
        "exact",
        lambda node, _: node["fitted"]["X_fit_"].update(shape=[120, 2**61]),
        r"X_fit_\.shape\[1\]=.* should be 9",
    ),
    # Estimators in estimators
    "an estimator for another table": (
        "table",
        both(
            set_fitted("n_features_in_", 9),
            lambda node, _: node["fitted"].pop("feature_names_in_"),
            lambda node, tensors: tensors.pop(
                node["fitted"].pop("column_weights_")["tensor"]
            ),
            set_fitted("columns_", list(range(9))),
            set_tensor("center_", lambda a: np.ones(9)),
            set_tensor("scale_", lambda a: np.ones(9)),
            set_tensor("fill_", lambda a: np.ones(9)),
        ),
        r"estimator_\.n_features_in_=8 should be 9",
    ),
    "a scale of zero": (
        "table",
        set_tensor("scale_", lambda a: 0 * a),
        "scale_ should not hold zero",
    ),
    "an estimator within itself": (
        "table",
        lambda node, _: node["fitted"].update(estimator_=copy.deepcopy(node)),
        "estimator_ of class TableClusterer should be one of",
    ),
    "an estimator that is not fitted": (
        "table",
        lambda node, _: node["fitted"]["estimator_"].pop("fitted"),
        r"estimator_.*keys",
    ),
    "a plan for other columns": (
        "table",
        lambda node, _: node["fitted"]["plan_"].pop(),
        "columns_ should be the columns of plan_ that are used",
    ),
    "a plan of an unknown kind": (
        "table",
        lambda node, _: node["fitted"]["plan_"][0]["fields"].update(kind="code()"),
        r"plan_\[0\]\.kind='code\(\)' should be one of",
    ),
    "a unit of zero": (
        "table",
        lambda node, _: node["fitted"]["plan_"][0]["fields"]["encoder"][
            "fields"
        ].update(unit=0.0),
        r"plan_\[0\]\.encoder\.unit=0\.0 should be",
    ),
    "codes that are words": (
        "table",
        lambda node, _: node["fitted"]["plan_"][0]["fields"]["encoder"][
            "fields"
        ].update(sentinels={"tuple": ["999"]}),
        r"sentinels\[0\]='999' should be a finite number",
    ),
    "names of other columns": (
        "table",
        set_fitted("columns_", list("abcdefgh")),
        "feature_names_in_ should be columns_",
    ),
}


@pytest.mark.parametrize("base", sorted({base for base, _, _ in FORGERIES.values()}))
def test_forgeries_are_refused(base, saved, tmp_path):
    for name, (model, edit, reason) in FORGERIES.items():
        if model == base:
            schema, tensors = parts(saved[base][1])
            edit(schema["model"], tensors)
            path = forged(tmp_path / "m.skm", schema, tensors)
            with contained(10):
                _, error = outcome(path)
            assert error is not None, name
            assert re.search(reason, str(error)), name


def test_schemas_that_are_none(tmp_path):
    for text, reason in (
        ("[" * 100_000, "its JSON is nested too deeply"),
        ('{"model": ' * 100_000, "its JSON is nested too deeply"),
        ("{", "Expecting"),
        ("null", "its schema should have the keys"),
        ('{"written_by": 1, "model": NaN}', "NaN is not a number"),
        ('{"written_by": 1, "model": {}, "model": {}}', "a name appears twice"),
        ('{"written_by": 1, "model": 1e999}', "the model of class None"),
        ('{"written_by": 1, "model": [[]]}', "the model of class None"),
        ('{"written_by": 1, "model": ' + "1" * 5000 + "}", "limit"),
    ):
        path = forged(tmp_path / "m.skm", text, {})
        with contained(10), pytest.raises(ModelFileError, match=reason):
            sketchmeans.load(path)


def test_infinite_numbers_of_json(saved, tmp_path):
    schema, tensors = parts(saved["nystrom"][1])
    schema["model"]["params"]["tol"] = "HERE"
    text = json.dumps(schema).replace('"HERE"', "1e999")
    path = forged(tmp_path / "m.skm", text, tensors)
    with pytest.raises(ModelFileError, match=r"params\.tol=inf should be finite"):
        sketchmeans.load(path)


def test_a_newer_version(saved, tmp_path):
    header, payload = split(saved["nystrom"][1].read_bytes())
    header["__metadata__"] = {"format": "sketchmeans-model", "version": "2", "new": "x"}
    (tmp_path / "m.skm").write_bytes(joined(header, payload))
    with pytest.raises(
        ModelFileError, match=r"m\.skm.*newer sketchmeans, in format 2.*Upgrade"
    ):
        sketchmeans.load(tmp_path / "m.skm")


# --- forgery at random ----------------------------------------------------------------

TAGS = ["tensor", "csr", "object", "record", "params", "fitted", "fields", "strings"]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 200)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["auto", "rbf", "precomputed", "", "__class__", "landmarks_"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(TAGS),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)


def places(node, path=()):
    """Yield the path of every part of a JSON tree."""
    yield path
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(value, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


@st.composite
def edits(draw, schema, tensors):
    """Change a few parts of a schema, and the shapes and types of tensors."""
    schema, tensors = copy.deepcopy(schema), dict(tensors)
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in places(schema["model"]) if path]
        path = draw(st.sampled_from(paths))
        parent, key = at(schema["model"], path[:-1]), path[-1]
        action = draw(st.sampled_from(["set", "delete", "copy", "tensor"]))
        if action == "set":
            parent[key] = draw(JSON)
        elif action == "delete":
            del parent[key]
        elif action == "copy":
            source = draw(st.sampled_from(paths))
            parent[key] = copy.deepcopy(at(schema["model"], source))
        else:
            name = draw(st.sampled_from(sorted(tensors)))
            edit = draw(st.sampled_from(TENSOR_EDITS))
            with np.errstate(all="ignore"):
                tensors[name] = edit(tensors[name])
    return schema, tensors


TENSOR_EDITS = [
    lambda a: a.T,
    lambda a: a[:-1],
    lambda a: a[..., :-1] if a.ndim else a,
    lambda a: a.astype(np.float32),
    lambda a: a.astype(np.int16),
    lambda a: -a.astype(np.float64),
    lambda a: a.ravel(),
    lambda a: a[None],
    lambda a: np.concatenate([a, a]) if a.ndim else a,
    lambda a: a * np.float64("inf"),
    lambda a: a + 1000 if a.dtype.kind in "iu" else a * 1e300,
]


def assert_usable(model):
    """Assert that a model answers for rows, whatever its numbers are."""
    d = model.n_features_in_
    assert 1 <= d <= 200
    rows = np.random.default_rng(0).random((5, d))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        rows = pd.DataFrame(rows, columns=names)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        labels = model.predict(rows)
    assert labels.shape == (5,)
    assert ((labels >= 0) & (labels < len(model.cluster_sizes_))).all()
    repr(model)


@pytest.mark.parametrize("name", MODELS)
def test_forgeries_at_random(name, saved, tmp_path):
    schema, tensors = parts(saved[name][1])
    outcomes = []

    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(edits(schema, tensors))
    def check(forgery):
        path = forged(tmp_path / "m.skm", *forgery)
        with contained(10):
            model, error = outcome(path)
        outcomes.append(error is None)
        if error is None:
            assert_usable(model)

    check()
    assert outcomes.count(False) > 12
