"""The memory contract: what a fit may use, planned before the work starts."""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from numbers import Real
from pathlib import Path

try:
    import psutil
except ImportError:  # Python in a browser (Pyodide) has none
    psutil = None

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = r"\s*((?:\d+\.?\d*|\.\d+)(?:e\d+)?)\s*([a-zA-Z]*)\s*"

#: What a fit takes whatever its size: threads, scratch arrays of the libraries, samples
#: for the bandwidth.
FIXED_NEED = 48 * 10**6

_CONTROL_GROUP = Path("/sys/fs/cgroup")

#: Free memory where nothing tells: a quarter of what 32 bits can address.
_UNKNOWN_FREE = 2**30

#: Share of the free memory that a fit takes when `max_memory` is None.
DEFAULT_SHARE = 0.5


def memory_budget(max_memory: float | str | None) -> int:
    """Return `max_memory` in bytes; None means half of what is free now.

    Examples
    --------
    >>> memory_budget("1.5GB")
    1500000000
    """
    if max_memory is None:
        return int(DEFAULT_SHARE * _available())
    size = 0.0
    if isinstance(max_memory, str):
        match = re.fullmatch(_SIZE, max_memory)
        if match and match[2].upper() in _UNITS:
            size = float(match[1]) * _UNITS[match[2].upper()]
    elif isinstance(max_memory, Real) and not isinstance(max_memory, bool):
        with suppress(OverflowError):  # an integer beyond all floats
            size = float(max_memory)
    if 1.0 <= size < float("inf"):
        return int(size)
    raise ValueError(
        f"max_memory={max_memory!r} should be a positive number of bytes, a string "
        "such as '2GB' or '500 MiB', or None."
    )


def plan_memory(
    need: int, max_memory: float | str | None, message: str, advice: str
) -> int:
    """Return the bytes that are left for what need not be kept.

    Raises MemoryError where a fit needs more than `max_memory` allows: `message` says
    what for, with ``{}`` in the place of the size.
    """
    budget = memory_budget(max_memory)
    if need > budget:
        raise MemoryError(
            f"{message.format(format_bytes(need))}; max_memory allows "
            f"{format_bytes(budget)}. {advice}"
        )
    return budget - need


def release_free_memory() -> None:
    """Give back to the system what allocators keep of memory that has been freed.

    Text that was read leaves a hundred megabytes behind, which no plan counts.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        with suppress(AttributeError, OSError):  # musl has none
            ctypes.CDLL(None).malloc_trim(0)


def is_memory_size(value: object) -> bool:
    """Say whether `memory_budget` takes a value.

    Examples
    --------
    >>> is_memory_size("1.5GB"), is_memory_size(-1)
    (True, False)
    """
    try:
        memory_budget(value)  # type: ignore[arg-type]
    except ValueError:
        return False
    return True


def format_bytes(n_bytes: float) -> str:
    """Return a size for people: ``format_bytes(3.2e9) == '3.2 GB'``."""
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB" if size < 999.5 else f"{size:.0f} TB"


def _available() -> int:
    """Return the bytes that can be allocated without swapping, in this container."""
    free = psutil.virtual_memory().available if psutil is not None else _UNKNOWN_FREE
    return min(int(free), _control_group_limit())


def _control_group_limit() -> int:
    """Return the memory limit of this process's container, which psutil ignores."""
    for path in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return int((_CONTROL_GROUP / path).read_text(encoding="ascii"))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return sys.maxsize
