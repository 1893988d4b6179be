"""A contender that measures nothing: its times are in its settings. Run as a worker by the tests of the driver."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "engine_speed"))

from protocol import Answer, Gate, Trained, own_output, serve


class Fake:
    """Answers `seconds` for every epoch, and fails where it is told to."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def about(self) -> Answer:
        return {"tokens": 100} | {key: self.settings[key] for key in ("share", "own_epochs") if key in self.settings}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        print("a library that talks")
        said = {"cpu_seconds": 0.0, "peak_bytes": 1} | self.about()
        gate({"seconds": 1.0} | said)
        for epoch in range(1, epochs):
            if self.settings.get("fails_after") == epoch:
                raise RuntimeError("out of luck")
            gate({"seconds": self.settings["seconds"][epoch - 1]} | said)
        return Trained({"seconds": self.settings["seconds"][epochs - 1]} | said, lambda: {"test": 0.5 + seed / 10})


if __name__ == "__main__":
    answers = own_output()
    serve(Fake(json.loads(sys.argv[1])["settings"]), sys.stdin, answers)
