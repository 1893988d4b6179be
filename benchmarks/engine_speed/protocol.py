"""The protocol of the driver and its workers: one JSON object per line, one answer per command.

    {"do": "start", "seed": 0, "epochs": 3}   begin to train; stop before the first epoch; answers the time taken
    {"do": "epoch"}                           train one epoch; answers the time taken
    {"do": "score"}                           after the last epoch: accuracy on validation and test
    {"do": "stop"}                            end the process

An answer to "start" and "epoch" holds `seconds`, `cpu_seconds` and fields of the contender: `test_now`, the accuracy on
the test split with the current weights, if its settings say `by_epoch`; the watch is paused while it is computed.
Waiting is free: an idle worker blocks on its input, and the driver commands one worker at a time.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from graftwork.core.meter import Phase, Stopwatch

Answer = dict[str, Any]
Gate = Callable[[Answer], None]  # reports measurements, and returns when the next epoch is requested


@dataclass(frozen=True)
class Trained:
    """The end of a fit: the measurements of its last epoch, and a function to score it."""

    last: Answer
    score: Callable[[], Answer]


class Contender(Protocol):
    """The contender of a worker: data and weights are in memory once it is made."""

    def about(self) -> Answer:
        """Return constant facts: rows, tokens, versions."""

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Train, calling `gate` before every epoch with the measurements before it."""


class Watch:
    """A stopwatch of seconds and CPU seconds, started when made; `lap` reads and resets it."""

    def __init__(self) -> None:
        self._taken = Phase()
        self._running: Stopwatch | None = Stopwatch()

    def go(self) -> None:
        """Resume; does nothing while running."""
        self._running = self._running or Stopwatch()

    def stop(self) -> None:
        """Pause; does nothing while paused."""
        if self._running is not None:
            self._taken.add(self._running.read())
            self._running = None

    def add(self, phase: Phase) -> None:
        """Add time that was measured elsewhere."""
        self._taken.add(phase)

    def lap(self) -> Answer:
        """Return the time since the last lap. The watch is paused afterwards."""
        self.stop()
        taken, self._taken = self._taken, Phase()
        return {"seconds": taken.wall_seconds, "cpu_seconds": taken.cpu_seconds, "peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """Return the peak memory of this process so far (Linux counts in KiB, macOS in bytes)."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def own_output() -> TextIO:
    """Return the stream for answers, and redirect what libraries print to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def serve(contender: Contender, source: TextIO, sink: TextIO) -> None:
    """Answer the commands from `source` until it ends or a command says stop."""
    commands = _commands(source)

    def say(answer: Answer) -> None:
        sink.write(json.dumps(answer) + "\n")
        sink.flush()

    def gate(measured: Answer) -> None:
        say(measured)
        command = next(commands, {"do": "stop"})
        if command["do"] == "stop":
            raise SystemExit
        if command["do"] != "epoch":
            raise ValueError(f"asked to {command['do']} in the middle of a fit")

    say({"ready": True} | contender.about())
    trained: Trained | None = None
    for command in commands:
        if command["do"] == "start":
            trained = contender.fit(command["seed"], command["epochs"], gate)
            say(trained.last)
        elif command["do"] == "score" and trained is not None:
            say(trained.score())
        elif command["do"] == "stop":
            return
        else:
            raise ValueError(f"cannot {command['do']} now")


def _commands(source: TextIO) -> Iterator[Answer]:
    for line in iter(source.readline, ""):  # not `for line in source`, which reads ahead
        yield json.loads(line)
