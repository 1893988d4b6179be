"""File descriptors: every connection takes one, and the system limits them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

KEPT_FREE = 48  # for the bank's files, and connections that are accepted only to be refused


def connections_within(most: int) -> int:
    """Return how many of `most` connections this process may have; raises its soft limit of descriptors as needed."""
    if sys.platform == "win32":
        return most
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = len(os.listdir("/dev/fd")) + KEPT_FREE
    wanted = others + most if hard == resource.RLIM_INFINITY else min(others + most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the system allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - others))
