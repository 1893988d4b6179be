"""Release of resident pages of memory-mapped files, which are read again when needed.

Linux counts touched mapped pages as memory of the process until they are unmapped or released, although it may
reclaim them at any time. A released page stays in the page cache as long as that has room, and returns from there
without the disk.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from torch import Tensor

AT_ONCE = 16 << 20  # bytes read between releases; about 7 times as much is resident, since Linux maps 64 kB per access
MAPS = Path("/proc/self/maps")


def let_go(tensors: Iterable[Tensor]) -> None:
    """Release the resident pages of contiguous tensors in memory-mapped files; does nothing to others, or off Linux.

    Values do not change: writes to a shared mapping are in its file, and private mappings are never written to.
    """
    ranges, advise = [_pages(tensor) for tensor in tensors], _madvise()
    if not ranges or advise is None:
        return
    backed = _file_backed_ranges()
    for begin, end in ranges:
        if begin < end and any(low <= begin and end <= high for low, high in backed):
            advise(begin, end - begin, mmap.MADV_DONTNEED)


def _pages(tensor: Tensor) -> tuple[int, int]:
    """Return the address range of the whole pages inside a tensor."""
    begin = tensor.data_ptr()
    end = begin + tensor.numel() * tensor.element_size()
    return -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE


def _file_backed_ranges() -> list[tuple[int, int]]:
    """Return the file-backed address ranges of this process; releasing other memory would lose its content."""
    found = []
    for line in MAPS.read_text().splitlines():
        addresses, _, _, _, inode = line.split(maxsplit=5)[:5]
        if inode != "0":
            low, _, high = addresses.partition("-")
            found.append((int(low, 16), int(high, 16)))
    return found


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    """Return the C library's `madvise`; None where the system does not list mappings in `MAPS`."""
    if not MAPS.exists():
        return None
    found = ctypes.CDLL(None).madvise
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return cast(Callable[[int, int, int], int], found)
