"""What the driver and its workers say to each other: one JSON object per line, one answer per command.

    {"do": "start", "seed": 0, "epochs": 3}   begin to train; stop before the first epoch; the answer is what it took
    {"do": "epoch"}                           train one epoch; the answer is what it took
    {"do": "score"}                           after the last epoch: accuracy on validation and test
    {"do": "stop"}                            end the process

An answer to "start" and "epoch" holds `seconds`, `cpu_seconds` and what the contender adds: `test_now`, the accuracy on
the test split as the weights are then, where its settings say `by_epoch`; the watch stands while that is computed.
Waiting costs nothing: a worker that is not asked sleeps on its input, and the driver asks one at a time.
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
Gate = Callable[[Answer], None]  # says what was measured, and returns when the next epoch is asked for


@dataclass(frozen=True)
class Trained:
    """The end of a fit: what its last epoch took, and how to score it."""

    last: Answer
    score: Callable[[], Answer]


class Contender(Protocol):
    """What a worker holds: data and weights are in memory when it has been made."""

    def about(self) -> Answer:
        """Rows, tokens, versions: what does not change."""

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Train, calling `gate` before every epoch with what came before it."""


class Watch:
    """Adds up the stretches between `go` and `stop`, and runs when it is made; `lap` reads and begins anew."""

    def __init__(self) -> None:
        self._taken = Phase()
        self._running: Stopwatch | None = Stopwatch()

    def go(self) -> None:
        """Go on; nothing happens when it is running."""
        self._running = self._running or Stopwatch()

    def stop(self) -> None:
        """Stop; nothing happens when it stands."""
        if self._running is not None:
            self._taken.add(self._running.read())
            self._running = None

    def add(self, phase: Phase) -> None:
        """What was measured elsewhere counts too."""
        self._taken.add(phase)

    def lap(self) -> Answer:
        """What was taken since the last lap. The watch stands afterwards."""
        self.stop()
        taken, self._taken = self._taken, Phase()
        return {"seconds": taken.wall_seconds, "cpu_seconds": taken.cpu_seconds, "peak_bytes": peak_bytes()}


def peak_bytes() -> int:
    """The most memory this process has held so far (Linux counts in KiB, macOS in bytes)."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def own_output() -> TextIO:
    """The stream of answers. What libraries print goes to standard error from now on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def serve(contender: Contender, source: TextIO, sink: TextIO) -> None:
    """Answer the commands that come in `source` until it ends or one says stop."""
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
