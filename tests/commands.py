"""The command line, run in this process: what it says and returns."""

import json
import re

from sketchmeans.cli import main

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Said:
    """What a command returned and printed."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        assert not CONTROL.search(out + err), "nothing but text goes to a pipe"

    @property
    def json(self):
        assert self.out.count("\n") == 1
        return json.loads(self.out)


def said(capsys, *arguments):
    """Run a command."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return Said(code, *capsys.readouterr())


def refused(said, code, text):
    """Check that a mistake gets one line, and nothing else."""
    assert said.code == code
    assert said.out == ""
    assert re.search(text, said.err), said.err
    assert said.err.count("\n") == 1
    assert said.err.startswith("Error: ")
    assert "Traceback" not in said.err
