"""The commands together, and how they end: exit codes, one line for an error."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sketchmeans.cli.choose import choose
from sketchmeans.cli.compare import compare
from sketchmeans.cli.demo import demo
from sketchmeans.cli.drift import drift
from sketchmeans.cli.explain import certify, info
from sketchmeans.cli.export import card, export
from sketchmeans.cli.fit import fit
from sketchmeans.cli.plan import plan
from sketchmeans.cli.predict import predict
from sketchmeans.cli.rename import rename
from sketchmeans.cli.report import report
from sketchmeans.cli.row import explain
from sketchmeans.cli.screen import (
    Screen,
    current_screen,
    names_parameter,
    translate_errors,
)
from sketchmeans.cli.signals import handle_signals, stop_at_once
from sketchmeans.cli.signatures import add_options

#: Typer raises this and its subclasses for wrong arguments.
_UsageError: Any = typer.BadParameter.__mro__[1]

_BAD_DATA, _WRONG_USAGE, _STOPPED = 1, 2, 130
#: What a shell adds to the number of the signal that ended a command.
_SIGNAL = 128

app = typer.Typer(
    name="sketchmeans",
    help="Cluster tables of any size: k-means and kernel k-means through sketches.",
    epilog="Exit codes: 0 success, 1 bad data, 2 wrong usage, 130 stopped by Ctrl-C, "
    "143 by SIGTERM.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    *(fit, predict, report, drift, explain, rename, certify),
    *(compare, choose, plan, info, card, export, demo),
)
for _command in _COMMANDS:
    app.command()(add_options(_command))
app.command("compare-months", hidden=True)(add_options(drift))


def _print_version(wanted: bool) -> None:
    if wanted:
        from sketchmeans import __version__

        typer.echo(f"sketchmeans {__version__}")
        raise typer.Exit


@app.callback()
def _print_help(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    Screen()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # its encoding may be ASCII
            stream.reconfigure(errors="replace")
    try:
        with handle_signals(stop_at_once):
            code = app(args=arguments, prog_name="sketchmeans", standalone_mode=False)
            sys.stdout.flush()
        # Typer makes an exit code of Ctrl-C.
        return _report_stop() if code == _STOPPED else int(code or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _report_stop()
    except BrokenPipeError:  # the reader has enough
        discard(sys.stdout)
        return _BAD_DATA
    except _UsageError as error:
        return _report_usage(error)
    except Exception as error:
        if current_screen.get().debug:
            raise
        return _report_error(error)


def discard(stream: Any) -> None:
    """Discard what is left in a stream that nobody reads."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (AttributeError, OSError, ValueError):  # it is not a file
        return


def _report_usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "sketchmeans"
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.removeprefix("Invalid value: ")  # ours name the option
    _print_error(f"{message}. Try '{command} --help'.")
    return _WRONG_USAGE


def _report_error(error: Exception) -> int:
    """Print what was wrong with the data or an option, or that it is a bug."""
    text = str(error) or type(error).__name__
    expected = (ValueError, TypeError, OSError, MemoryError, ImportError)
    if not isinstance(error, expected):
        _print_error(
            f"{type(error).__name__}: {error}. This is a bug in sketchmeans; --debug "
            "shows where it happened."
        )
        return _BAD_DATA
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}."
    elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
        text = f"standard output: {error.strerror}."  # files are named
    _print_error(translate_errors(text))
    is_usage = isinstance(error, ValueError) and names_parameter(text)
    return _WRONG_USAGE if is_usage else _BAD_DATA


def _print_error(text: str) -> None:
    current_screen.get().print_error(text, "Error", "bold red")


def _report_stop() -> int:
    """Print what a command that was stopped leaves."""
    screen = current_screen.get()
    checkpoint = screen.checkpoint
    left = "Nothing was written."
    if checkpoint is not None and checkpoint.failure is not None:
        left = f"{checkpoint.path} could not be written: {checkpoint.failure}."
    elif checkpoint is not None and os.path.exists(checkpoint.path):
        left = f"{checkpoint.path} holds the work so far; the same command resumes it."
    elif screen.written:
        left = f"Wrote {', '.join(screen.written)} and nothing else."
    screen.print_error(f"Stopped. {left}")
    return _STOPPED if screen.signal is None else _SIGNAL + screen.signal
