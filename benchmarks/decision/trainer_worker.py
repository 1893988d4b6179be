"""A peer of `graft train` on one data set and one budget: `python trainer_worker.py QUESTION.json ANSWER.json`.

`beside_trainer.py` starts it, with a Python that has the peer. Nothing of Graftwork is imported: the peer may live in
an environment of its own. The clock began when the process was started, so that its imports count.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PEERS = {"trainer": "trainer_fits", "trainer_planned": "trainer_fits", "autogluon": "autogluon_fits"}  # -> its module
VERSIONS = ("transformers", "accelerate", "torch", "tokenizers", "numpy", "autogluon.multimodal", "lightning")


@dataclass(frozen=True)
class Clock:
    """How much of the budget is left."""

    began: float  # seconds since 1970
    seconds: float  # the budget

    def used(self) -> float:
        """Seconds since the process was started."""
        return time.time() - self.began

    def left(self) -> float:
        """Seconds of the budget; below 0 once it is over."""
        return self.seconds - self.used()


def versions() -> dict[str, str]:
    """Of what is installed here and decides a score."""
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Answer the one question; what goes wrong is told on the way out, and no answer is written."""
    question = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    clock = Clock(question["began"], question["budget_seconds"])
    peer = importlib.import_module(PEERS[question["system"]])
    answer = peer.answer(question, clock)
    told = answer | {"used_seconds": clock.used(), "versions": versions(), "python": sys.version.split()[0]}
    Path(sys.argv[2]).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
