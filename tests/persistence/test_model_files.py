"""Model files: what is saved comes back, and nothing else does."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import estimator_html_repr

import sketchmeans
from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    Kernel,
    KernelKMeans,
    LaplacianScore,
    ModelFileError,
    Nystrom,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
)
from sketchmeans.engine.init import KMeansPlusPlus, LocalSearch, RandomSeeding
from sketchmeans.kernels import KERNELS, RBF, Pairwise
from sketchmeans.landmarks import SELECTORS
from sketchmeans.persistence.registry import SPECS
from sketchmeans.persistence.values import Decoder, Encoder

#: What a file leaves out, or what is computed again when it is needed.
LEFT_OUT = {"labels_", "_inverse", "_skl_callbacks", "_parent_callback_ctx"}

ROWS_ARE_STORED = "ignore:The model file of a KernelKMeans"
INDEFINITE = "ignore:.* is not positive semi-definite"


@pytest.fixture(scope="module", name="X")
def data():
    return np.random.default_rng(0).random((120, 6))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "m.skm"


def assert_same(value, other, where="model"):
    """Assert that two values have the same types, bits and order in memory."""
    if isinstance(value, np.generic):
        value = value.item()
    assert type(value) is type(other), where
    if isinstance(value, np.ndarray):
        assert value.dtype.newbyteorder("=") == other.dtype, where
        if value.ndim == 2:
            assert value.flags.c_contiguous == other.flags.c_contiguous, where
        np.testing.assert_array_equal(value, other)
        assert value.shape == other.shape, where
    elif sparse.issparse(value):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(value, part), getattr(other, part), f"{where}.{part}")
        assert value.shape == other.shape
    elif isinstance(value, BaseEstimator):
        assert vars(value).keys() - LEFT_OUT == vars(other).keys() - LEFT_OUT, where
        for name in vars(value).keys() - LEFT_OUT:
            inner = vars(value)[name], vars(other)[name]
            assert_same(*inner, f"{where}.{name}")
    elif is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name), getattr(other, field.name)
            assert_same(*inner, f"{where}.{field.name}")
    else:
        assert value == other, where


def through(model, file):
    """Return a model after a trip to the disk."""
    sketchmeans.save(model, file)
    again = sketchmeans.load(file)
    assert_same(model, again)
    return again


def assert_same_results(model, again, X):
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(X), model.predict(X), strict=True)
    if getattr(model, "kernel", None) != "precomputed" or isinstance(model, Nystrom):
        features, others = model.transform(X), again.transform(X)
        assert_same(features, others)
    if hasattr(model, "cost") and getattr(model, "kernel", None) != "precomputed":
        assert again.cost(X) == model.cost(X)
        assert again.score(X) == model.score(X)


MODELS = {
    "exact": lambda: KernelKMeans(4, random_state=0),
    "nystrom": lambda: NystromKMeans(4, random_state=0),
    "nystrom of low rank": lambda: NystromKMeans(
        4, n_landmarks=30, rank=10, random_state=0
    ),
    "nystrom of centroids": lambda: NystromKMeans(
        4, n_landmarks=30, landmarks="kmeans", random_state=0
    ),
    "sketched": lambda: SketchedKMeans(4, random_state=0),
    "spectral": lambda: SpectralKMeans(4, random_state=0),
    "spectral of all landmarks": lambda: SpectralKMeans(
        "auto", affinity="rbf", random_state=0
    ),
    "map": lambda: Nystrom(n_landmarks=30, random_state=0),
    "map of low rank": lambda: Nystrom(
        n_landmarks=30, rank=5, rank_method="approximation", random_state=0
    ),
    "sampling": lambda: FeatureSampling(5, n_clusters=3, random_state=0),
    "signs": lambda: SignProjection(5, random_state=0),
    "mailman": lambda: SignProjection(5, method="mailman", random_state=0),
    "svd": lambda: ApproximateSVD(3, random_state=0),
    "exact svd": lambda: ApproximateSVD(3, svd="exact", random_state=0),
    "laplacian": lambda: LaplacianScore(4),
} | {
    f"nystrom on {name}": lambda name=name: NystromKMeans(
        4, n_landmarks=30, reducer=name, random_state=0
    )
    for name in ("sampling", "sign", "svd", "laplacian")
}

TABLES = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: (X * 255).astype(np.uint8),
    "columns in order": lambda X: np.asfortranarray(X),
    "big-endian": lambda X: X.astype(">f8"),
    "csr": lambda X: sparse.csr_array(np.where(X > 0.6, X, 0.0)),
    "csr matrix, float32": lambda X: sparse.csr_matrix(
        np.where(X > 0.6, X, 0.0).astype(np.float32)
    ),
    "named": lambda X: pd.DataFrame(X, columns=[f"spalte ä{i}" for i in range(6)]),
}


#: Every model with one of the tables, in turn.
PAIRS = list(zip(MODELS, cycle(TABLES), strict=False))


@pytest.mark.filterwarnings(ROWS_ARE_STORED)
@pytest.mark.parametrize(("name", "table"), PAIRS)
def test_models_come_back_with_the_same_bits(name, table, X, file):
    table = TABLES[table](X)
    model = MODELS[name]().fit(table)
    assert_same_results(model, through(model, file), table)


@pytest.mark.filterwarnings(ROWS_ARE_STORED, INDEFINITE)
@pytest.mark.parametrize(
    ("kernel", "estimator"),
    [
        *zip(
            sorted((KERNELS | PAIRWISE_KERNEL_FUNCTIONS).keys() - {"precomputed"}),
            cycle([NystromKMeans, Nystrom, KernelKMeans]),
            strict=False,
        ),
        *(("precomputed", e) for e in (NystromKMeans, Nystrom, KernelKMeans)),
    ],
)
def test_every_kernel(kernel, estimator, X, file):
    table = (
        X.astype(np.float32) @ X.T.astype(np.float32)
        if kernel == ("precomputed")
        else X
    )
    size = {} if estimator is KernelKMeans else {"n_landmarks": 20}
    model = estimator(kernel=kernel, random_state=0, **size).fit(table)
    assert_same_results(model, through(model, file), table)


PARAMETERS = [
    {
        "kernel": "arc-cosine",
        "kernel_params": {"order": 2},
        "landmarks": [5, 7, 9, 20, 21],
        "init": np.arange(120) % 4,
    },
    {
        "kernel": RBF(gamma=np.float32(0.5)),
        "landmarks": np.eye(6),
        "init": np.eye(6)[:4],
    },
    {
        "kernel": Pairwise("chi2", {"gamma": 2.0}),
        "landmarks": type(SELECTORS["rpcholesky"]())(),
        "init": np.arange(4, dtype=np.int32),
    },
    {"landmarks": sparse.csr_array(np.eye(6)), "init": LocalSearch(n_steps=3)},
    {"reducer": SignProjection(4, random_state=3), "init": KMeansPlusPlus("auto")},
    {"n_clusters": np.int64(3), "tol": np.float64(1e-3), "init": RandomSeeding()},
    {"max_memory": "1GB", "n_jobs": 1, "verbose": False},
]


@pytest.mark.parametrize("given", PARAMETERS)
def test_every_parameter(given, X, file):
    params = {"n_clusters": 4, "random_state": 0} | given
    if not isinstance(params.get("landmarks"), list | np.ndarray | sparse.csr_array):
        params["n_landmarks"] = 25
    model = NystromKMeans(**params).fit(X)
    sketchmeans.save(model, file)
    again = sketchmeans.load(file)
    assert_same_results(model, again, X)
    for key, value in model.get_params().items():
        loaded = again.get_params()[key]
        assert_same(value, loaded, key)


def test_every_selector():
    for make in SELECTORS.values():
        selector, encoder = make(), Encoder()
        node = json.loads(json.dumps(encoder.encode(selector, "landmarks")))
        assert_same(selector, Decoder(encoder.tensors).decode(node, "landmarks"))


def test_given_landmarks_are_stored_once(X, file):
    big = np.random.default_rng(0).random((200, 6))
    model = NystromKMeans(3, landmarks=big, random_state=0).fit(X)
    again = through(model, file)
    assert again.landmarks is again.landmarks_
    assert sum(t.shape == big.shape for t in load_file(file).values()) == 1


def test_strided_points_agree_to_rounding(X, file):
    wide = np.random.default_rng(0).random((60, 12))
    model = NystromKMeans(3, landmarks=wide[::2, ::2], random_state=0).fit(X)
    sketchmeans.save(model, file)
    again = sketchmeans.load(file)
    np.testing.assert_allclose(again.transform(X), model.transform(X), rtol=1e-12)


@pytest.mark.filterwarnings(ROWS_ARE_STORED)
@pytest.mark.parametrize(
    ("inner", "params"),
    [
        ("exact", {"exclude": ["c2"], "missing": "drop"}),
        ("nystrom", {"columns": ["c5", "c1"], "scale": "robust", "missing": "mean"}),
        (
            "sketched",
            {"exclude": np.array(["c0"], object), "missing": "mean", "scale": "none"},
        ),
        ("nystrom on sampling", {"missing": "drop"}),
    ],
)
def test_an_estimator_in_an_estimator(inner, params, X, file):
    table = pd.DataFrame(X.copy(), columns=[f"c{i}" for i in range(6)])
    table.iloc[3, 5] = np.nan
    model = TableClusterer(MODELS[inner](), **params).fit(table)
    again = through(model, file)
    with pytest.raises(AttributeError, match="a model file does not keep it"):
        _ = again.labels_
    np.testing.assert_array_equal(again.predict(table), model.labels_)
    np.testing.assert_array_equal(again.transform(table), model.transform(table))
    assert again.cost(table) == model.cost(table)
    assert_same(model.exemplars_, again.exemplars_)


def test_columns_without_names(X, file):
    model = TableClusterer(MODELS["nystrom"](), columns=(0, 2)).fit(X)
    again = through(model, file)
    np.testing.assert_array_equal(again.predict(X), model.labels_)


@pytest.mark.parametrize("batches", [0, 2])
def test_partial_fit_goes_on(batches, X, file):
    model = NystromKMeans(4, n_landmarks=25, rank=20, random_state=0).fit(X[:40])
    for _ in range(batches):
        model.partial_fit(X[40:80])
    again = through(model, file)
    model.partial_fit(X[80:])
    again.partial_fit(X[80:])
    assert_same(model, again)


def test_a_loaded_model_is_an_ordinary_estimator(X, file):
    model = NystromKMeans(4, reducer="svd", random_state=0).fit(X)
    again = through(model, file)
    assert repr(again) == repr(model)
    assert "NystromKMeans" in estimator_html_repr(again)
    fresh = clone(again).fit(X)
    np.testing.assert_array_equal(fresh.labels_, model.labels_)
    assert_same(fresh, through(again, file))
    assert again.get_feature_names_out()[0] == "nystromkmeans0"


def test_labels_are_left_out_and_the_error_says_why(X, file):
    model = SketchedKMeans(4, random_state=0).fit(X)
    again = through(model, file)
    assert not hasattr(again, "labels_")
    with pytest.raises(AttributeError, match=r"labels_.*model file.*predict"):
        _ = again.labels_
    assert not hasattr(SketchedKMeans(4), "labels_")
    assert b"labels_" not in file.read_bytes()


def test_size_at_the_shapes_of_mnist(file):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 784), dtype=np.float32)
    model = NystromKMeans(10, n_landmarks=400, tol=0.5, random_state=0).fit(X)
    assert model.landmarks_.shape == (400, 784)
    sketchmeans.save(model, file)
    assert file.stat().st_size < 1_500_000


def test_the_exact_model_warns_of_its_size(X, file):
    model = KernelKMeans(3, random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"all 120 training rows, 5\.76 kB"):
        sketchmeans.save(model, file)
    given = KernelKMeans(3, kernel="precomputed", random_state=0).fit(X @ X.T)
    sketchmeans.save(given, file)  # no rows, and no warning


@pytest.mark.parametrize(
    "state", [np.random.default_rng(0), np.random.RandomState(0)], ids=["new", "old"]
)
def test_a_generator_becomes_none(state, X, file):
    model = NystromKMeans(3, n_landmarks=20, random_state=state).fit(X)
    with pytest.warns(UserWarning, match=r"random_state is a .* holds None instead"):
        sketchmeans.save(model, file)
    again = sketchmeans.load(file)
    assert again.random_state is None
    assert_same_results(model, again, X)


# --- what is refused ------------------------------------------------------------------


class Mine(Kernel):
    """A kernel of one's own."""

    def against(self, Z, dtype=None, workers=None):
        return RBF(1.0).against(Z, dtype, workers)

    def diagonal(self, X):
        return np.ones(X.shape[0])


class Renamed(RBF):
    """A kernel that is only called as one of ours."""


Renamed.__name__ = "RBF"


class MySelector:
    def select(self, rows, kernel, n_landmarks, rng):
        return SELECTORS["uniform"]().select(rows, kernel, n_landmarks, rng)


def dot(x, z):
    return float(x @ z)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"kernel": dot}, r"params\.kernel=<function dot.* is code"),
        ({"kernel": Pairwise(dot)}, r"params\.kernel\.params\.metric=<func.* is code"),
        ({"kernel": Mine()}, r"params\.kernel is of class .*\.Mine"),
        ({"kernel": Renamed(1.0)}, r"params\.kernel is of class .*\.Renamed"),
        ({"landmarks": MySelector()}, r"params\.landmarks is of class .*\.MySelector"),
        ({"reducer": PCA(3)}, r"params\.reducer of class PCA should be one of"),
    ],
    ids=["function", "inner function", "kernel", "subclass", "selector", "transformer"],
)
def test_code_is_refused(params, reason, X, file):
    model = NystromKMeans(2, n_landmarks=5, random_state=0, **params).fit(X[:20])
    with pytest.raises(ModelFileError, match=reason) as caught:
        sketchmeans.save(model, file)
    assert "m.skm" in str(caught.value)
    assert os.listdir(file.parent) == []


def test_what_is_no_model(X, file):
    with pytest.raises(NotFittedError):
        sketchmeans.save(NystromKMeans(3), file)
    with pytest.raises(ModelFileError, match="a PCA is not a model"):
        sketchmeans.save(PCA(2).fit(X), file)
    with pytest.raises(TypeError, match="estimator"):
        sketchmeans.save(X, file)
    model = NystromKMeans(3, n_landmarks=20, random_state=0).fit(X)
    model.set_params(n_clusters="three")
    with pytest.raises(ModelFileError, match="n_clusters='three' should be an integer"):
        sketchmeans.save(model, file)
    model.set_params(n_clusters=3)
    model.dual_coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match="dual_coef_ should hold finite numbers"):
        sketchmeans.save(model, file)
    assert os.listdir(file.parent) == []


def test_paths(X, tmp_path):
    model = Nystrom(n_landmarks=20, random_state=0).fit(X)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sketchmeans.save(model, tmp_path / "nowhere" / "m.skm")
    with pytest.raises(FileNotFoundError, match=r"m\.skm"):
        sketchmeans.load(tmp_path / "m.skm")
    with pytest.raises(ModelFileError, match="should be a file"):
        sketchmeans.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="should be a file"):
        sketchmeans.load(tmp_path / "pipe")  # and does not wait for a writer
    sketchmeans.save(model, str(tmp_path / "text.skm"))
    assert_same(model, sketchmeans.load(str(tmp_path / "text.skm")))


def test_the_table_knows_every_public_class():
    for name in sketchmeans.__all__:
        value = getattr(sketchmeans, name)
        if isinstance(value, type) and hasattr(value, "fit"):
            assert SPECS[name].cls is value
            assert SPECS[name].fitted
    for spec in SPECS.values():
        if spec.cls.__module__.startswith("sketchmeans"):
            assert set(spec.params) == set(spec.cls._get_param_names())
        assert set(spec.params) <= set(spec.cls._get_param_names())


# --- the format -----------------------------------------------------------------------


def test_the_file_is_safetensors_with_a_schema(X, file):
    model = NystromKMeans(4, n_landmarks=20, random_state=0).fit(X)
    sketchmeans.save(model, file)
    tensors = load_file(file)
    np.testing.assert_array_equal(tensors["landmarks_"], model.landmarks_)
    data = file.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header["__metadata__"]
    assert metadata["format"] == "sketchmeans-model"
    assert metadata["version"] == "1.2"
    schema = json.loads(metadata["schema"])
    assert schema["written_by"] == f"sketchmeans {sketchmeans.__version__}"
    assert schema["model"]["object"] == "NystromKMeans"
    assert schema["model"]["params"]["n_landmarks"] == 20
    assert schema["model"]["fitted"]["landmarks_"] == {"tensor": "landmarks_"}


def test_the_file_can_be_read_as_the_docs_say(X, file):
    model = NystromKMeans(4, n_landmarks=20, random_state=0).fit(X)
    sketchmeans.save(model, file)
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__")
    total = hashlib.sha256(f"1.2\n{metadata['schema']}\n".encode())
    for name, entry in sorted(header.items()):
        shape = ",".join(map(str, entry["shape"]))
        total.update(f"{name}:{entry['dtype']}:{shape}\n".encode())
        first, last = entry["data_offsets"]
        total.update(data[start + first : start + last])
    assert total.hexdigest() == metadata["sha256"]

    fitted = json.loads(metadata["schema"])["model"]["fitted"]
    tensors = load_file(file)
    Z, alpha = tensors["landmarks_"], tensors["dual_coef_"]
    distances = ((X[:, None] - Z) ** 2).sum(axis=2)
    K = np.exp(-fitted["kernel_"]["params"]["gamma"] * distances)
    labels = (tensors["_squared_norms"] - 2.0 * K @ alpha).argmin(axis=1)
    np.testing.assert_array_equal(labels, model.labels_)


def test_the_same_model_makes_the_same_file(X, tmp_path):
    model = NystromKMeans(4, n_landmarks=20, random_state=0).fit(X)
    sketchmeans.save(model, tmp_path / "a.skm")
    sketchmeans.save(sketchmeans.load(tmp_path / "a.skm"), tmp_path / "b.skm")
    assert (tmp_path / "a.skm").read_bytes() == (tmp_path / "b.skm").read_bytes()


# --- whole or not at all --------------------------------------------------------------


def test_a_full_disk_leaves_the_old_file(X, file, monkeypatch):
    model = Nystrom(n_landmarks=20, random_state=0).fit(X)
    sketchmeans.save(model, file)
    before = file.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sketchmeans.numerics.atomic_file.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        sketchmeans.save(Nystrom(n_landmarks=30).fit(X), file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["m.skm"]


@pytest.mark.process
def test_a_write_that_is_cut_short_leaves_the_old_file(X, file):
    """The limit on the size of files makes a true write fail half-way."""
    model = Nystrom(n_landmarks=20, random_state=0).fit(X)
    sketchmeans.save(model, file)
    code = (
        "import resource, signal, sys, sketchmeans\n"
        "model = sketchmeans.load(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n"
        "    sketchmeans.save(model, sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "OSError"
    assert_same(model, sketchmeans.load(file))
    assert os.listdir(file.parent) == ["m.skm"]


#: Two models take turns under one name, until the writer is killed; what is there then?
KILLS = """
import os, random, signal, sys, time
from pathlib import Path
import sketchmeans

folder = Path(sys.argv[1])
names = [folder / "0.skm", folder / "1.skm"]
models = [sketchmeans.load(name) for name in names]
whole = [name.read_bytes() for name in names]
pause = random.Random(0)
start = time.perf_counter()  # a loaded machine takes its time
sketchmeans.save(models[0], folder / "m.skm")
longest = 10.0 * (time.perf_counter() - start)
for _ in range(6):
    (folder / "m.skm").unlink(missing_ok=True)
    writer = os.fork()
    if not writer:
        for turn in range(10**9):
            sketchmeans.save(models[turn % 2], folder / "m.skm")
    time.sleep(pause.uniform(0.0, longest))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    found = (folder / "m.skm").exists()
    print(whole.index((folder / "m.skm").read_bytes()) if found else "absent")
"""


@pytest.mark.slow
@pytest.mark.process
def test_a_kill_at_any_moment(X, tmp_path):
    for i, size in enumerate([20, 40]):
        model = Nystrom(n_landmarks=size, random_state=0).fit(X)
        sketchmeans.save(model, tmp_path / f"{i}.skm")
    done = subprocess.run(
        [sys.executable, "-c", KILLS, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    found = done.stdout.split()
    assert len(found) == 6
    assert {"0", "1"} & set(found)  # some writer got that far
