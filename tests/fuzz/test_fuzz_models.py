"""Damaged and forged model files and checkpoints: a result, or our own error.

The mutations are tried in another process, which may not crash, raise anything but our
errors, or take more than 256 MiB.  ``FUZZ_MUTATIONS=10000`` is for the night;
``python -m tests.fuzz.model_mutations models 1234 1`` tries one again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Mutations of each kind of file.
MUTATIONS = int(os.environ.get("FUZZ_MUTATIONS", "200"))


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory through /proc")
@pytest.mark.parametrize(
    ("target", "count", "outcomes"),
    [
        ("models", MUTATIONS, {"refused", "loaded"}),
        ("checkpoints", max(MUTATIONS // 3, 1), {"refused", "resumed"}),
    ],
)
def test_mutations_are_read_or_refused(target, count, outcomes):
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.model_mutations", target, "0", str(count)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{last}: {done.stderr[-3000:]}"
    assert set(json.loads(last[0])) == outcomes
