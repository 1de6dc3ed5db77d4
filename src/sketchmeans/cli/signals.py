"""Ctrl-C and other signals that ask a command to stop."""

from __future__ import annotations

import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sketchmeans.cli.screen import Screen, current_screen

#: Signals that stop a command as Ctrl-C does: `kill`, a batch system or container that
#: shuts down, and a terminal that is closed.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
]

Handler = Callable[[int, FrameType | None], None]

#: Seconds until a signal that came during an import is sent again.
_RETRY = 0.02


def stop_at_once(number: int, frame: FrameType | None) -> None:
    """Note the signal, and raise KeyboardInterrupt, after an import that is under way.

    Modules written in C swallow an exception that comes in the middle of their imports,
    or make another one of it.
    """
    screen = current_screen.get()
    screen.signal = screen.signal or number
    if not _is_importing(frame):
        raise KeyboardInterrupt
    again = threading.Timer(_RETRY, interrupt_main, (number,))
    again.daemon = True
    again.start()


def _is_importing(frame: FrameType | None) -> bool:
    """Say whether the command that runs in a frame is importing a module."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        is_ours = str(frame.f_globals.get("__name__")).startswith("sketchmeans.cli.")
        # A handler may be called in the middle of another one.
        is_handler = frame.f_code.co_filename == __file__
        if is_ours and not is_handler and frame.f_code.co_name != "<module>":
            return False  # what is outside may be a script that somebody imports
        frame = frame.f_back
    return False


@contextmanager
def finish_iteration(path: str | None, screen: Screen) -> Iterator[Any]:
    """Yield the checkpoint of a fit, which is saved when a signal asks to stop.

    The first signal lets the current iteration finish, so that no work is lost; a
    second one stops at once.  Without a checkpoint the first one does.
    """
    if path is None:
        yield None
        return
    from sketchmeans import Checkpoint

    checkpoint = screen.checkpoint = Checkpoint(path)

    def stop_when_saved(number: int, frame: FrameType | None) -> None:
        if checkpoint.is_stopping:
            return stop_at_once(number, frame)
        screen.signal = number
        checkpoint.stop()
        again = "press Ctrl-C again" if number == signal.SIGINT else "signal again"
        screen.print_error(
            f"Stopping after this iteration is finished and saved; {again} to stop now."
        )

    with handle_signals(stop_when_saved):
        yield checkpoint
    if checkpoint.is_stopping:  # there was nothing left to save
        raise KeyboardInterrupt


@contextmanager
def handle_signals(handler: Handler) -> Iterator[None]:
    """Call a function for signals that ask to stop, except those that are ignored.

    Background jobs ignore Ctrl-C, and those of `nohup` a closed terminal.
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
