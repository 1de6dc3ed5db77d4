"""Progress of a fit: scikit-learn's callbacks, and lines for ``verbose``."""

import io
import re
from contextlib import redirect_stdout
from itertools import pairwise

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import KernelKMeans, NystromKMeans

ESTIMATORS = [KernelKMeans, NystromKMeans]
both = pytest.mark.parametrize("estimator", ESTIMATORS)

SMALL = np.random.default_rng(0).normal(size=(300, 4))
# Three subsamples, of 2,048 to 8,192 rows, come before the full passes.
LARGE = np.random.default_rng(0).normal(size=(33_000, 4)).astype(np.float32)


class Recorder:
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

    def passes(self, stage):
        """Return how many passes a stage had."""
        return self.events.count(("end", "fit", stage, "pass"))


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


# --- stages and passes ----------------------------------------------------------


@both
def test_tasks_nest_and_end_in_order(estimator):
    recorder = Recorder()
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
    recorder = Recorder()
    model = _fit(KernelKMeans(3, n_init=4, random_state=0), SMALL, recorder)
    first, second, third = recorder.tasks(1)
    assert (first, second) == ("kernel matrix", "seeding")
    assert "300 rows" in third
    # Restarts go on side by side: there are as many passes as the longest takes.
    assert recorder.passes(third) >= model.n_iter_


def test_stages_without_subsamples():
    recorder = Recorder()
    model = _fit(NystromKMeans(3, n_init=1, random_state=0), SMALL, recorder)
    *steps, last = recorder.tasks(1)
    assert steps == ["kernel", "landmarks", "seeding"]
    assert "300 rows" in last
    assert recorder.passes(last) == model.n_iter_


def test_stages_with_subsamples():
    recorder = Recorder()
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
    assert all(recorder.passes(name) >= 1 for name in stages[3:])
    assert recorder.passes(stages[-1]) == model.n_iter_
    assert set(recorder.tasks(2)) == {"pass"}


@pytest.mark.parametrize("algorithm", ["progressive", "full"])
@pytest.mark.parametrize("given", [False, True], ids=["seeded", "given"])
def test_only_a_seeded_progressive_fit_has_subsamples(algorithm, given):
    recorder = Recorder()
    params = {"init": np.arange(3)} if given else {"n_init": 1}
    model = NystromKMeans(
        3, n_landmarks=30, algorithm=algorithm, tol=1e-2, random_state=0, **params
    )
    _fit(model, LARGE, recorder)
    detour = [name for name in recorder.tasks(1) if "2,048 rows" in name]
    assert bool(detour) == (algorithm == "progressive" and not given)
    last = recorder.tasks(1)[-1]
    assert "33,000 rows" in last
    assert recorder.passes(last) == model.n_iter_


@both
def test_a_stage_announces_how_many_passes_there_may_be(estimator):
    found = []

    class Sizes(Recorder):
        def on_fit_task_begin(self, estimator, context):
            found.append((context.task_name, context.max_subtasks))

    _fit(estimator(3, max_iter=123, n_init=2, random_state=0), SMALL, Sizes())
    sizes = dict(found)
    assert sizes["seeding"] == 0  # a leaf
    assert sizes["pass"] == 0
    assert [size for name, size in found if "rows" in name] == [123]


@both
def test_restarts_are_told(estimator):
    one, four = Recorder(), Recorder()
    _fit(estimator(3, n_init=1, random_state=0), SMALL, one)
    _fit(estimator(3, n_init=4, random_state=0), SMALL, four)
    assert "4 restarts" in _stage(four, "300 rows")
    assert "restarts" not in _stage(one, "300 rows")


def test_the_race_of_the_restarts_is_told():
    recorder = Recorder()
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
def test_callbacks_do_not_change_the_result(estimator):
    plain = estimator(3, random_state=0).fit(SMALL)
    watched = _fit(estimator(3, random_state=0), SMALL, Recorder())
    np.testing.assert_array_equal(watched.labels_, plain.labels_)
    assert watched.cost_ == plain.cost_


@both
def test_callbacks_can_be_taken_off(estimator):
    recorder = Recorder()
    model = estimator(3, random_state=0).set_callbacks(recorder).set_callbacks()
    model.fit(SMALL)
    assert recorder.events == []


@both
def test_every_fit_starts_afresh(estimator):
    recorder = Recorder()
    model = _fit(estimator(3, random_state=0), SMALL, recorder)
    first = list(recorder.events)
    model.fit(SMALL)
    assert recorder.events == first + first


@both
def test_a_failed_fit_tears_the_callbacks_down(estimator):
    recorder = Recorder()
    bad = SMALL.copy()
    bad[-1, -1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        _fit(estimator(3, random_state=0), bad, recorder)
    assert recorder.events[0] == ("setup", "fit")
    assert recorder.events[-1] == ("teardown", "fit")


@both
def test_prediction_makes_no_progress(estimator):
    recorder = Recorder()
    model = _fit(estimator(3, random_state=0), SMALL, recorder)
    recorder.events.clear()
    model.predict(SMALL)
    model.transform(SMALL)
    model.cost(SMALL)
    assert recorder.events == []


# --- stopping -------------------------------------------------------------------


def _at_pass(number):
    """Return a test for the pass of that number (from 1) in its stage."""
    return lambda context: context.task_name == "pass" and context.task_id >= number - 1


@both
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_callback_stops_the_passes(estimator, number):
    recorder = Recorder(stop=_at_pass(number))
    # Without a callback this goes on for more passes than that.
    model = estimator(8, init=np.arange(8), tol=0.0)
    with pytest.warns(ConvergenceWarning):
        _fit(model, SMALL, recorder)
    assert model.n_iter_ == number
    assert len(model.cost_path_) == number
    assert not model.converged_
    # What is left is a whole model, of the best pass.
    np.testing.assert_array_equal(model.predict(SMALL), model.labels_)
    assert model.cost(SMALL) == pytest.approx(model.cost_)


@both
def test_a_stopped_fit_does_not_blame_max_iter(estimator):
    model = estimator(8, init=np.arange(8), tol=0.0).set_callbacks(
        Recorder(stop=_at_pass(2))
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(SMALL)
    (warning,) = caught
    assert "max_iter=300" not in str(warning.message)


def test_stopping_a_subsample_goes_on_with_the_next_stage():
    def stop(context):
        return context.task_name == "pass" and "2,048" in context.parent.task_name

    recorder = Recorder(stop=stop)
    model = NystromKMeans(3, n_landmarks=30, n_init=1, random_state=0)
    _fit(model, LARGE, recorder)
    assert recorder.passes(_stage(recorder, "2,048 rows")) == 1
    assert recorder.passes(_stage(recorder, "33,000 rows")) == model.n_iter_ > 1
    assert model.converged_


def test_no_callback_stops_without_saying_so():
    quiet, recorder = Recorder(stop=lambda context: None), Recorder()
    first = _fit(NystromKMeans(3, random_state=0), SMALL, quiet)
    second = _fit(NystromKMeans(3, random_state=0), SMALL, recorder)
    assert first.n_iter_ == second.n_iter_
    assert quiet.events == recorder.events


# --- scikit-learn's progress bar ------------------------------------------------


@both
def test_progress_bar(estimator, capsys):
    model = estimator(3, random_state=0).set_callbacks(ProgressBar())
    model.fit(SMALL)
    shown = capsys.readouterr().out
    assert estimator.__name__ in shown
    assert "300 rows" in shown
    assert "100%" in shown
    np.testing.assert_array_equal(
        model.labels_, estimator(3, random_state=0).fit(SMALL).labels_
    )


def test_progress_bar_shows_every_stage(capsys):
    model = NystromKMeans(3, n_landmarks=30, random_state=0)
    model.set_callbacks(ProgressBar()).fit(LARGE)
    shown = capsys.readouterr().out
    for stage in ("2,048 rows", "4,096 rows", "8,192 rows", "33,000 rows"):
        assert stage in shown


@both
def test_progress_bar_of_a_meta_estimator(estimator, capsys):
    pipeline = make_pipeline(StandardScaler(), estimator(3, random_state=0))
    pipeline.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(SMALL)
    shown = capsys.readouterr().out
    assert estimator.__name__ in shown
    search = GridSearchCV(estimator(random_state=0), {"n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(SMALL)
    assert estimator.__name__ in capsys.readouterr().out


# --- verbose --------------------------------------------------------------------


def _lines(model, rows):
    with redirect_stdout(io.StringIO()) as out:
        model.fit(rows)
    return out.getvalue().splitlines()


@both
def test_silence_is_the_default(estimator):
    assert _lines(estimator(3, random_state=0), SMALL) == []
    assert _lines(estimator(3, verbose=False, random_state=0), SMALL) == []


@both
@pytest.mark.parametrize("verbose", [1, True])
def test_a_line_for_each_stage(estimator, verbose):
    recorder = Recorder()
    model = estimator(3, verbose=verbose, random_state=0).set_callbacks(recorder)
    lines = _lines(model, SMALL)
    stages = recorder.tasks(1)
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        assert line.startswith(f"[{estimator.__name__}] {stage}")
    assert f"cost {model.cost_:.6g}" in lines[-1]


@both
def test_a_line_for_each_pass(estimator):
    recorder = Recorder()
    model = estimator(3, verbose=2, n_init=1, random_state=0).set_callbacks(recorder)
    lines = [line for line in _lines(model, SMALL) if "pass" in line]
    assert len(lines) == model.n_iter_ == recorder.tasks(2).count("pass")
    for number, (line, cost) in enumerate(
        zip(lines, model.cost_path_, strict=True), start=1
    ):
        assert f"pass {number}, cost {cost:.6g}" in line


def test_lines_of_the_subsamples():
    model = NystromKMeans(3, n_landmarks=30, verbose=1, random_state=0)
    text = "\n".join(_lines(model, LARGE))
    places = [text.index(f"{n} rows") for n in ("2,048", "4,096", "8,192", "33,000")]
    assert places == sorted(places)
