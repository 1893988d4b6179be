"""The number of processor threads of torch, found without importing it where possible."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graftwork.machine.torch_in_use import torch_in_use

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
DECIDE_TOO = ("MKL_NUM_THREADS", "MKL_DOMAIN_NUM_THREADS", "MKL_DYNAMIC", "OMP_DYNAMIC", "OMP_THREAD_LIMIT")


def threads() -> int:
    """Return torch's number of threads; where it is not imported, the number it would start with."""
    begun = _begun_with() if torch_in_use() is None else None
    if begun is not None:
        return begun
    import torch

    return torch.get_num_threads()


@contextmanager
def limited_to(count: int) -> Iterator[None]:
    """Make torch use `count` threads within this block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _begun_with() -> int | None:
    """Return MKL's default number of threads on x86-64 Linux, which torch takes; None if it cannot be predicted.

    It is one per physical core of the affinity, but at most OMP_NUM_THREADS.
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
