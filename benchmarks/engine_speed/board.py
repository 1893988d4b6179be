"""`graft compare` as a contender: a whole board of methods x seeds, as a user types it, with the race on or off."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pieces import Piece, task
from protocol import Answer, Gate, Trained, Watch

from graftwork.io.files import read_json


class Board:
    """A contender: an epoch is a whole comparison into an empty folder, with an empty cache. Implements `Contender`."""

    def __init__(
        self, piece: Piece, data: Path, *, methods: list[str], seeds: int, backbone: str, exhaustive: bool
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="engine_speed_"))
        self.task = task(piece, data, self.folder / "data")
        self.methods, self.seeds, self.backbone = methods, seeds, backbone
        self.exhaustive = exhaustive  # no race: every method runs in full
        self.place = self.folder  # folder of the last comparison

    def about(self) -> Answer:
        """Return the settings of the comparison."""
        return {"methods": self.methods, "seeds": self.seeds, "exhaustive": self.exhaustive}

    def fit(self, seed: int, epochs: int, gate: Gate) -> Trained:
        """Run comparisons. Reading the data, opening the backbone and writing the report count: a user pays them."""
        watch = Watch()
        for _ in range(epochs):
            gate(watch.lap())
            watch.go()
            self._compare()
        return Trained(watch.lap(), self._scores)

    def _compare(self) -> None:
        """Run one comparison."""
        self.place = place = Path(tempfile.mkdtemp(dir=self.folder))
        flags = {
            "methods": ",".join(self.methods),
            "seeds": self.seeds,
            "backbone": self.backbone,
            "runs": place / "runs",
            "out": place / "board",
            "cache": place / "cache",
        }
        flags |= {key: getattr(self.task, key) for key in ("validation", "test") if getattr(self.task, key)}
        words = [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        command = [sys.executable, "-m", "graftwork", "compare", str(self.task.data), *words]
        command += ["--exhaustive"] if self.exhaustive else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _scores(self) -> Answer:
        """Return the scores of the last comparison. `best` is the method that it names; rows are ordered best first."""
        content = read_json(self.place / "board" / "leaderboard.json")
        scored = [row for row in content["rows"] if row["scores"]]
        return {
            "headline_metric": content["headline_metric"],
            "best": scored[0]["method"],
            "test_by_method": {
                row["method"]: {metric: score["mean"] for metric, score in row["scores"].items()} for row in scored
            },
            "epochs_of_a_run": self._epochs(),
            "training": self._training(),
            "decision": content["decision"],
        }

    def _epochs(self) -> int:
        """Return the recipe's epochs of the full-length runs, the same for every method; trials have no more."""
        specs = [read_json(path) for path in (self.place / "runs").glob("*/spec.json")]
        return int(max(spec["recipe"].get("epochs", 0) for spec in specs))

    def _training(self) -> list[Answer]:
        """Return the epochs of every full-length run, and their seconds without validation."""
        told = []
        for path in sorted((self.place / "runs").glob("*/spec.json")):
            recipe, profile = read_json(path)["recipe"], read_json(path.with_name("result.json"))["profile"]
            if "epochs" in recipe and "share" not in recipe:
                seconds = sum(profile.get(phase, 0.0) for phase in ("forward", "backward", "optimiser", "other"))
                told.append({"epochs": recipe["epochs"], "seconds": seconds})
        return told
