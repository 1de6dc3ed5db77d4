"""Ctrl-C with a checkpoint: the pass is finished and saved first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sketchmeans.cli.screen import Screen


@contextmanager
def finishing_pass(path: str | None, screen: Screen) -> Iterator[Any]:
    """Yield the checkpoint of a fit, which is saved when Ctrl-C is pressed.

    The first Ctrl-C lets the pass that runs come to its end, so that no work is lost;
    a second one stops at once.  Without a checkpoint the first one does.
    """
    if path is None:
        yield None
        return
    from sketchmeans.checkpoint import Checkpoint

    checkpoint = Checkpoint(path)
    screen.checkpoint = path

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        checkpoint.stop()
        screen.say_error(
            "Stopping when this pass is done and saved; press Ctrl-C again to stop now."
        )

    if threading.current_thread() is not threading.main_thread():
        yield checkpoint
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield checkpoint
    finally:
        signal.signal(signal.SIGINT, before)
    if checkpoint.is_stopping:  # nothing was left to save
        raise KeyboardInterrupt
