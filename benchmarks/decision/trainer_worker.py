"""A peer of `graft train` on one data set and one budget: `python trainer_worker.py QUESTION.json ANSWER.json`.

`beside_trainer.py` starts it, with a Python that has the peer. Nothing of Graftwork is imported: the peer may be
installed in its own environment. The clock started when the process was started, so imports count.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PEERS = {"trainer": "trainer_fits", "trainer_planned": "trainer_fits", "autogluon": "autogluon_fits"}  # -> module
VERSIONS = ("transformers", "accelerate", "torch", "tokenizers", "numpy", "autogluon.multimodal", "lightning")


@dataclass(frozen=True)
class Clock:
    """The time budget."""

    began: float  # Unix time
    seconds: float  # the budget

    def used(self) -> float:
        """Return the seconds since the process was started."""
        return time.time() - self.began

    def left(self) -> float:
        """Return the remaining seconds of the budget; negative once it is over."""
        return self.seconds - self.used()


def versions() -> dict[str, str]:
    """Return the versions of installed packages that affect a score."""
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Answer the one question; on an error, report it and write no answer."""
    question = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    clock = Clock(question["began"], question["budget_seconds"])
    peer = importlib.import_module(PEERS[question["system"]])
    answer = peer.answer(question, clock)
    told = answer | {"used_seconds": clock.used(), "versions": versions(), "python": sys.version.split()[0]}
    Path(sys.argv[2]).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
