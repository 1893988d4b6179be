"""`graft compare` as a contender: the whole board, every method x seeds, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pieces import Piece, task
from protocol import Answer, Gate, Trained, Watch


class Board:
    """An epoch is a whole comparison into an empty folder, with an empty cache. Implements `Contender`."""

    def __init__(self, piece: Piece, data: Path, *, methods: list[str], seeds: int, backbone: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="engine_speed_"))
        self.task = task(piece, data, self.folder / "data")
        self.methods, self.seeds, self.backbone = methods, seeds, backbone
        self.content: dict[str, Any] = {}

    def about(self) -> Answer:
        """What is compared."""
        return {"methods": self.methods, "seeds": self.seeds, "exhaustive": self._exhaustive()}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Reading the data, opening the backbone and writing the report are in the time: a user pays them."""
        watch = Watch()
        for _ in range(epochs):
            gate(watch.lap())
            watch.go()
            self._compare()
        return Trained(watch.lap(), self._scores)

    def _compare(self) -> None:
        place = Path(tempfile.mkdtemp(dir=self.folder))
        flags = {"runs": place / "runs", "out": place / "board", "seeds": self.seeds, "backbone": self.backbone}
        flags |= {key: getattr(self.task, key) for key in ("validation", "test") if getattr(self.task, key)}
        words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        command = [*_graft("compare", str(self.task.data), "--methods", ",".join(self.methods)), *words]
        surroundings = os.environ | {"XDG_CACHE_HOME": str(place / "cache")}
        subprocess.run([*command, *self._exhaustive()], check=True, env=surroundings, stdout=subprocess.DEVNULL)
        self.content = json.loads((place / "board" / "leaderboard.json").read_text())

    def _exhaustive(self) -> list[str]:
        """The flag that keeps every run, where `compare` would drop some."""
        said = subprocess.run(_graft("compare", "--help"), check=True, capture_output=True, text=True).stdout
        return ["--exhaustive"] if "--exhaustive" in said else []

    def _scores(self) -> Answer:
        headline = self.content["headline_metric"]
        rows = self.content["rows"]
        return {"test_by_method": {row["method"]: row["scores"][headline]["mean"] for row in rows if row["scores"]}}


def _graft(*words: str) -> list[str]:
    return [sys.executable, "-m", "graftwork", *words]
