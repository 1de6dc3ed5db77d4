"""The command line: arguments → estimator → output, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

#: The exit code of a command that Ctrl-C stopped.
_STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default is those of the process.

    Returns
    -------
    code : int
        0 success, 1 bad data, 2 wrong usage, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    try:
        try:
            import rich  # noqa: F401 - for the message
            import typer  # noqa: F401
        except ImportError:
            print(
                "The command line needs typer and rich: pip install sketchmeans[cli]",
                file=sys.stderr,
            )
            return 1
        from sketchmeans.cli.app import run
    except KeyboardInterrupt:  # while modules are imported
        print("Stopped. Nothing was written.", file=sys.stderr)
        return _STOPPED
    return run(arguments)


def run_process() -> int:
    """Run the command of this process, and return its exit code."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - to the end
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Before a command starts, and when it is over, a signal ends the process: an
        # exception in the middle of an import may be swallowed.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # its reader is gone, or its disk is full
            from sketchmeans.cli.app import discard

            discard(stream)
            code = code or 1
    return code
