"""Limits of one server: sizes, queue length and times."""

from __future__ import annotations

from dataclasses import dataclass

from graftwork.errors import ConfigError


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

    def __post_init__(self) -> None:
        for flag, value in (("--max-batch-tokens", self.batch_tokens), ("--max-queue", self.queue_tokens)):
            if value < 1:
                raise ConfigError(f"{flag} must be at least 1", got=str(value))
        if not 0 < self.seconds <= 3600:
            raise ConfigError("--timeout must be more than 0 and at most 3600", got=str(self.seconds))
        for flag, value in (("--keep-alive", self.keep_alive_seconds), ("--grace", self.grace_seconds)):
            if not 0 <= value <= 3600:
                raise ConfigError(f"{flag} must be at least 0 and at most 3600", got=str(value))

    @property
    def share(self) -> int:
        """Tokens of a batch that one request gets while others wait, and its maximum weight in the queue."""
        return max(1, self.batch_tokens // 4)
