"""Ctrl-C, and other signals that ask a command to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from sketchmeans.cli.screen import Screen

#: Signals that end a command as Ctrl-C does: those of `kill`, of a batch system or a
#: container that shuts down, and of a terminal that is closed.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
]

#: The signal that stops the command, if there was one.
_received: ContextVar[list[int]] = ContextVar("received")

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def stoppable() -> Iterator[list[int]]:
    """Have every signal that asks to stop raise KeyboardInterrupt.

    Yields a list to which the number of the signal is added.
    """
    received: list[int] = []
    _received.set(received)

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    with _handled_by(stop):
        yield received


@contextmanager
def finishing_pass(path: str | None, screen: Screen) -> Iterator[Any]:
    """Yield the checkpoint of a fit, which is saved when the fit is asked to stop.

    The first signal lets the pass that runs come to its end, so that no work is lost;
    a second one stops at once.  Without a checkpoint the first one does.
    """
    if path is None:
        yield None
        return
    from sketchmeans.engine.checkpoint import Checkpoint

    checkpoint = Checkpoint(path)
    screen.checkpoint = checkpoint

    def stop(number: int, frame: FrameType | None) -> None:
        if checkpoint.is_stopping:
            raise KeyboardInterrupt
        _received.get([]).append(number)
        checkpoint.stop()
        again = "press Ctrl-C again" if number == signal.SIGINT else "signal again"
        screen.say_error(
            f"Stopping when this pass is done and saved; {again} to stop now."
        )

    with _handled_by(stop):
        yield checkpoint
    if checkpoint.is_stopping:  # nothing was left to save
        raise KeyboardInterrupt


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    """Call a function for signals that ask to stop, unless they are ignored.

    Jobs in the background ignore Ctrl-C, and those of `nohup` that the terminal is
    closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread only
        return
    before = {
        number: signal.signal(number, handler)
        for number in _SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
