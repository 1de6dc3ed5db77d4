"""Print the names of other BLAS kernels that this machine can run.

OpenBLAS has matrix products for many processors and takes those of the one it runs on,
unless OPENBLAS_CORETYPE says otherwise.  It does not check that the processor has the
instructions, so only the machine's own kernel and older ones are named, each after it
was seen to take effect in NumPy and in SciPy.  The kernel that tests run with anyway is
left out.
"""

import os
import platform
import subprocess
import sys

#: Kernels for a machine whose own is the key; every NumPy of x86 needs Nehalem's
#: instructions, so these two run on any other.
_WITH_AVX512 = ("SkylakeX", "Cooperlake", "SapphireRapids")
_OTHERS = dict.fromkeys(_WITH_AVX512, ("Haswell", "Nehalem"))
_ANYWHERE = ("Nehalem", "Prescott")

_LOADED = """
import numpy, scipy.linalg, threadpoolctl
blas = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
print(*{i.get("architecture", i["internal_api"]) for i in blas})
"""


def loaded(kernel: str | None = None) -> list[str]:
    """Return the kernels that NumPy and SciPy use if one is asked for, or else now."""
    environment = dict(os.environ)
    if kernel is not None:  # an empty name stands for the machine's own
        environment["OPENBLAS_CORETYPE"] = kernel
    command = [sys.executable, "-c", _LOADED]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def main() -> None:
    """Print the names; say on standard error why there are none."""
    now, own = loaded(), loaded("")
    names: list[str] = []
    if platform.machine().lower() in ("x86_64", "amd64") and len(own) == 1:
        for name in (own[0], *_OTHERS.get(own[0], _ANYWHERE)):
            found = loaded(name)
            if len(found) == 1 and found != now and found[0] not in names:
                names.append(found[0])
    if not names:
        print(f"No other BLAS kernels than {now} can be chosen here.", file=sys.stderr)
    print(*names)


if __name__ == "__main__":
    main()
