"""Finished boards, replayed so that a decision sees their runs one by one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from refit import SMALL, WHOLE, board_of, current_scores, traits_of

from graftwork.decision.earlier_boards import TaskRecord, record_of
from graftwork.decision.traits import TUNED, Arm, Traits
from graftwork.io.files import read_json
from graftwork.train.recipe import FEW_ROWS, MANY

REPLAYED = ("many_tasks", "glue")  # benchmarks whose boards keep validation scores
SEEDS = 3  # of whole boards
DRAWS = 400
KEPT = " kept"  # after the label of a method in a file of pooled_fits.py: what it keeps where that is not what it tried
PAIRED = 0.6  # correlation of two methods' validation scores over resampled rows, where it was not kept


@dataclass(frozen=True)
class Seen:
    """The runs of a method on a board, seed by seed, and its test score."""

    validation: tuple[float, ...]
    test: float  # mean over seeds
    seconds: float
    right: tuple[str, ...] = ()  # per seed the bits of the validation rows that it got right, hexadecimal


@dataclass(frozen=True)
class Replay:
    """A finished board."""

    record: TaskRecord
    arms: Mapping[Arm, Seen]
    rows: int  # rows of validation
    differences: tuple[Mapping[str, Any], ...] = ()  # the board's verdicts; small draws have none

    @property
    def name(self) -> str:
        """Return the name, as in the experience."""
        return self.record.name

    @property
    def best(self) -> float:
        """Return the highest mean test score; being a maximum of about ten noisy means, it is biased upwards."""
        return max(seen.test for seen in self.arms.values())

    def seconds(self, label: str) -> float:
        """Return the seconds to train a method once."""
        return next(seen.seconds for arm, seen in self.arms.items() if arm.label == label)

    def test(self, label: str) -> float | None:
        """Return the mean test score of a method; None if it is not on the board."""
        return next((seen.test for arm, seen in self.arms.items() if arm.label == label), None)

    def gain(self, arm: Arm, of_validation: bool = False) -> float:
        """Return how far a method is above the best that trains no network, at least 0: a cut run loses a share of it.

        That is the law by which `train --budget` cuts runs (docs/log.md).
        """

        def score(seen: Seen) -> float:
            return statistics.fmean(seen.validation) if of_validation else seen.test

        floor = [score(seen) for other, seen in self.arms.items() if other.sort != TUNED]
        return max(0.0, score(self.arms[arm]) - max(floor, default=0.0))

    def draws(self, arm: Arm, seed: int, spread: float) -> NDArray[np.float64]:
        """Return (DRAWS,) scores on resampled validation rows: from kept bits, else with a typical correlation."""
        seen = self.arms[arm]
        if seen.right:
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(seen.right[seed]), np.uint8))[: self.rows]
            return np.asarray(self._weights @ bits)
        place = list(self.arms).index(arm)
        return seen.validation[seed] + spread / np.sqrt(self.rows) * self._luck[place]

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """Return (DRAWS, rows): how often each row was drawn, as a share of the rows."""
        picks = np.random.default_rng(0).integers(0, self.rows, (DRAWS, self.rows))
        counts = [np.bincount(draw, minlength=self.rows) for draw in picks]
        return np.array(counts) / self.rows

    @cached_property
    def _luck(self) -> NDArray[np.float64]:
        """Return (arms, DRAWS) correlated deviations in standard errors."""
        count = len(self.arms)
        root = np.linalg.cholesky(PAIRED * np.ones((count, count)) + (1 - PAIRED) * np.eye(count))
        return np.asarray(root @ np.random.default_rng(0).standard_normal((count, DRAWS)))


def keeps_an_epoch(arm: Arm, traits: Traits) -> bool:
    """Return whether a method keeps its best epoch on validation; of many classes networks keep half-way weights."""
    halfway = traits.outputs > MANY and traits.rows < FEW_ROWS * traits.outputs
    return (arm.sort == TUNED and not halfway) or arm.name in ("dan", "scalar_mix")


def replays() -> list[Replay]:
    """Return all boards that keep enough to be replayed."""
    return [*whole(), *small()]


def small() -> list[Replay]:
    """Return the boards of small draws."""
    found = []
    for one in read_json(SMALL)["tasks"] if SMALL.is_file() else []:
        record = TaskRecord.read(one["record"])
        arms = {arm: _seen(one["runs"][arm.label]) for arm in record.scores if one["runs"].get(arm.label)}
        found.append(Replay(record, arms, one["rows"]["validation"]))
    return found


def _seen(runs: list[dict[str, Any]]) -> Seen:
    right = tuple(run["right"] for run in runs if run["right"] is not None)
    return Seen(
        tuple(run["validation"] for run in runs),
        statistics.fmean(run["test"] for run in runs),
        statistics.median(run["seconds"] for run in runs),
        right if len(right) == len(runs) else (),
    )


def whole() -> list[Replay]:
    """Return the boards of other benchmarks.

    A missing validation score is replaced by the test score plus the mean difference of both scores of the
    other methods.
    """
    found = []
    for benchmark in REPLAYED:
        for name in WHOLE[benchmark]:
            board = board_of(benchmark, name)
            record = record_of(board, f"{benchmark}/{name}", traits_of(board, name))
            shown = _validation(board)
            current = current_scores().get(record.name, {})
            shown |= {method: (scores["validation"],) * SEEDS for method, scores in current.items()}
            means = {arm.label: score.mean for arm, score in record.scores.items()}
            known = [label for label in shown if label in means]
            apart = statistics.fmean(statistics.fmean(shown[label]) - means[label] for label in known)
            prices = {row["method"]: row["costs"]["train_seconds"]["value"] for row in board["rows"]}
            arms = {
                arm: Seen(shown.get(arm.label, (score.mean + apart,) * SEEDS), score.mean, prices[arm.label])
                for arm, score in record.scores.items()
                if arm.label in shown or arm.sort != TUNED
            }
            rows = board["task"]["rows"]["validation"]
            found.append(Replay(record, arms, rows, tuple(board["differences"])))
    return found


def _validation(board: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Return the scores of each method's runs, derived from the expected best of 1, 2, … of them on the board."""
    found = {}
    for curve in board["expected_best"]:
        if curve["of"] == "seeds":
            count = len(curve["points"])
            shares = [
                [(i / count) ** n - ((i - 1) / count) ** n for i in range(1, count + 1)] for n in range(1, count + 1)
            ]
            scores = np.linalg.solve(np.array(shares), [point["score"] for point in curve["points"]])
            found[curve["method"]] = tuple(map(float, scores))
    return found
