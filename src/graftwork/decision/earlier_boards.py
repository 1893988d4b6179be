"""Earlier boards that the prior learns from: those shipped with the package, and those that the user adds."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import configured_from
from graftwork.decision.traits import Arm, Traits
from graftwork.errors import DataError
from graftwork.io.files import read_json, write_json

FORMAT = 1
SHIPPED = Path(__file__).parent / "experience.json"
FEWEST = 3  # scored methods that a board needs to be learned from
KNOWN_SEEDS = 3  # with at least this many runs, the errors of a board's differences include the variance over seeds
_NORMAL_QUANTILE, _POWER_QUANTILE = 1.96, 0.8416  # of the normal distribution at 97.5 % and at 80 %


@dataclass(frozen=True)
class ScoreOnTest:
    """A method's test score on a task, over all of its seeds."""

    mean: float  # a fraction
    error: float  # standard error of this method alone: over examples, without what methods share, and seeds if known
    seeds: int


@dataclass(frozen=True)
class TaskRecord:
    """A finished board: a task's traits and the methods' scores."""

    name: str
    traits: Traits
    scores: Mapping[Arm, ScoreOnTest]
    data: str = ""  # `Dataset.digest`; a board of the same rows would leak their test scores

    def content(self) -> dict[str, Any]:
        """Return the record as JSON."""
        scores = [
            {"label": arm.label, "name": arm.name, "sort": arm.sort, "mean": score.mean, "error": score.error,
             "seeds": score.seeds}
            for arm, score in self.scores.items()
        ]  # fmt: skip
        return {"name": self.name, "traits": asdict(self.traits), "scores": scores, "data": self.data}

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> TaskRecord:
        """Read a record from JSON."""
        scores = {
            Arm(one["label"], one["name"], one["sort"]): ScoreOnTest(one["mean"], one["error"], one["seeds"])
            for one in content["scores"]
        }
        return cls(content["name"], Traits(**content["traits"]), scores, content.get("data", ""))


@dataclass(frozen=True)
class Experience:
    """All boards that the prior is conditioned on."""

    tasks: tuple[TaskRecord, ...] = ()

    def without(self, names: Iterable[str]) -> Experience:
        """Return the experience without the tasks of these names."""
        left_out = set(names)
        return Experience(tuple(task for task in self.tasks if task.name not in left_out))


def shipped_prior() -> tuple[Mapping[str, Any], Experience]:
    """Read the prior's fitted hyper-parameters (`prior.Sizes`), and the boards that they were fitted on."""
    content = read_json(SHIPPED)
    return content["sizes"], Experience(tuple(map(TaskRecord.read, content["tasks"])))


def own_file() -> Path:
    """Return the path of the user's own boards: under $XDG_DATA_HOME, else ~/.local/share."""
    shared = os.environ.get("XDG_DATA_HOME")
    return (Path(shared) if shared else Path("~/.local/share").expanduser()) / "graftwork" / "experience.json"


def own() -> Experience:
    """Read the user's own boards; none if the file does not exist. Raises `StorageError` for a damaged file."""
    path = own_file()
    if not path.is_file():
        return Experience()
    return Experience(tuple(map(TaskRecord.read, read_json(path)["tasks"])))


def keep(records: Iterable[TaskRecord], without: Iterable[str] = ()) -> Experience:
    """Add boards to the user's own, replacing those of the same name; boards named in `without` are removed."""
    kept = {task.name: task for task in (*own().without(without).tasks, *records)}
    write_json(own_file(), {"format": FORMAT, "tasks": [task.content() for task in kept.values()]})
    return Experience(tuple(kept.values()))


def record_of(board: Mapping[str, Any], name: str, traits: Traits | None = None) -> TaskRecord:
    """Extract the record of a `leaderboard.json`. `traits` are for boards that do not contain theirs.

    Raises `DataError` for a board with fewer than three scored methods, or without traits.
    """
    if traits is None:
        if "traits" not in (board.get("decision") or {}):
            raise DataError(
                "the board does not say what its task was like",
                where=name,
                got="a board of an older version",
                do="compare once more: runs that are there cost nothing",
            )
        traits = Traits(**board["decision"]["traits"])
    metric = board["headline_metric"]
    rows = [row for row in board["rows"] if metric in row["scores"]]
    if len(rows) < FEWEST:
        raise DataError(
            "the board is too short to learn from", where=name, got=f"{len(rows)} scored methods", expected=f"{FEWEST}"
        )
    errors = _errors(board)
    middle = statistics.median(errors.values()) if errors else 0.0
    scores = {}
    for row in rows:
        arm = Arm.of(configured_from(row["config"]))
        scores[arm] = ScoreOnTest(row["scores"][metric]["mean"], errors.get(row["method"], middle), row["n_seeds"])
    return TaskRecord(name, traits, scores, str(board["task"].get("data", "")))


def _errors(board: Mapping[str, Any]) -> dict[str, float]:
    """Estimate each method's own standard error: its variance is half that of its median difference to others."""
    found: dict[str, list[float]] = {}
    for pair in board["differences"]:
        for method in (pair["a"], pair["b"]):
            found.setdefault(method, []).append(_error(pair))
    return {method: statistics.median(of) / 2**0.5 for method, of in found.items()}


def _error(pair: Mapping[str, Any]) -> float:
    """Recover the standard error of a difference from its interval (t errors each way) and its smallest detectable
    difference (t + 0.84 errors); without the latter, from the interval alone with t = 1.96."""
    half, least = (pair["high"] - pair["low"]) / 2, pair["smallest_detectable"]
    if least is None or least <= half:
        return float(half / _NORMAL_QUANTILE)
    return float(min((least - half) / _POWER_QUANTILE, half / _NORMAL_QUANTILE))
