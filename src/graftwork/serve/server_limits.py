"""Limits of one server: sizes, queue length, times, and the connections that the system's file descriptors allow."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

KEPT_FREE = 48  # descriptors for the bank's files, and connections that are accepted only to be refused


@dataclass(frozen=True)
class ServerLimits:
    """Limits beyond which a request is refused; none is ever truncated silently."""

    batch_tokens: int = 512  # of the rows computed together; an estimate
    queue_tokens: int = 512  # that may wait for the running batch: a longer queue only adds waiting time
    linger_seconds: float = 0.002  # wait of a busy server for more rows before a batch
    seconds: float = 10.0  # from the end of a request's body to its answer
    body_bytes: int = 1_000_000
    body_seconds: float = 10.0  # for a whole body to arrive
    discard_seconds: float = 1.0  # for the rest of a refused body
    head_bytes: int = 16_384  # of a request's first line and headers
    head_seconds: float = 10.0  # for them to arrive
    connections: int = 1_000
    keep_alive_seconds: int = 75  # until a connection without a request is closed
    grace_seconds: int = 20  # at the end, for accepted requests; those not answered by then get 503
    rows: int = 256
    answers: int = 4_096  # rows times their tasks
    characters: int = 20_000  # of all texts of a row
    words: int = 5_000
    choices: int = 100
    feedback_bytes: int = 100_000_000  # of the file of feedback

    @property
    def share(self) -> int:
        """Tokens of a batch that one request gets while others wait, and its maximum weight in the queue."""
        return max(1, self.batch_tokens // 4)


def connections_within(most: int) -> int:
    """Return how many of `most` connections this process may have; raises its soft limit of descriptors as needed."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return most

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = len(os.listdir("/dev/fd")) + KEPT_FREE
    wanted = others + most if hard == resource.RLIM_INFINITY else min(others + most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the system allows fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft - others))
