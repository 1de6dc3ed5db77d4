"""A fit that is cut off resumes, and ends as if nothing had happened."""

import io
import os
import re
import subprocess
import sys
import textwrap
from inspect import signature

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.utils.metadata_routing import get_routing_for_object

from sketchmeans import Checkpoint, NystromKMeans, SignProjection, TableClusterer
from sketchmeans.engine.checkpoint import SavedFit
from sketchmeans.kernels import Pairwise
from sketchmeans.landmarks import KernelKMeansPlusPlus
from sketchmeans.numerics.tensor_file import write_tensors


@pytest.fixture(scope="module", name="X")
def table():
    rows, _ = make_blobs(9000, 5, centers=12, cluster_std=2.5, random_state=0)
    return rows.astype(np.float32)


def estimator(**params):
    return NystromKMeans(8, **{"n_landmarks": 60, "random_state": 0, **params})


class Cut(BaseException):
    """The process ends here."""


def cut_after(monkeypatch, writes):
    """Let the fit die right after the file was written so many times."""
    write, count = SavedFit.write, 0

    def counted(self):
        nonlocal count
        write(self)
        count += 1
        if count == writes:
            raise Cut

    monkeypatch.setattr(SavedFit, "write", counted)


def assert_same(model, other):
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(model.cost_path_, other.cost_path_)
    np.testing.assert_array_equal(model.exemplar_indices_, other.exemplar_indices_)
    assert model.converged_ == other.converged_


EACH_ITERATION, EACH_STAGE = 0.0, 1e9


@pytest.mark.parametrize(
    ("params", "every"),
    [
        ({"tol": 0.0, "max_iter": 8}, EACH_ITERATION),
        ({"n_landmarks": "auto"}, EACH_STAGE),
        ({"landmarks": KernelKMeansPlusPlus(refine=True)}, EACH_STAGE),
        ({"algorithm": "full", "n_init": 3, "max_iter": 8}, EACH_ITERATION),
        ({"init": "random", "reducer": "svd"}, EACH_STAGE),
    ],
    ids=["many iterations", "auto", "centroids", "full", "reducer"],
)
@pytest.mark.filterwarnings("ignore:No convergence")
def test_every_cut_resumes_to_the_same_fit(params, every, X, tmp_path, monkeypatch):
    undisturbed = estimator(**params).fit(X)
    file = tmp_path / "run.ckpt"
    cuts = 0
    while True:
        # Each attempt gets on by one or two writes, and is cut off.
        with monkeypatch.context() as patch:
            cut_after(patch, 1 + cuts % 2)
            try:
                model = estimator(**params).fit(X, checkpoint=Checkpoint(file, every))
            except Cut:
                cuts += 1
                assert file.exists()
                assert os.listdir(tmp_path) == ["run.ckpt"]
                continue
        break
    assert cuts >= 1
    assert_same(model, undisturbed)


@pytest.fixture(scope="module", name="finished")
def finished_fit(X, tmp_path_factory):
    """Return a finished fit and the content of its checkpoint."""
    file = tmp_path_factory.mktemp("finished") / "run.ckpt"
    return estimator().fit(X, checkpoint=file), file.read_bytes()


@pytest.fixture(name="file")
def checkpoint_file(finished, tmp_path):
    """Return a copy of the finished checkpoint."""
    file = tmp_path / "run.ckpt"
    file.write_bytes(finished[1])
    return file


def test_a_finished_fit_is_read_and_not_computed(X, finished, file, monkeypatch):
    first = finished[0]
    monkeypatch.setattr(
        "sketchmeans.engine.restarts.lloyd",
        lambda *_, **__: pytest.fail("computed again"),
    )
    again = estimator().fit(X, checkpoint=str(file))
    assert_same(first, again)


def test_fit_predict_takes_the_files_of_fit_which_are_not_metadata(X, file, tmp_path):
    labels = estimator().fit_predict(
        X, checkpoint=file, labels_out=tmp_path / "labels.npy"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), labels)
    for model in (estimator(), TableClusterer(estimator())):
        requests = get_routing_for_object(model).fit.requests
        assert not {"checkpoint", "labels_out"} & set(requests)
        with sklearn.config_context(enable_metadata_routing=True):
            setter = getattr(model, "set_fit_request", lambda: None)
        assert not {"checkpoint", "labels_out"} & set(signature(setter).parameters)


def test_threads_and_memory_may_change(X, finished, tmp_path, monkeypatch):
    file = tmp_path / "run.ckpt"
    undisturbed = finished[0]
    cut_after(monkeypatch, 3)
    with pytest.raises(Cut):
        estimator(n_jobs=2).fit(X, checkpoint=file)
    model = estimator(n_jobs=1, max_memory="90MB", verbose=0).fit(X, checkpoint=file)
    assert_same(model, undisturbed)


def test_without_a_seed_the_drawn_one_is_kept(X, tmp_path, monkeypatch):
    file = tmp_path / "run.ckpt"
    with monkeypatch.context() as patch:
        cut_after(patch, 3)
        with pytest.raises(Cut):
            estimator(random_state=None).fit(X, checkpoint=file)
    one = estimator(random_state=None).fit(X, checkpoint=file)
    two = estimator(random_state=None).fit(X, checkpoint=file)
    assert_same(one, two)
    other = estimator(random_state=None).fit(X, checkpoint=tmp_path / "other.ckpt")
    assert (other.landmark_indices_ != one.landmark_indices_).any()


@pytest.mark.parametrize("kind", ["weights", "csr", "precomputed"])
def test_other_inputs(kind, X, tmp_path, monkeypatch):
    X, weights, params = X[:900], None, {}
    if kind == "weights":
        weights = 1.0 + np.arange(900) % 3
    if kind == "csr":
        X = sparse.csr_array(X)
    if kind == "precomputed":
        X, params = X @ X.T, {"kernel": "precomputed"}
    undisturbed = estimator(**params).fit(X, sample_weight=weights)
    file = tmp_path / "run.ckpt"
    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(Cut):
            estimator(**params).fit(
                X, sample_weight=weights, checkpoint=Checkpoint(file, 0)
            )
    model = estimator(**params).fit(X, sample_weight=weights, checkpoint=file)
    assert_same(model, undisturbed)


# --- kills ----------------------------------------------------------------------------

KILLED = textwrap.dedent(
    """
    import os, signal, sys, time, warnings
    import numpy as np
    from sklearn.datasets import make_blobs
    from sketchmeans import Checkpoint, NystromKMeans

    folder = sys.argv[1]
    warnings.simplefilter("ignore")
    rows, _ = make_blobs(12000, 5, centers=12, cluster_std=2.5, random_state=0)

    def fit(file):
        model = NystromKMeans(8, n_landmarks=80, tol=0.0, max_iter=40, random_state=0)
        return model.fit(rows, checkpoint=file)

    def attempt(file):
        pid = os.fork()
        if pid == 0:
            labels = fit(Checkpoint(file, every=0.0)).labels_
            np.save(file + ".npy", labels)
            os._exit(0)
        return pid

    rng, kills, done = np.random.default_rng(1), 0, 0
    while kills < 8:
        file = os.path.join(folder, f"{done}.ckpt")
        pid = attempt(file)
        time.sleep(rng.uniform(0.02, 0.35))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        kills += os.WIFSIGNALED(status)
        done += not os.WIFSIGNALED(status)
    file = os.path.join(folder, f"{done}.ckpt")
    os.waitpid(attempt(file), 0)
    expected = fit(None).labels_
    for number in range(done + 1):
        found = np.load(os.path.join(folder, f"{number}.ckpt.npy"))
        assert (found == expected).all(), number
    print("kills", kills, "fits", done + 1)
    """
)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "kills 8" in run.stdout


def test_ctrl_c_leaves_a_usable_checkpoint(X, finished, tmp_path, monkeypatch):
    file = tmp_path / "run.ckpt"
    undisturbed = finished[0]
    from sketchmeans.engine.blocks import BlockEngine

    assign, count = BlockEngine.assign, 0

    def interrupted(self, centers, before=None):
        nonlocal count
        count += 1
        if count == 12:
            raise KeyboardInterrupt
        return assign(self, centers, before)

    with monkeypatch.context() as patch:
        patch.setattr(BlockEngine, "assign", interrupted)
        with pytest.raises(KeyboardInterrupt):
            estimator().fit(X, checkpoint=file)
    assert_same(estimator().fit(X, checkpoint=file), undisturbed)


# --- errors ---------------------------------------------------------------------------


def test_a_checkpoint_of_other_parameters_is_refused(X, file):
    before = file.read_bytes()
    for other, text in (
        ({"n_clusters": 9}, r"n_clusters is 9 and was 8"),
        ({"tol": 0.5}, r"tol is 0.5 and was 'auto'"),
        ({"random_state": 1}, r"random_state is 1 and was 0"),
        ({"init": np.arange(8)}, r"init is an array of shape \(8,\), .* was 'auto"),
        ({"init": list(range(8))}, r"init is \[0, 1, 2, 3, 4, 5, 6, 7\] and was"),
        ({"landmarks": KernelKMeansPlusPlus()}, r"landmarks is KernelKMeansPlusPlus\("),
    ):
        with pytest.raises(ValueError, match=rf"is of another fit: {text}.*Delete"):
            estimator().set_params(**other).fit(X, checkpoint=file)
    assert file.read_bytes() == before


def test_a_checkpoint_of_other_rows_is_refused(X, file):
    with pytest.raises(ValueError, match=r"X.shape is \(8000, 5\) and was \(9000, 5\)"):
        estimator().fit(X[:8000], checkpoint=file)
    other = X.copy()
    other[4321, 3] = np.nextafter(other[4321, 3], np.float32(np.inf))
    with pytest.raises(ValueError, match="the rows' digest is"):
        estimator().fit(other, checkpoint=file)
    with pytest.raises(ValueError, match=r"X\.dtype is float64 and was float32"):
        estimator().fit(X.astype(np.float64), checkpoint=file)
    with pytest.raises(ValueError, match=r"sample_weight is an array .* and was None"):
        estimator().fit(X, sample_weight=np.arange(9000), checkpoint=file)


def test_given_starts_and_landmarks_are_compared_by_value(X, tmp_path):
    starts = [sparse.csr_array(X[i : i + 8].astype(np.float64)) for i in (0, 8)]
    params = {"n_landmarks": "auto", "landmarks": sparse.csr_array(X[:60]), "tol": 0.5}
    rows = sparse.csr_array(X[:900])
    file = tmp_path / "run.ckpt"
    first = estimator(init=starts[0], **params).fit(rows, checkpoint=file)
    again = estimator(init=starts[0].copy(), **params).fit(rows, checkpoint=file)
    assert_same(again, first)
    with pytest.raises(ValueError, match=r"init is a sparse matrix .* was a sparse"):
        estimator(init=starts[1], **params).fit(rows, checkpoint=file)


def dot(x, z):
    return float(x @ z)


class Selector:
    def select(self, rows, kernel, n_landmarks, rng):
        raise AssertionError("the checkpoint is refused first")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"kernel": dot}, "kernel=<function dot .* is code, which a checkpoint cannot"),
        ({"kernel": Pairwise(dot)}, "kernel.metric=<function dot .* is code"),
        ({"landmarks": Selector()}, "landmarks=.* is of class Selector, whose values"),
        (
            {"reducer": SignProjection(3, random_state=np.random.default_rng(0))},
            "reducer.random_state=.* is of class Generator, whose values",
        ),
    ],
    ids=["function", "inner function", "object", "generator"],
)
def test_what_cannot_be_compared_is_refused(params, text, X, tmp_path):
    with pytest.raises(ValueError, match=text):
        estimator(**params).fit(X[:200], checkpoint=tmp_path / "run.ckpt")
    assert os.listdir(tmp_path) == []


def test_a_file_that_has_changed_is_named(X, tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    table, file = tmp_path / "rows.npy", tmp_path / "run.ckpt"
    np.save(table, X)
    first = estimator().fit(table, checkpoint=file)
    os.utime(table, ns=(0, 0))  # the same rows
    assert_same(estimator().fit(table, checkpoint=file), first)
    assert_same(estimator().fit(X, checkpoint=file), first)
    np.save(table, X[::-1])
    with pytest.raises(ValueError, match=r"digest is .*rows\.npy changed since\)"):
        estimator().fit(table, checkpoint=file)


def test_a_file_that_changes_meanwhile_leaves_no_mixed_checkpoint(
    X, tmp_path, monkeypatch
):
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    table, file = tmp_path / "rows.npy", tmp_path / "run.ckpt"
    np.save(table, X)
    cut_after(monkeypatch, 2)
    with pytest.raises(Cut):
        estimator().fit(table, checkpoint=file)
    monkeypatch.undo()
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    before = file.read_bytes()
    run_stage = SavedFit.run_stage

    def changed(self, *args, **params):
        os.utime(table, ns=(0, 0))
        return run_stage(self, *args, **params)

    monkeypatch.setattr(SavedFit, "run_stage", changed)
    with pytest.raises(ValueError, match=r"have changed while .*rows\.npy"):
        estimator().fit(table, checkpoint=file)
    assert file.read_bytes() == before


def test_an_unreadable_file_is_reported_and_kept(X, file):
    whole = file.read_bytes()
    arrays = {}
    for name, save in (("npy", np.save), ("npz", np.savez)):
        with io.BytesIO() as stream:
            save(stream, np.ones(3))
            arrays[name] = stream.getvalue()
    length = int.from_bytes(whole[:8], "little")
    for content, text in (
        (b"", "is not a checkpoint"),
        (b"not a checkpoint", "is not a checkpoint"),
        (arrays["npy"], "is not a checkpoint"),
        (arrays["npz"], "is not a checkpoint"),
        (whole[: length // 2], "is not a checkpoint: .* or it is cut off"),
        (whole[:-100], "cannot be read: .* it is damaged or cut off"),
        (whole[:-100] + bytes(100), "cannot be read: .* SHA-256"),
        (
            whole.replace(b'"version": "6"', b'"version": "5"'),
            "cannot be read: it",
        ),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=rf"checkpoint='.*run.ckpt' {text}"):
            estimator().fit(X, checkpoint=file)
        assert file.read_bytes() == content


def test_a_full_disk_does_not_end_the_fit(X, finished, tmp_path, monkeypatch):
    undisturbed = finished[0]
    file = tmp_path / "run.ckpt"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sketchmeans.engine.checkpoint.write_tensors", full)
    with pytest.warns(RuntimeWarning) as caught:
        model = estimator().fit(X, checkpoint=file)
    assert_same(model, undisturbed)
    first, last = (str(warning.message) for warning in caught)
    assert re.search(r"run\.ckpt' could not be written: No space left.* cont", first)
    assert re.search(r"fit is done, but .*run\.ckpt' does not exist: No space", last)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_for_a_while(X, tmp_path, monkeypatch):
    file, count = tmp_path / "run.ckpt", 0

    def full_at_first(*args):
        nonlocal count
        count += 1
        if count <= 2:
            raise OSError(28, "No space left on device")
        write_tensors(*args)

    monkeypatch.setattr("sketchmeans.engine.checkpoint.write_tensors", full_at_first)
    with pytest.warns(RuntimeWarning, match="could not be written") as caught:
        first = estimator().fit(X, checkpoint=file)
    assert len(caught) == 1
    assert_same(estimator().fit(X, checkpoint=file), first)


def test_a_table_checks_its_checkpoint_before_it_is_read(tmp_path):
    model = TableClusterer(estimator())
    with pytest.raises(FileNotFoundError, match=r"no folder/run\.ckpt"):
        model.fit(tmp_path / "no.csv", checkpoint=tmp_path / "no folder" / "run.ckpt")


def test_errors_of_arguments(X, tmp_path):
    with pytest.raises(ValueError, match="checkpoint=3 should be a path"):
        estimator().fit(X, checkpoint=3)
    with pytest.raises(ValueError, match=r"random_state=.*integer or None"):
        estimator(random_state=np.random.default_rng(0)).fit(
            X, checkpoint=tmp_path / "run.ckpt"
        )
    with pytest.raises(FileNotFoundError):
        estimator().fit(X, checkpoint=tmp_path / "no folder" / "run.ckpt")
