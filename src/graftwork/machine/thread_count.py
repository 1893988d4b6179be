"""How many processor threads torch computes with, told without importing it where that is known."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from graftwork.machine.torch_in_use import torch_in_use

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
DECIDE_TOO = ("MKL_NUM_THREADS", "MKL_DOMAIN_NUM_THREADS", "MKL_DYNAMIC", "OMP_DYNAMIC", "OMP_THREAD_LIMIT")


def threads() -> int:
    """Those that torch has; where it is not imported those that it would begin with."""
    begun = _begun_with() if torch_in_use() is None else None
    if begun is not None:
        return begun
    import torch

    return torch.get_num_threads()


def _begun_with() -> int | None:
    """What MKL, which torch asks, answers on Linux: a thread per physical core that the process may run on, or fewer if
    OMP_NUM_THREADS says so. None where that is not certain.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64" or any(name in os.environ for name in DECIDE_TOO):
        return None
    told = os.environ.get("OMP_NUM_THREADS")
    if told is not None and not (told.isdecimal() and int(told) > 0):
        return None
    try:
        cores = {Path(SIBLINGS.format(cpu)).read_text() for cpu in os.sched_getaffinity(0)}
    except OSError:
        return None
    return len(cores) if told is None else min(len(cores), int(told))
