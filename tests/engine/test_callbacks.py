"""The stand-in for scikit-learn's callbacks does what these do."""

import pytest

from sketchmeans.engine import callbacks
from sketchmeans.engine.progress import Progress

STAND_IN = (callbacks._CallbackSupport, callbacks._tear_down_after)


class Saved:
    """Writes down every call, and asks to stop at the second iteration."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.events.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", *_path(context)))

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.events.append(("end", *_path(context), metadata))
        return metadata == {"cost": 2.0}


class Own(Saved):
    """The same, but does not follow estimators within estimators."""

    max_propagation_depth = 0


def _path(context):
    names = []
    while context is not None:
        source = context.source_estimator_name is not None
        task = (context.task_name, context.task_id, context.max_subtasks)
        names.append((*task, source))
        context = context.parent
    return tuple(reversed(names))


def _fit(support, with_callbacks, saved):
    """Fit an estimator within another, with some implementation of callbacks."""

    class Inner(support):
        @with_callbacks
        def fit(self):
            progress = Progress(self)
            with progress.step("landmarks"):
                pass
            with progress.stage("all rows", 3) as on_pass:
                self.stops = [on_pass(i, float(i)) for i in (1, 2)]
            progress.finish()
            return self

    class Outer(support):
        @with_callbacks
        def fit(self):
            progress = Progress(self)
            inner = Inner()
            with progress.blocks("reading rows", 2) as on_block:
                on_block()
            with progress.within("clustering", inner):
                self.inner = inner.fit()
            progress.finish()
            if self.fails:
                raise ValueError("after the fit")
            return self

    outer = Outer().set_callbacks(saved)
    outer.fails = False
    outer.fit()
    outer.fails = True
    with pytest.raises(ValueError, match="after the fit"):
        outer.fit()
    return outer.inner.stops


@pytest.mark.parametrize("kind", [Saved, Own])
def test_the_stand_in_reports_as_scikit_learn_does(kind):
    sklearn_callback = pytest.importorskip("sklearn.callback")
    theirs = (sklearn_callback.CallbackSupportMixin, sklearn_callback.with_callbacks)
    expected, found = kind(), kind()
    assert _fit(*STAND_IN, found) == _fit(*theirs, expected)
    assert found.events == expected.events


def test_the_stand_in_lets_a_callback_stop_and_always_tears_down():
    saved = Saved()
    assert _fit(*STAND_IN, saved) == [False, True]
    ends = [event for event in saved.events if event[0] in ("setup", "teardown")]
    assert ends == [("setup", "Outer"), ("teardown", "Outer")] * 2
