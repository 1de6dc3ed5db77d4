"""The command line: arguments → estimator → output, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default is those of the process.

    Returns
    -------
    code : int
        0 done, 1 bad data, 2 bad usage, 130 stopped by Ctrl-C.
    """
    try:
        import rich  # noqa: F401 - both are there, or the reason is said
        import typer  # noqa: F401
    except ImportError:
        import sys

        print(
            "The command line needs typer and rich: pip install sketchmeans[cli]",
            file=sys.stderr,
        )
        return 1
    from sketchmeans.cli.run import run

    return run(arguments)
