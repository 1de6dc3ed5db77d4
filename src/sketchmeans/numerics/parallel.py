"""Threads over row blocks, with one BLAS thread each and reused buffers.

A block's result never depends on how many threads there are: block boundaries are
fixed, BLAS runs on one thread, and results are handed back in block order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property
from numbers import Integral
from types import TracebackType
from typing import Any, Self, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
from joblib.parallel import get_active_backend
from threadpoolctl import OpenBLASController, ThreadpoolController

from sketchmeans.numerics.linalg import Array

Item = TypeVar("Item")
Result = TypeVar("Result")


#: Products of numbers that are worth a task of another thread: some two milliseconds.
_TASK_WORK = 2e7


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise if `n_jobs` is not a number of threads."""
    if n_jobs is not None and (
        not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0
    ):
        raise ValueError(f"n_jobs={n_jobs!r} should be a nonzero integer or None.")


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    None means every core this process may use, but one inside a joblib worker,
    where the cores are already taken.  Negative values count from the end, as in
    joblib: -1 is all cores.
    """
    check_n_jobs(n_jobs)
    cores = int(joblib.cpu_count())
    if n_jobs is None:
        backend, _ = get_active_backend()
        return 1 if (backend.nesting_level or 0) > 0 else cores
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


#: The BLAS of NumPy and SciPy, which are loaded by now: a scan of all libraries that a
#: process has loaded by its first fit takes as long as a fit of a small table.
_BLAS = ThreadpoolController().select(user_api="blas").lib_controllers


class _OneBlasThread:
    """One BLAS thread while any `Workers` are open, in whatever thread.

    The last to leave restores the limits that the first one found; nested limits would
    restore one another's when two fits overlap.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._found: list[tuple[Any, int]] = []

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._found = [(library, library.num_threads) for library in _BLAS]
                _limit_blas([(library, 1) for library, _ in self._found])
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _limit_blas(self._found)


def _limit_blas(limits: list[tuple[Any, int]]) -> None:
    """Set the number of threads of BLAS libraries, for the whole process.

    threadpoolctl silently ignores all threads but the one that set them first; but the
    last fit to end may run in another thread than the first to begin.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    for library, n_threads in limits:
        if release is not None:  # threadpoolctl 3.8 and later
            release(force=True)
        library.set_num_threads(n_threads)
    if release is not None:
        release(force=True)


_one_blas_thread = _OneBlasThread()


class Workers:
    """A pool of `effective_n_jobs` threads for one call of an estimator; a context.

    Inside the context BLAS runs on one thread, so that the same input gives the same
    bits whatever `n_jobs` is.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     list(workers.map(lambda i: i * i, range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        check_n_jobs(n_jobs)
        self._given = n_jobs
        self._buffers = threading.local()
        self._is_open = False
        self._pool: ThreadPoolExecutor | None = None

    @cached_property
    def n_jobs(self) -> int:
        """Number of threads; to count the cores takes longer than to predict a row."""
        return effective_n_jobs(self._given)

    def __enter__(self) -> Self:
        _one_blas_thread.enter()
        # Overflow is detected where it matters, and reported with a clear error.
        self._quiet = np.errstate(over="ignore", invalid="ignore")
        self._quiet.__enter__()
        self._is_open = True
        return self

    def __reduce__(self) -> Any:
        """Travel to another process as the buffers of that process."""
        return process_buffers, ()

    def limit(self, n_jobs: int) -> None:
        """Go on with fewer threads."""
        if n_jobs < self.n_jobs:
            self.n_jobs = n_jobs
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
            self._buffers = threading.local()

    def _threads(self) -> ThreadPoolExecutor | None:
        """Return the pool, which is started when there is work for it; None for one.

        None within a task, too: one that waits for tasks of its own pool may wait for
        ever.
        """
        if getattr(_task, "is_running", False):
            return None
        if self._pool is None and self._is_open and self.n_jobs > 1:
            self._pool = ThreadPoolExecutor(self.n_jobs, "sketchmeans")
        return self._pool

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._quiet.__exit__(kind, error, trace)
        _one_blas_thread.leave()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        work: float = np.inf,
    ) -> Iterator[Result]:
        """Yield ``function(item)`` in the order of `items`, a few ahead of time.

        Items of little `work`, counted in multiplications, are grouped, or done in this
        thread: a task of less than a millisecond costs more than it saves.
        """
        few = list(items)
        if len(few) <= 1 or self._threads() is None:
            yield from map(function, few)
        elif work >= _TASK_WORK:
            yield from self._ahead(function, few)
        else:
            n_tasks = int(len(few) * work // _TASK_WORK)
            if n_tasks < 2:
                yield from map(function, few)
                return
            size = -(-len(few) // max(n_tasks, self.n_jobs))
            parts = [few[i : i + size] for i in range(0, len(few), size)]
            for part in self._ahead(lambda part: [*map(function, part)], parts):
                yield from part

    def _ahead(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        pool = self._threads()
        assert pool is not None
        ahead: deque[Future[Result]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(_quietly, function, item))
                if len(ahead) > 4 * self.n_jobs:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()

    def fill(
        self, out: Array, write: Callable[[slice, Array], object], height: int
    ) -> Array:
        """Call ``write(rows, out[rows])`` for blocks of rows, and return `out`.

        Examples
        --------
        >>> with Workers(2) as workers:
        ...     workers.fill(np.empty(3), lambda rows, part: part.fill(rows.start), 2)
        array([0., 0., 2.])
        """
        blocks = [
            slice(i, min(i + height, len(out))) for i in range(0, len(out), height)
        ]
        for _ in self.map(lambda rows: write(rows, out[rows]), blocks):
            pass
        return out

    def start_in_background(self, function: Callable[[], object]) -> None:
        """Start a function in all threads but one."""
        pool = self._threads()
        if pool is not None:
            for _ in range(self.n_jobs - 1):
                pool.submit(_quietly, lambda _: function(), None)

    def buffer(self, name: str, shape: tuple[int, int], dtype: npt.DTypeLike) -> Array:
        """Return this thread's scratch array of that name, uninitialised.

        Fresh pages cost more than the arithmetic done on them, so a thread keeps
        its arrays and hands out their leading rows.
        """
        kept: Array | None = getattr(self._buffers, name, None)
        if kept is None or kept.shape[0] < shape[0] or kept.shape[1:] != shape[1:]:
            kept = np.empty(shape, dtype=dtype)
        elif kept.dtype != np.dtype(dtype):
            kept = np.empty(kept.shape, dtype=dtype)
        setattr(self._buffers, name, kept)
        return kept[: shape[0]]


@cache
def process_buffers() -> Workers:
    """Return what lends scratch arrays to tasks of other processes."""
    return Workers(1)


#: Whether this thread is at work on a task of some pool.
_task = threading.local()


def _quietly(function: Callable[[Item], Result], item: Item) -> Result:
    _task.is_running = True
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(item)
    finally:
        _task.is_running = False
