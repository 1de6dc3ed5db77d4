"""How a command ends: exit codes, one line for a mistake, Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from sketchmeans.cli.app import app
from sketchmeans.cli.interrupt import stoppable
from sketchmeans.cli.screen import Screen, current
from sketchmeans.cli.wording import in_options, names_a_parameter

#: Typer raises this and its subclasses for wrong arguments.
_UsageError: Any = typer.BadParameter.__mro__[1]

BAD_DATA, BAD_USAGE, STOPPED = 1, 2, 130
#: What a shell adds to the number of the signal that ended a command.
_SIGNAL = 128


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    current.set(Screen())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it may know no letters but ASCII
            stream.reconfigure(errors="replace")
    with stoppable() as received:
        try:
            code = app(args=arguments, prog_name="sketchmeans", standalone_mode=False)
            sys.stdout.flush()
            # Typer makes an exit code of Ctrl-C.
            return _stopped(received) if code == STOPPED else int(code or 0)
        except (KeyboardInterrupt, typer.Abort):
            return _stopped(received)
        except BrokenPipeError:  # whoever reads has enough
            discard(sys.stdout)
            return BAD_DATA
        except _UsageError as error:
            return _usage(error)
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            return _mistake(error)
        except Exception as error:
            return _defect(error)


def discard(stream: Any) -> None:
    """Let what is left in a stream that nobody reads go nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (AttributeError, OSError, ValueError):  # it is no file
        return


def _usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "sketchmeans"
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.removeprefix("Invalid value: ")  # ours name the option
    current.get().error(f"{message}. Try '{command} --help'.")
    return BAD_USAGE


def _mistake(error: Exception) -> int:
    """Say what was wrong with the data or with a parameter."""
    screen = current.get()
    if screen.debug:
        raise error
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}."
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        text = f"standard output: {error.strerror}."  # files are named
    screen.error(in_options(text))
    is_usage = isinstance(error, ValueError) and names_a_parameter(text)
    return BAD_USAGE if is_usage else BAD_DATA


def _defect(error: Exception) -> int:
    """Say that something went wrong that should not have been possible."""
    screen = current.get()
    if screen.debug:
        raise error
    screen.error(
        f"{type(error).__name__}: {error}. This is a defect of sketchmeans; --debug "
        "shows where it happened."
    )
    return BAD_DATA


def _stopped(received: Sequence[int]) -> int:
    screen = current.get()
    checkpoint = screen.checkpoint
    if checkpoint is not None and checkpoint.failure is not None:
        screen.say_error(
            f"Stopped. {checkpoint.path} could not be written: {checkpoint.failure}."
        )
    elif checkpoint is not None and os.path.exists(checkpoint.path):
        screen.say_error(
            f"Stopped. {checkpoint.path} holds what is done: the same command goes on "
            "from there."
        )
    elif screen.written:
        screen.say_error(
            f"Stopped. Wrote {', '.join(screen.written)} and nothing else."
        )
    else:
        screen.say_error("Stopped. Nothing was written.")
    return _SIGNAL + received[0] if received else STOPPED
