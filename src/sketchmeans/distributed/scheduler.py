"""Tasks of a fit, and the scheduler that runs them."""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import dask
from dask import local, threaded
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed

from sketchmeans.numerics.memory import DEFAULT_SHARE

#: Results that one task combines.
_FAN_IN = 8

#: Tasks of a pass for each thread of a worker: more than one, so that fast workers are
#: not held up by slow ones.
_TASKS_PER_THREAD = 2


def literal(value: Any) -> Delayed:
    """Return a value that is sent to each worker once, and never looked into."""
    return delayed(value, pure=False, traverse=False)


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """Return the call of a function, to be run by a worker.

    Arguments are tasks, lists of tasks, plain numbers and None; all else is a
    `literal`.
    """
    return delayed(function, pure=False, traverse=False)(*arguments)


def persist(tasks: Sequence[Delayed]) -> list[Delayed]:
    """Start tasks whose results stay where they are."""
    with _quiet(), _watch_connection(tasks):
        return list(dask.persist(*tasks))


def compute(tasks: Sequence[Delayed]) -> list[Any]:
    """Return the results of tasks."""
    with _quiet(), _watch_connection(tasks):
        return list(dask.compute(*tasks))


@contextmanager
def _watch_connection(tasks: Sequence[Delayed]) -> Iterator[None]:
    """Tell an error of a lost scheduler, which has many faces, as what it is."""
    client = _scheduler()[1]
    try:
        yield
    except (Exception, CancelledError) as error:
        if not _has_lost_scheduler(tasks, client):
            raise
        raise ConnectionError(
            "The connection to the Dask scheduler was lost, and with it the results "
            "on its workers. Connect to a cluster and fit again; a fit with "
            "checkpoint= resumes."
        ) from error


def _has_lost_scheduler(tasks: Sequence[Delayed], client: Any) -> bool:
    """Say whether tasks wait for a client that is no longer connected."""
    if "distributed" not in sys.modules:
        return False
    from distributed import futures_of

    clients = [client, *(future.client for future in futures_of(list(tasks)))]
    return any(one is not None and one.status != "running" for one in clients)


def tree_reduce(
    parts: Sequence[Delayed],
    combine: Callable[[list[Delayed]], Delayed],
    extra: Sequence[Delayed] = (),
) -> tuple[Any, list[Delayed]]:
    """Return the parts combined along a tree, and other tasks as `persist` does."""
    while len(parts) > 1:
        parts = [
            combine(list(parts[start : start + _FAN_IN]))
            for start in range(0, len(parts), _FAN_IN)
        ]
    *others, root = persist([*extra, *parts])
    return compute([root])[0], others


def free_memory(budget: int) -> tuple[int, bool]:
    """Return the bytes of results that may be kept, and whether elsewhere.

    On a cluster a share of what the workers' limits leave, in the process itself the
    budget of the fit; none where each task is sent to a process and back.
    """
    run, client = _scheduler()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [(w["memory_limit"], w["metrics"]["memory"]) for w in workers]
        # A limit of zero means no limit: nothing is known.
        free = sum(max(limit - used, 0) for limit, used in limits if limit)
        return int(DEFAULT_SHARE * free), True
    return (budget if run in (threaded.get, local.get_sync) else 0), False


def group_by_worker(tasks: Sequence[Delayed]) -> list[list[int]]:
    """Return the numbers of tasks whose results are on the same worker, in parts.

    Waits for the results.  Without a cluster each is on its own.
    """
    client = _scheduler()[1]
    if client is None:
        return [[number] for number in range(len(tasks))]
    futures = client.futures_of(list(tasks))
    homes = {future.key: home for home, future in _homes(client, futures)}
    threads: dict[str, int] = client.nthreads()
    by_worker: dict[str, list[int]] = {}
    for number, one in enumerate(tasks):
        by_worker.setdefault(homes.get(one.key, ""), []).append(number)
    groups = []
    for home, numbers in by_worker.items():
        size = -(-len(numbers) // (_TASKS_PER_THREAD * threads.get(home, 1)))
        groups += [numbers[i : i + size] for i in range(0, len(numbers), size)]
    return groups


def _homes(client: Any, futures: list[Any]) -> list[tuple[str, Any]]:
    """Return a worker that has each of some results, after they are computed."""
    for future in futures:
        future.exception()  # wait, without raising: the pass that follows does
    found = client.who_has(futures)
    return [(next(iter(found.get(future.key, ())), ""), future) for future in futures]


def _scheduler() -> tuple[Callable[..., Any], Any]:
    """Return the function that runs graphs, and the client of a cluster, if any."""
    run = get_scheduler() or threaded.get
    client = getattr(run, "__self__", None)
    return run, client if hasattr(client, "scheduler_info") else None


def _quiet() -> AbstractContextManager[Any]:
    """Return a context without Dask's warning of a large graph for a few megabytes.

    Only for a cluster: if distributed were imported in here, as Dask does when it looks
    for a scheduler, its settings would be lost at the end.
    """
    if _scheduler()[1] is None:
        return nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"})
