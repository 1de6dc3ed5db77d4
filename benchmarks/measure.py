"""Seconds, CPU seconds and peak anonymous memory of one call."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

Value = TypeVar("Value")

#: Seconds between two looks at the memory: short for a fit, long for the processor.
_INTERVAL = 0.01
#: Seconds of rest before a call: threads of BLAS and OpenMP spin for a while after
#: their work, and the next call should not pay for that.
_REST = 0.25


@dataclass(frozen=True)
class Run(Generic[Value]):
    """What one call returned, and what it took."""

    value: Value
    seconds: float
    peak_bytes: float
    cpu_seconds: float


def measure(function: Callable[[], Value]) -> Run[Value]:
    """Call a function; return its value, what time it took and its peak memory."""
    gc.collect()
    _give_back()
    time.sleep(_REST)
    with PeakMemory() as memory:
        start, cpu_start = time.perf_counter(), time.process_time()
        value = function()
        seconds = time.perf_counter() - start
        cpu_seconds = time.process_time() - cpu_start
    return Run(value, seconds, memory.peak_bytes, cpu_seconds)


def _give_back() -> None:
    """Return freed memory to the system, or the next call would use it unseen."""
    # Only the GNU C library has this; others give back by themselves.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class PeakMemory:
    """The most anonymous memory that a context used above what it found.

    A thread samples RssAnon: arrays, but neither mapped files nor libraries.  It is
    not a number where the system does not tell.
    """

    def __enter__(self) -> Self:
        self._baseline = self._highest = anonymous_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL):
            self._highest = max(self._highest, anonymous_bytes())

    @property
    def peak_bytes(self) -> float:
        return self._highest - self._baseline


def anonymous_bytes() -> float:
    """Return the anonymous memory of this process, RssAnon."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024.0
    except OSError:
        pass
    return float("nan")
