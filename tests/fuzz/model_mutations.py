"""Mutations of model files and checkpoints, and what may come of them.

``python -m tests.fuzz.model_mutations TARGET FIRST COUNT`` tries some of them in a
process whose memory is limited.  A mutation is a function of its number alone, which is
printed before anything is tried: the last line of a process that died tells which.
"""

import copy
import json
import resource
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import sketchmeans
from sketchmeans import Checkpoint, ModelFileError, NystromKMeans
from sketchmeans.cluster.within import find_clusterer
from sketchmeans.data.preparation import DateEncoder
from sketchmeans.engine.checkpoint import SavedFit
from sketchmeans.numerics.tensor_file import read_tensors, write_tensors
from tests.stored_models import FOLDER, TABLES, read_model, stored_tables, write_model

#: Bytes of address space that a mutation may take beyond what is there before.
MEMORY = 256 * 2**20


# --- bytes ----------------------------------------------------------------------------


def flip(data, rng):
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def flip_early(data, rng):
    return flip(data[:1000], rng) + data[1000:]


def flip_late(data, rng):
    return data[:-400] + flip(data[-400:], rng)


def cut(data, rng):
    return data[: rng.integers(len(data))]


def insert(data, rng):
    at = rng.integers(len(data))
    return data[:at] + rng.bytes(rng.integers(1, 40)) + data[at:]


def remove(data, rng):
    at = rng.integers(len(data))
    return data[:at] + data[at + rng.integers(1, 40) :]


def fill(data, rng):
    at, size = rng.integers(len(data)), rng.integers(1, 300)
    filler = bytes([rng.choice([0, 255, 32, 91, 123])])
    return data[:at] + filler * len(data[at : at + size]) + data[at + size :]


def move(data, rng):
    a, b = rng.integers(len(data), size=2)
    size = rng.integers(1, 200)
    piece = data[a : a + size]
    return data[:b] + piece + data[b + len(piece) :]


def huge_number(data, rng):
    """Put a large number where some number is: a length, an offset or a shape."""
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    at = int(rng.choice(places))
    number = rng.choice([b"9" * 18, b"-1", b"1e999", b"9" * 400, b"4294967297", b"0"])
    return data[:at] + bytes(number) + data[at + 1 :]


def words(data, rng):
    """Put an extreme word of 2, 4 or 8 bytes anywhere: sizes in binary headers."""
    size = int(rng.choice([2, 4, 8]))
    at = rng.integers(len(data) - size)
    word = [0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size) - 1][rng.integers(4)]
    return data[:at] + word.to_bytes(size, "little") + data[at + size :]


def append(data, rng):
    return data + rng.bytes(rng.integers(1, 100))


BYTES = [
    flip,
    flip_early,
    flip_late,
    cut,
    insert,
    remove,
    fill,
    move,
    huge_number,
    words,
    append,
]


# --- content, under a digest that is right --------------------------------------------

ARRAYS = [
    lambda a, rng: a.T,
    lambda a, rng: a[:-1] if a.ndim else a,
    lambda a, rng: a[..., :-1] if a.ndim else a,
    lambda a, rng: a[None],
    lambda a, rng: a.ravel(),
    lambda a, rng: np.concatenate([a, a]) if a.ndim else a,
    lambda a, rng: a[:0] if a.ndim else a,
    lambda a, rng: a.astype(rng.choice(["f4", "f8", "i2", "i8", "u1", "?"])),
    lambda a, rng: a * np.float64("nan"),
    lambda a, rng: a * np.float64("inf"),
    lambda a, rng: a - 1000 if a.dtype.kind == "i" else a,
    lambda a, rng: a + 1000 if a.dtype.kind == "i" else a,
]
#: Numbers that are merely wrong: no reader can tell.
WRONG = [lambda a, rng: -a.astype(np.float64), lambda a, rng: a * 1e300]

VALUES = [None, True, 0, -1, 3, 2**70, 0.5, -1e308, "", "rbf", "auto", "__class__"]
VALUES += [[], {}, [[]], {"tensor": "landmarks_"}, {"object": "RBF", "params": {}}]


def places(node, path=()):
    """Yield the path of every part of a JSON tree but the root."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from places(value, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def mutate_arrays(arrays, rng, changes):
    """Change, drop or swap one of some named arrays."""
    arrays = dict(arrays)
    name = str(rng.choice(sorted(arrays)))
    match rng.integers(5):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = arrays[str(rng.choice(sorted(arrays)))]
        case _:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                change = changes[rng.integers(len(changes))]
                arrays[name] = np.ascontiguousarray(change(arrays[name], rng))
    return arrays


def mutate_json(root, rng):
    """Set, delete or copy one part of a tree."""
    root = copy.deepcopy(root)
    paths = list(places(root))
    path = paths[rng.integers(len(paths))]
    parent, key = at(root, path[:-1]), path[-1]
    match rng.integers(4):
        case 0:
            del parent[key]
        case 1:
            parent[key] = copy.deepcopy(at(root, paths[rng.integers(len(paths))]))
        case _:
            parent[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return root


# --- model files ----------------------------------------------------------------------


@cache
def model_files():
    return sorted(FOLDER.glob("*/*.skm"))


def write_model_mutation(rng, path):
    """Write a damaged or forged model file; return whether it is forged."""
    files = model_files()
    file = files[rng.integers(len(files))]
    if rng.random() < 0.5:
        data = file.read_bytes()
        path.write_bytes(BYTES[rng.integers(len(BYTES))](data, rng))
        return False
    _, schema, tensors = read_model(file)
    root = json.loads(schema)
    for _ in range(rng.integers(1, 3)):
        if tensors and rng.random() < 0.5:
            tensors = mutate_arrays(tensors, rng, ARRAYS + WRONG)
        else:
            root["model"] = mutate_json(root["model"], rng)
    write_model(path, json.dumps(root), tensors)
    return True


def try_model(rng, folder):
    """Load a mutation: a model that answers, or our own error."""
    path = folder / "m.skm"
    write_model_mutation(rng, path)
    try:
        model = sketchmeans.load(path)
    except ModelFileError as error:
        reason = str(error)
    else:
        try:
            check_answers(model)
        except ValueError as error:
            if "kernel values overflow" not in str(error):  # too large for their type
                raise
        return "loaded"
    assert repr(str(path)) in reason
    assert len(reason) < 2000
    return "refused"


def check_answers(model):
    """Check that a model answers for rows, whatever its numbers are."""
    d = model.n_features_in_
    if getattr(model, "kernel", "") == "precomputed" and d > 200:
        return  # as many training rows as somebody says
    assert 1 <= d <= 200
    rows = np.random.default_rng(0).random((5, d))
    names = getattr(model, "feature_names_in_", None)
    if names is not None and len(set(names)) == d:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
        for column in getattr(model, "plan_", ()):
            if isinstance(column.encoder, DateEncoder):
                rows[column.name] = pd.Timestamp("2024-02-29 12:00")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if hasattr(model, "predict"):
            labels = model.predict(rows)
            assert labels.shape == (5,)
            assert ((labels >= -1) & (labels < count_clusters(model))).all()
        else:
            model.transform(rows)


def count_clusters(model):
    """Return the number of clusters, of whatever a pipeline or a table ends in."""
    inner = find_clusterer(model)
    sizes = getattr(inner, "cluster_sizes_", None)
    return len(inner.cluster_centers_ if sizes is None else sizes)


# --- checkpoints ----------------------------------------------------------------------


class Cut(BaseException):
    """The process ends here."""


FITS = {
    "indices": {"n_landmarks": 9, "random_state": 0},
    "no seed": {"n_landmarks": 9, "tol": 0.0, "max_iter": 4},
    "centroids": {"n_landmarks": 9, "landmarks": "kmeans", "random_state": 0},
    "auto": {"random_state": 0},
}


@cache
def checkpoints():
    """Return checkpoints, finished and cut off, with the parameters of their fits."""
    X = TABLES["float64"](stored_tables())
    found = []
    write = SavedFit.write
    for params in FITS.values():
        for cut_after in (3, 1000):
            count = 0

            def counted(self, most=cut_after):
                nonlocal count
                write(self)
                count += 1
                if count == most:
                    raise Cut

            SavedFit.write = counted
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "run.ckpt"
                try:
                    fit(params, X, Checkpoint(path, every=0.0))
                except Cut:
                    pass
                finally:
                    SavedFit.write = write
                found.append((params, path.read_bytes(), read_checkpoint(path)))
    return X, found


KIND, VERSION = "sketchmeans-checkpoint", "6"


def read_checkpoint(path):
    file = read_tensors(path, KIND, lambda version: None)
    assert file.version == VERSION
    return json.loads(file.text), file.tensors


def write_checkpoint(path, about, arrays):
    write_tensors(path, KIND, VERSION, json.dumps(about), arrays)


def fit(params, X, checkpoint):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return NystromKMeans(3, n_jobs=1, **params).fit(X, checkpoint=checkpoint)


def try_checkpoint(rng, folder):
    """Resume from a mutation: a fit of these rows, or our own error."""
    X, found = checkpoints()
    params, data, (about, arrays) = found[rng.integers(len(found))]
    path = folder / "run.ckpt"
    if rng.random() < 0.7:
        path.write_bytes(BYTES[rng.integers(len(BYTES))](data, rng))
    elif rng.random() < 0.3:
        write_checkpoint(path, mutate_json(about, rng), arrays)
    else:
        # What an engine keeps is its own affair, under the digest.
        engine = {name: a for name, a in arrays.items() if "/engine/" in name}
        others = {name: a for name, a in arrays.items() if name not in engine}
        write_checkpoint(path, about, engine | mutate_arrays(others, rng, ARRAYS))
    before = path.read_bytes()
    try:
        model = fit(params, X, path)
    except ValueError as error:
        reason = str(error)
    else:
        check_labels(model, X)
        return "resumed"
    assert "run.ckpt" in reason, reason
    assert path.read_bytes() == before
    return "refused"


def check_labels(model, X):
    assert model.labels_.shape == (len(X),)
    assert ((model.labels_ >= 0) & (model.labels_ < 3)).all()


TARGETS = {"models": try_model, "checkpoints": try_checkpoint}


def main(target, first, count):
    try_one = TARGETS[target]
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        try_one(np.random.default_rng(0), Path(folder))  # all is imported
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number in range(first, first + count):
            print(f"{target} {number}", flush=True)
            for leftover in Path(folder).iterdir():
                leftover.unlink()
            outcome = try_one(np.random.default_rng([17, number]), Path(folder))
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
