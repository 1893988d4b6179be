"""One seed per purpose, all derived from the run's: initialisation and data order never share a stream."""

from __future__ import annotations

import hashlib


def derive(seed: int, purpose: str) -> int:
    """A 63-bit seed for `purpose` ("init", "order"), the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{purpose}".encode()).digest()[:8], "big") >> 1
