"""Pages that a file backs need not stay in memory: what was written or read is let go, and read again when needed.

Linux counts mapped pages that were touched as memory of the process until they are unmapped or let go; what it may
take back at any time looks like memory held. A page that is let go stays in the system's cache as long as that has
room, and returns from there without the disk.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from torch import Tensor

AT_ONCE = 16 << 20  # bytes that are touched before they are let go: Linux maps 64 kB around each, some 7 times as much
MAPS = Path("/proc/self/maps")


def let_go(tensors: Iterable[Tensor]) -> None:
    """Drop the resident pages of these contiguous tensors; of one that no file backs, or elsewhere than Linux, nothing.

    Their values stay as they are: what was written to a shared map is the file's, and a private one was never written.
    """
    ranges, advise = [_pages(tensor) for tensor in tensors], _madvise()
    if not ranges or advise is None:
        return
    backed = _backed()
    for begin, end in ranges:
        if begin < end and any(low <= begin and end <= high for low, high in backed):
            advise(begin, end - begin, mmap.MADV_DONTNEED)


def _pages(tensor: Tensor) -> tuple[int, int]:
    """The addresses of the whole pages inside a tensor."""
    begin = tensor.data_ptr()
    end = begin + tensor.numel() * tensor.element_size()
    return -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE


def _backed() -> list[tuple[int, int]]:
    """The address ranges of this process that files back: letting go of anything else would lose it."""
    found = []
    for line in MAPS.read_text().splitlines():
        addresses, _, _, _, inode = line.split(maxsplit=5)[:5]
        if inode != "0":
            low, _, high = addresses.partition("-")
            found.append((int(low, 16), int(high, 16)))
    return found


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    """The C library's; None where there is none, or no list of maps to ask."""
    if not MAPS.exists():
        return None
    found = ctypes.CDLL(None).madvise
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return cast(Callable[[int, int, int], int], found)
