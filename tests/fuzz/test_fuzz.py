"""Damaged files of every kind: no crash, no foreign error, no memory without end.

A nightly run sets SKETCHMEANS_FUZZ=10000, the number of files, and may set
SKETCHMEANS_FUZZ_SEED.
"""

import os
import signal
import sys

import pytest

from tests.fuzz.run import fuzz
from tests.fuzz.targets import Target

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs limits of processes"
)


def test_damaged_files_are_harmless():
    count = int(os.environ.get("SKETCHMEANS_FUZZ", "200"))
    assert fuzz(count, int(os.environ.get("SKETCHMEANS_FUZZ_SEED", "0"))) == []


def only_if_damaged(action):
    def use(path):
        if path.read_bytes() != b"valid":
            action()

    return Target("txt", lambda path: path.write_bytes(b"valid"), use)


def hold_memory():
    return len(b"x" * 300_000_000)


def raise_nothing_said():
    raise ValueError


BAD = {
    "crash": only_if_damaged(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "foreign": only_if_damaged(lambda: {}["key"]),
    "silent": only_if_damaged(raise_nothing_said),
    "bomb": only_if_damaged(hold_memory),
    "harmless": only_if_damaged(lambda: None),
}


def test_what_is_not_harmless_is_found():
    found = {
        line["target"]: line["wrong"]
        for line in fuzz(5, table="tests.fuzz.test_fuzz.BAD")
    }
    assert found.keys() == BAD.keys() - {"harmless"}
    assert found["crash"].startswith("SIGSEGV")
    assert "KeyError" in found["foreign"]
    assert "says nothing" in found["silent"]
    assert "MB" in found["bomb"]
