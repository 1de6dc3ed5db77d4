"""Print the names of other BLAS kernels that this machine can run.

OpenBLAS has matrix products for many processors and takes those of the one it runs on,
unless OPENBLAS_CORETYPE says otherwise.  It does not check that the processor has the
instructions, so only older kernels than the machine's own are named, each after it was
seen to take effect in NumPy and in SciPy.
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
    """Return the kernels that NumPy and SciPy use when one is asked for."""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    if kernel is not None:
        environment["OPENBLAS_CORETYPE"] = kernel
    command = [sys.executable, "-c", _LOADED]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def main() -> None:
    """Print the names; say on standard error why there are none."""
    own = loaded()
    names = []
    if platform.machine().lower() in ("x86_64", "amd64") and len(own) == 1:
        for name in _OTHERS.get(own[0], _ANYWHERE):
            found = loaded(name)
            if len(found) == 1 and found != own:
                names.append(name)
    if not names:
        print(f"No other BLAS kernels than {own} can be chosen here.", file=sys.stderr)
    print(*names)


if __name__ == "__main__":
    main()
