"""Damages files and uses them, in a process that may die of it.

Standard output has a line of JSON for each mutation before it is tried, and one for
each that went wrong; `tests.fuzz.run` reads them.
"""

import json
import resource
import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

#: What the library may raise for a file that is damaged.
EXPECTED = (ValueError, OSError, TypeError, MemoryError)
#: Most megabytes above what the process has after all valid files were used.
MEMORY_LIMIT = 200
#: No file may take longer, in seconds: SIGALRM ends the process.
TIME_LIMIT = 60
#: Most bytes of addresses: what would take the machine down fails instead.
_ADDRESSES = 12 * 2**30


def main(table, kind, seed, start, stop):
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    module, _, name = table.rpartition(".")
    table = getattr(import_module(module), name)
    targets = [(name, target) for name, target in table.items() if kind in name]
    with tempfile.TemporaryDirectory() as folder:
        valid = {}
        for name, target in targets:
            path = Path(folder) / f"valid.{target.suffix}"
            target.write(path)
            target.use(path)  # a valid file is used without an error
            valid[name] = path.read_bytes()
        before = _peak()
        for number in range(start, stop):
            name, target = targets[number % len(targets)]
            rng = np.random.default_rng([seed, number])
            path = Path(folder) / f"damaged.{target.suffix}"
            path.write_bytes(target.mutate(valid[name], rng))
            _say(number=number, target=name)
            signal.alarm(TIME_LIMIT)
            try:
                target.use(path)
            except EXPECTED as error:
                if not str(error):
                    _say(number=number, target=name, wrong=f"{error!r} says nothing")
            except Exception as error:
                _say(number=number, target=name, wrong=repr(error))
            signal.alarm(0)
            peak = _peak()
            if peak - before > MEMORY_LIMIT:
                wrong = f"it took {peak - before:.0f} MB"
                _say(number=number, target=name, wrong=wrong)
                before = peak  # which never falls


def _peak():
    """Return the peak of this program's memory, in megabytes."""
    # Not ru_maxrss, which begins with the peak of the process that started this one.
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # not Linux


def _say(**what):
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
