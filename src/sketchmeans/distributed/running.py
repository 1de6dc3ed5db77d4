"""Tasks, and the scheduler that runs them.

Graphs are plain dictionaries, as Dask specifies them: a fit has many short passes, and
collections would cost more than the tasks that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

import dask
from dask import local, threaded
from dask.base import get_scheduler
from dask.optimization import cull

from sketchmeans.numerics.memory import DEFAULT_SHARE

#: Results that one task adds up.
_FAN_IN = 8

_session, _numbers = uuid4().hex, count()


@dataclass(frozen=True, eq=False)
class Node:
    """A task, or what is left of it when it has run.

    Attributes
    ----------
    key : hashable
    entry : object
        What a graph has for the key: a call, a value, or a future of it.
    needs : sequence of Node
        The tasks whose results the call takes.
    graph : mapping or None
        The graph that has the key, for parts of a collection.
    through : tuple
        A function, and arguments after the first: what tasks get is not the result but
        what the function makes of it, within the task.
    """

    key: Any
    entry: Any = None
    needs: Sequence[Node] = ()
    graph: Mapping[Any, Any] | None = field(default=None, repr=False)
    through: tuple[Any, ...] = ()


def task(function: Callable[..., Any], *arguments: Any) -> Node:
    """Return the call of a function, to be run by a worker.

    Arguments are nodes, lists of nodes and plain numbers; all else is a `literal`.
    """
    needs: list[Node] = []

    def refer(argument: Any) -> Any:
        if isinstance(argument, list):
            return [refer(item) for item in argument]
        if isinstance(argument, Node):
            needs.append(argument)
            if argument.through:
                made_by, *rest = argument.through
                return (made_by, argument.key, *rest)
            return argument.key
        return argument

    entry = (function, *map(refer, arguments))
    return Node(_key(function.__name__), entry, needs)


def literal(value: Any) -> Node:
    """Return a value that goes to each worker once, and can always be had again."""
    return Node(_key("literal"), value)


def _key(name: str) -> tuple[str, int]:
    return f"sketchmeans-{name.strip('_').replace('_', '-')}-{_session}", next(_numbers)


def kept(nodes: Sequence[Node]) -> list[Node]:
    """Start tasks whose results stay where they are."""
    run, client = _scheduler()
    keys = [node.key for node in nodes]
    graph = flat_graph(nodes)
    with _quiet(client):
        found = (
            run(graph, keys) if client is None else client.get(graph, keys, sync=False)
        )
    return [Node(key, entry) for key, entry in zip(keys, found, strict=True)]


def results(nodes: Sequence[Node]) -> list[Any]:
    """Return the results of tasks."""
    if not nodes:
        return []
    run, client = _scheduler()
    with _quiet(client):
        return list(run(flat_graph(nodes), [node.key for node in nodes]))


def merged(
    parts: Sequence[Node], merge: Callable[[list[Any]], Any], beside: Sequence[Node]
) -> tuple[Any, list[Node]]:
    """Return the parts added up along a tree, and other tasks' results as `kept`."""
    while len(parts) > 1:
        parts = [
            task(merge, list(parts[start : start + _FAN_IN]))
            for start in range(0, len(parts), _FAN_IN)
        ]
    *others, root = kept([*beside, *parts])
    return results([root])[0], others


def flat_graph(nodes: Sequence[Node]) -> dict[Any, Any]:
    """Return the graph of some tasks and of all that they need."""
    graph: dict[Any, Any] = {}
    collections: dict[int, Mapping[Any, Any]] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.graph is not None:
            collections[id(node.graph)] = node.graph
        elif node.key not in graph:
            graph[node.key] = node.entry
            waiting.extend(node.needs)
    for collection in collections.values():
        graph.update(collection)
    if collections:
        graph, _ = cull(graph, [node.key for node in nodes])
    return graph


def room(budget: int) -> tuple[int, bool]:
    """Return the bytes of results that may be kept, and whether elsewhere.

    On a cluster a share of what the workers' limits leave, in the process itself the
    budget of the fit; none where each task is sent to a process and back.
    """
    run, client = _scheduler()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [(w["memory_limit"], w["metrics"]["memory"]) for w in workers]
        # A limit of zero is none: nothing is known.
        free = sum(max(limit - used, 0) for limit, used in limits if limit)
        return int(DEFAULT_SHARE * free), True
    return (budget if run in (threaded.get, local.get_sync) else 0), False


def _scheduler() -> tuple[Callable[..., Any], Any]:
    """Return the function that runs graphs, and the client of a cluster, if any."""
    run = get_scheduler() or threaded.get
    client = getattr(run, "__self__", None)
    return run, client if hasattr(client, "scheduler_info") else None


def _quiet(client: Any) -> AbstractContextManager[Any]:
    """Return a context in which landmarks of some megabytes are no large graph.

    Only for a cluster: if distributed were imported in here, as Dask does when it looks
    for a scheduler, its settings would be lost at the end.
    """
    if client is None:
        return nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"})
