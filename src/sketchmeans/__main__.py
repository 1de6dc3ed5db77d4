"""``python -m sketchmeans`` is the command line."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from sketchmeans.cli import run_process

        code = run_process()
    except KeyboardInterrupt:  # before the command line can say so
        code = 130
    sys.exit(code)
