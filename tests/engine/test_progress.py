"""Progress of a fit: scikit-learn's callbacks, and log messages for ``verbose``."""

import io
import logging
import re
from contextlib import redirect_stdout
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.engine import progress
from sketchmeans.engine.progress import expected_iterations

ESTIMATORS = [KernelKMeans, NystromKMeans]
both = pytest.mark.parametrize("estimator", ESTIMATORS)

SMALL = np.random.default_rng(0).normal(size=(300, 4))
# Three subsamples, of 2,048 to 8,192 rows, come before the iterations over all rows.
LARGE = np.random.default_rng(0).normal(size=(33_000, 4)).astype(np.float32)


class SavedStages:
    """Writes down every call of scikit-learn's callback protocol."""

    def __init__(self, stop=lambda context: False):
        self.events = []
        self.stop = stop

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", *_path(context)))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", *_path(context)))
        return self.stop(context)

    def tasks(self, depth):
        """Return the names of tasks at that depth, in order of their beginning."""
        return [e[-1] for e in self.events if e[0] == "begin" and len(e) == depth + 2]

    def iterations(self, stage):
        """Return how many iterations a stage had."""
        return self.events.count(("end", "fit", stage, "iteration"))


def _path(context):
    names = []
    while context is not None:
        names.append(context.task_name)
        context = context.parent
    return tuple(reversed(names))


def _fit(model, rows, recorder):
    return model.set_callbacks(recorder).fit(rows)


def _stage(recorder, text):
    """Return the name of the one stage that tells of so many rows."""
    (name,) = [name for name in recorder.tasks(1) if text in name]
    return name


# --- stages and iterations ----------------------------------------------------------


@both
def test_tasks_nest_and_end_in_order(estimator):
    recorder = SavedStages()
    _fit(estimator(3, random_state=0), SMALL, recorder)
    events = recorder.events
    assert events[0] == ("setup", "fit")
    assert events[1] == ("begin", "fit")
    assert events[-2:] == [("end", "fit"), ("teardown", "fit")]
    open_tasks = []
    for kind, *path in events[1:-1]:
        if kind == "begin":
            assert path[:-1] == (open_tasks[-1] if open_tasks else [])
            open_tasks.append(path)
        else:
            assert open_tasks.pop() == path
    assert not open_tasks


def test_stages_of_the_exact_fit():
    recorder = SavedStages()
    model = _fit(KernelKMeans(3, n_init=4, random_state=0), SMALL, recorder)
    first, second, third = recorder.tasks(1)
    assert (first, second) == ("kernel matrix", "seeding")
    assert "300 rows" in third
    # Restarts run side by side: there are as many iterations as the longest takes.
    assert recorder.iterations(third) >= model.n_iter_


def test_stages_without_subsamples():
    recorder = SavedStages()
    model = _fit(NystromKMeans(3, n_init=1, random_state=0), SMALL, recorder)
    *steps, last = recorder.tasks(1)
    assert steps == ["kernel", "landmarks", "seeding"]
    assert "300 rows" in last
    assert recorder.iterations(last) == model.n_iter_


def test_stages_with_subsamples():
    recorder = SavedStages()
    model = _fit(NystromKMeans(3, n_landmarks=30, random_state=0), LARGE, recorder)
    stages = recorder.tasks(1)
    assert stages[:3] == ["kernel", "landmarks", "seeding"]
    sizes = re.findall(r"[\d,]+ rows", " / ".join(stages))
    assert list(dict.fromkeys(sizes)) == [
        "2,048 rows",
        "4,096 rows",
        "8,192 rows",
        "33,000 rows",
    ]
    assert all(recorder.iterations(name) >= 1 for name in stages[3:])
    assert recorder.iterations(stages[-1]) == model.n_iter_
    assert set(recorder.tasks(2)) == {"iteration"}


@pytest.mark.parametrize("algorithm", ["progressive", "full"])
@pytest.mark.parametrize("given", [False, True], ids=["seeded", "given"])
def test_only_a_seeded_progressive_fit_has_subsamples(algorithm, given):
    recorder = SavedStages()
    params = {"init": np.arange(3)} if given else {"n_init": 1}
    model = NystromKMeans(
        3, n_landmarks=30, algorithm=algorithm, tol=1e-2, random_state=0, **params
    )
    _fit(model, LARGE, recorder)
    detour = [name for name in recorder.tasks(1) if "2,048 rows" in name]
    assert bool(detour) == (algorithm == "progressive" and not given)
    last = recorder.tasks(1)[-1]
    assert "33,000 rows" in last
    assert recorder.iterations(last) == model.n_iter_


@both
def test_a_stage_announces_how_many_passes_there_may_be(estimator):
    found = []

    class Sizes(SavedStages):
        def on_fit_task_begin(self, estimator, context):
            found.append((context.task_name, context.max_subtasks))

    _fit(estimator(3, max_iter=123, n_init=2, random_state=0), SMALL, Sizes())
    sizes = dict(found)
    assert sizes["seeding"] == 0  # a leaf
    assert sizes["iteration"] == 0
    assert [size for name, size in found if "rows" in name] == [123]


@both
def test_restarts_are_told(estimator):
    one, four = SavedStages(), SavedStages()
    _fit(estimator(3, n_init=1, random_state=0), SMALL, one)
    _fit(estimator(3, n_init=4, random_state=0), SMALL, four)
    assert "4 restarts" in _stage(four, "300 rows")
    assert "restarts" not in _stage(one, "300 rows")


def test_the_race_of_the_restarts_is_told():
    recorder = SavedStages()
    model = NystromKMeans(3, n_landmarks=30, n_init=8, random_state=0)
    _fit(model, LARGE, recorder)
    text = " / ".join(recorder.tasks(1))
    told = [int(count) for count in re.findall(r"(\d+) restarts", text)]
    # The worse ones are dropped on the way, and the best goes on alone.
    assert told[0] == 8
    assert told[-1] < told[0]
    assert all(after <= before for before, after in pairwise(told))
    assert "restarts" not in _stage(recorder, "33,000 rows")


@both
def test_callbacks_do_not_change_the_result_and_can_be_removed(estimator):
    plain = estimator(3, random_state=0).fit(SMALL)
    recorder = SavedStages()
    watched = _fit(estimator(3, random_state=0), SMALL, recorder)
    np.testing.assert_array_equal(watched.labels_, plain.labels_)
    assert watched.cost_ == plain.cost_
    first = list(recorder.events)
    watched.fit(SMALL)  # every fit starts afresh
    assert recorder.events == first + first
    recorder.events.clear()
    watched.predict(SMALL)  # which reports no progress
    watched.transform(SMALL)
    watched.cost(SMALL)
    watched.set_callbacks().fit(SMALL)
    assert recorder.events == []


@both
def test_a_failed_fit_tears_the_callbacks_down(estimator):
    recorder = SavedStages()
    bad = SMALL.copy()
    bad[-1, -1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        _fit(estimator(3, random_state=0), bad, recorder)
    assert recorder.events[0] == ("setup", "fit")
    assert recorder.events[-1] == ("teardown", "fit")


# --- stopping -------------------------------------------------------------------


def _at_iteration(number):
    """Return a test for the iteration of that number (from 1) in its stage."""
    return lambda context: (
        context.task_name == "iteration" and context.task_id >= number - 1
    )


@pytest.mark.parametrize(
    ("estimator", "number"), [(KernelKMeans, 1), (KernelKMeans, 3), (NystromKMeans, 2)]
)
def test_a_callback_stops_the_iterations(estimator, number):
    recorder = SavedStages(stop=_at_iteration(number))
    # Without a callback there are more iterations than that.
    model = estimator(8, init=np.arange(8), tol=0.0)
    with pytest.warns(ConvergenceWarning) as caught:
        _fit(model, SMALL, recorder)
    (warning,) = caught
    assert "max_iter=300" not in str(warning.message)
    assert model.n_iter_ == number
    assert len(model.cost_path_) == number
    assert not model.converged_
    # What is left is a whole model, of the best iteration.
    np.testing.assert_array_equal(model.predict(SMALL), model.labels_)
    assert model.cost(SMALL) == pytest.approx(model.cost_)


def test_stopping_a_subsample_goes_on_with_the_next_stage():
    def stop(context):
        return context.task_name == "iteration" and "2,048" in context.parent.task_name

    recorder = SavedStages(stop=stop)
    model = NystromKMeans(3, n_landmarks=30, n_init=1, random_state=0)
    _fit(model, LARGE, recorder)
    assert recorder.iterations(_stage(recorder, "2,048 rows")) == 1
    assert recorder.iterations(_stage(recorder, "33,000 rows")) == model.n_iter_ > 1
    assert model.converged_


def test_no_callback_stops_without_saying_so():
    quiet, recorder = SavedStages(stop=lambda context: None), SavedStages()
    first = _fit(NystromKMeans(3, random_state=0), SMALL, quiet)
    second = _fit(NystromKMeans(3, random_state=0), SMALL, recorder)
    assert first.n_iter_ == second.n_iter_
    assert quiet.events == recorder.events


# --- scikit-learn's progress bar ------------------------------------------------


@both
def test_progress_bar(estimator, capsys):
    ProgressBar = pytest.importorskip("sklearn.callback").ProgressBar  # from 1.9 on
    model = estimator(3, random_state=0).set_callbacks(ProgressBar())
    model.fit(SMALL)
    shown = capsys.readouterr().out
    assert estimator.__name__ in shown
    assert "300 rows" in shown
    assert "100%" in shown
    np.testing.assert_array_equal(
        model.labels_, estimator(3, random_state=0).fit(SMALL).labels_
    )


@both
def test_progress_bar_of_a_meta_estimator(estimator, capsys):
    ProgressBar = pytest.importorskip("sklearn.callback").ProgressBar
    pipeline = make_pipeline(StandardScaler(), estimator(3, random_state=0))
    pipeline.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(SMALL)
    shown = capsys.readouterr().out
    assert estimator.__name__ in shown
    search = GridSearchCV(estimator(random_state=0), {"n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(SMALL)
    assert estimator.__name__ in capsys.readouterr().out


# --- verbose --------------------------------------------------------------------


@pytest.fixture
def unconfigured(monkeypatch):
    """Hide the handlers that pytest configures."""
    monkeypatch.setattr(logging.getLogger("sketchmeans"), "hasHandlers", lambda: False)


def _lines(model, rows):
    with redirect_stdout(io.StringIO()) as out:
        model.fit(rows)
    return out.getvalue().splitlines()


@both
def test_one_line_per_stage_if_verbose(estimator, unconfigured):
    assert _lines(estimator(3, random_state=0), SMALL) == []
    assert _lines(estimator(3, verbose=False, random_state=0), SMALL) == []
    recorder = SavedStages()
    model = estimator(3, verbose=True, random_state=0).set_callbacks(recorder)
    lines = _lines(model, SMALL)
    stages = recorder.tasks(1)
    for line, stage in zip(lines, stages, strict=True):
        assert line.startswith(f"[{estimator.__name__}] {stage}")
    assert f"cost {model.cost_:.6g}" in lines[-1]
    # One line per iteration, too.
    lines = _lines(model.set_params(verbose=2, n_init=1), SMALL)
    lines = [line for line in lines if "iteration" in line]
    for number, (line, cost) in enumerate(
        zip(lines, model.cost_path_, strict=True), start=1
    ):
        assert f"iteration {number}, cost {cost:.6g}" in line


def test_handlers_of_the_user_get_the_messages(caplog):
    model = NystromKMeans(3, random_state=0)
    assert _lines(model.set_params(verbose=1), SMALL) == []
    assert {record.name for record in caplog.records} == {"sketchmeans"}
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert "[NystromKMeans] landmarks" in caplog.messages
    assert "iteration" in caplog.messages[-1]
    caplog.clear()
    model.set_params(verbose=0).fit(SMALL)
    assert caplog.records == []
    with caplog.at_level("DEBUG", "sketchmeans"):
        model.fit(SMALL)
    assert {record.levelname for record in caplog.records} == {"INFO", "DEBUG"}


def test_expected_iterations():
    costs = [1.0 + 0.5**i for i in range(30)]
    drops = -np.diff(costs) / costs[:-1]
    needed = int(np.argmax(drops <= 1e-4)) + 2
    for seen in (6, 9, 12):
        assert abs(expected_iterations(costs[:seen], 1e-4, 300) - needed) <= 3
    assert expected_iterations(costs[:3], 1e-4, 300) is None
    assert expected_iterations(costs[:6], 1e-4, 8) == 8
    assert expected_iterations(costs[:6], 0.0, 50) == 50
    assert expected_iterations(costs[:6], 0.9, 50) == 7
    assert expected_iterations([0.0] * 5, 1e-4, 50) == 6


class _Rows(SavedStages):
    """Writes down how many rows long iterations have looked at."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        if context.task_name == "block":
            assert context.parent.task_name == "iteration"
            self.rows.append((context.parent.parent.task_name, metadata))
        return super().on_fit_task_end(estimator, context)


def test_long_iterations_report_their_rows(monkeypatch):
    monkeypatch.setattr(progress, "_LONG", len(LARGE))
    found = _Rows()
    model = NystromKMeans(3, n_landmarks=50, random_state=0).set_callbacks(found)
    model.fit(LARGE)
    stage = "all 33,000 rows"
    assert {name for name, _ in found.rows} == {stage}
    assert all(metadata["n_rows"] == 33_000 for _, metadata in found.rows)
    first = [metadata["rows"] for _, metadata in found.rows][: progress._PARTS]
    first = first[: 1 + first.index(33_000)]
    assert len(first) > 3
    assert all(a < b for a, b in pairwise(first))
    assert found.iterations(stage) == model.n_iter_
    begun = found.events.count(("begin", "fit", stage, "iteration"))
    assert begun == model.n_iter_


def test_short_iterations_do_not_report_their_rows():
    found = _Rows()
    NystromKMeans(3, random_state=0).set_callbacks(found).fit(LARGE)
    assert not found.rows


def test_a_resumed_fit_reports_rows_of_its_stages_only(monkeypatch, tmp_path):
    """What comes after a stage that was saved makes a pass of its own."""
    monkeypatch.setattr(progress, "_LONG", len(LARGE))
    model = NystromKMeans(3, random_state=0)
    labels = model.fit(LARGE, checkpoint=tmp_path / "fit.ckpt").labels_
    found = _Rows()
    again = NystromKMeans(3, random_state=0).set_callbacks(found)
    again.fit(LARGE, checkpoint=tmp_path / "fit.ckpt")
    np.testing.assert_array_equal(again.labels_, labels)
    assert not found.rows
