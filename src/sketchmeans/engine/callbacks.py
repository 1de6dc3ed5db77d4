"""scikit-learn's callbacks, and a stand-in for versions before 1.9, which have none.

The stand-in speaks the part of the protocol that fits here use: progress bars of the
command line and callbacks of users work alike on all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Self

__all__ = ["CallbackSupportMixin", "with_callbacks"]


class _Context:
    """A task of a fit: the whole fit, a stage, or a part of one."""

    def __init__(
        self, callbacks: list[Any], name: str, max_subtasks: int | None, depth: int
    ) -> None:
        self.task_name = name
        self.task_id = 0  # among the tasks of the parent
        self.max_subtasks = max_subtasks
        self.parent: _Context | None = None
        self.source_estimator_name: str | None = None
        self.callbacks = callbacks
        self.depth = depth  # of estimators within estimators
        self._n_subtasks = 0
        self._propagated: list[Any] = []

    def subcontext(self, task_name: str, max_subtasks: int | None = 0) -> _Context:
        child = _Context(self.callbacks, task_name, max_subtasks, self.depth)
        child.parent, child.task_id = self, self._n_subtasks
        self._n_subtasks += 1
        return child

    def call_on_fit_task_begin(self, estimator: Any) -> None:
        self._call("on_fit_task_begin", estimator, {})

    def call_on_fit_task_end(self, estimator: Any, metadata: Any = None) -> bool:
        return self._call("on_fit_task_end", estimator, {"metadata": metadata})

    def _call(self, hook: str, estimator: Any, given: dict[str, Any]) -> bool:
        stop = False
        for callback in self.callbacks:
            if callback in self._propagated:
                continue  # the estimator within reports this task
            method = getattr(callback, hook)
            wanted = signature(method).parameters.values()
            names = [p.name for p in wanted if p.kind is Parameter.KEYWORD_ONLY]
            stop |= bool(method(estimator, self, **{n: given.get(n) for n in names}))
        return stop

    @contextmanager
    def propagate_callback_context(self, estimator: Any) -> Iterator[None]:
        """Let the callbacks that ask for it follow the fit of an estimator within."""
        own = getattr(estimator, "_skl_callbacks", [])
        self._propagated = [c for c in self.callbacks if _reaches(c, self.depth)]
        estimator._parent_callback_ctx = self
        estimator._skl_callbacks = [*own, *self._propagated]
        try:
            yield
        finally:
            estimator._skl_callbacks = own
            del estimator._parent_callback_ctx


def _reaches(callback: Any, depth: int) -> bool:
    """Say whether a callback follows an estimator within one of that depth."""
    deepest = getattr(callback, "max_propagation_depth", 0)
    return deepest is None or depth < deepest


class _CallbackSupport:
    """Callbacks for an estimator, as scikit-learn's mixin has them."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of later fits.

        Parameters
        ----------
        *callbacks : objects
            With the methods `setup`, `teardown`, `on_fit_task_begin` and
            `on_fit_task_end` of scikit-learn's protocol.

        Returns
        -------
        self : estimator
        """
        self._skl_callbacks = list(callbacks)
        return self

    def _init_callback_context(self, max_subtasks: int | None = 0) -> _Context:
        callbacks = getattr(self, "_skl_callbacks", [])
        outer: _Context | None = getattr(self, "_parent_callback_ctx", None)
        context = _Context(
            callbacks, "fit", max_subtasks, outer.depth + 1 if outer else 0
        )
        if outer is not None:  # one task: a part of that fit, and the whole of this one
            context.parent, context.source_estimator_name = outer.parent, "outer"
            context.task_id = outer.task_id
        self._callback_fit_ctx = context
        self._own_callbacks = [
            c for c in callbacks if not (outer and c in outer._propagated)
        ]
        for callback in self._own_callbacks:
            callback.setup(self, context)
        return context


def _tear_down_after(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method after which the callbacks that it has set up are torn down."""

    @wraps(method)
    def managed(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(estimator, *args, **kwargs)
        finally:
            context = estimator.__dict__.pop("_callback_fit_ctx", None)
            for callback in estimator.__dict__.pop("_own_callbacks", ()):
                callback.teardown(estimator, context)

    return managed


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin, with_callbacks = _CallbackSupport, _tear_down_after
