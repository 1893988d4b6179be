"""Measures of a compressed module: its loss of score, shown on validation, its speed, its bytes, its energy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graftwork.backbones.minilm import NAME, package_folder
from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.core.metric import score
from graftwork.core.task import Split, Task
from graftwork.errors import ConfigError
from graftwork.machine.thread_count import limited_to
from graftwork.meters.energy_joules import joules_since, read_zones
from graftwork.module.confidence import words_in
from graftwork.module.exported_folder import is_exported
from graftwork.module.module_place import CARRIED
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import FRESH, backbone_folder, whole_name
from graftwork.registry import kinds, metrics
from graftwork.run.score_interval import Evidence, RowTally, weigh_together

CERTAINTY = 0.95  # confidence level of the one-sided interval of a loss
ROUNDING = 1e-9  # of a difference between two scores
BATCH, REPEATS, ROWS_TIMED = 32, 5, 256
ANSWERS = 15  # single predictions that are timed


@dataclass(frozen=True)
class ScoreLoss:
    """The loss of score by a compression, as fractions: positive if the compressed module is worse."""

    score: float  # of the compressed module
    mean: float  # the original's score minus the compressed module's
    most: float  # upper end of the one-sided 95 % interval of the loss

    def within(self, allowed: float) -> bool:
        """Return whether the loss is shown to be at most `allowed`; 12 of 600 rows are 2 of 100, but for rounding."""
        return self.most <= allowed + ROUNDING

    def as_json(self) -> dict[str, float]:
        """Return it as JSON."""
        return {"score": self.score, "loss": self.mean, "loss_at_most": self.most}


@dataclass(frozen=True)
class RelativeSpeed:
    """The speed of a module relative to the one it was made from, timed in alternation on the same texts."""

    ratio: float  # predictions per processor second, as a multiple of the original's
    joules_ratio: float | None = None  # energy of a prediction, as a share of the original's; None: not measured


def loss_of(task: Task, split: Split, before: Logits, after: Logits) -> ScoreLoss:
    """Return the loss of the headline metric, with its bound from a paired bootstrap over the rows.

    N rows without a changed prediction do not prove that there is no loss, so the bound is never below
    1 - 0.05^(1/N), about 3/N.
    """
    first, second = evidence(task, split, before, after)
    drawn = float(np.percentile(first.draws - second.draws, 100 * CERTAINTY))
    return ScoreLoss(second.score, first.score - second.score, max(drawn, least_shown(len(split.examples))))


def evidence(task: Task, split: Split, *logits: Logits, by: str = "") -> list[Evidence]:
    """Return, for each of `logits`, the score and its bootstrap draws, from the same resampled rows; `by` names the
    metric, by default the headline metric."""
    kind, metric = kinds.get(task.kind), metrics.get(by or task.metrics[0])
    tallies = [RowTally.of(metric.statistics(split.targets, kind.predictions(one, task), task)) for one in logits]
    return weigh_together([(tally, metric) for tally in tallies])


def scores_on(task: Task, split: Split, logits: Logits) -> dict[str, float]:
    """Return the score of each metric of the task."""
    predictions = kinds.get(task.kind).predictions(logits, task)
    return {name: score(metrics.get(name), split.targets, predictions, task) for name in task.metrics}


def least_shown(rows: int) -> float:
    """Return the lowest bound on the loss, a fraction, that so many rows can show: if no prediction changes."""
    return float(1 - (1 - CERTAINTY) ** (1 / rows))


def rows_needed(allowed: float) -> int:
    """Return how many rows without a changed prediction show a loss of at most `allowed`, a fraction above 0."""
    return 1 if allowed >= 1 else int(np.ceil(np.log(1 - CERTAINTY) / np.log(1 - allowed)))


def pace(
    original: TaskModule, compressed: TaskModule, examples: Sequence[Example], joules: bool = False
) -> RelativeSpeed:
    """Return the speed of `compressed` relative to `original`, timed in alternation on batches of 32 texts of similar
    length, with one thread.

    Times are processor times, which other programs hardly affect; the result is the median ratio of five repeats. With
    `joules` the processor's energy counters are read too; raises `ConfigError` if they can't be.
    """
    if joules and not read_zones():
        raise ConfigError(
            "the processor's energy counters can't be read here",
            where="/sys/class/powercap",
            do="compress for speed: without counters energy is taken as proportional to processor time",
        )
    rows = sorted(examples[:ROWS_TIMED], key=words_in)
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    ratios, energies = [], []
    with limited_to(1):
        for module in (original, compressed):
            module.fitted.logits(batches[-1])  # warm: memory and packed weights
        for _ in range(REPEATS):
            spent = [[_spent(one, batch) for one in (original, compressed)] for batch in batches]
            first, second = (sum(turn[place][0] for turn in spent) for place in (0, 1))
            drawn = [sum(turn[place][1] or 0.0 for turn in spent) for place in (0, 1)]
            ratios.append(first / max(second, 1e-9))
            energies.append(drawn[1] / drawn[0] if joules and all(drawn) else None)
    read = [one for one in energies if one is not None]
    return RelativeSpeed(statistics.median(ratios), statistics.median(read) if read else None)


def latency_ratio(original: TaskModule, compressed: TaskModule, examples: Sequence[Example]) -> float:
    """Return the processor time of one prediction, a text of median length with one thread, as a share of the
    original's: the median of `ANSWERS` ratios, timed in alternation."""
    one = [sorted(examples, key=words_in)[len(examples) // 2]]
    pairs = []
    with limited_to(1):
        for module in (original, compressed):
            module.fitted.logits(one)  # warm
        for _ in range(ANSWERS):
            (first, _), (second, _) = (_spent(module, one) for module in (original, compressed))
            pairs.append(second / max(first, 1e-9))
    return statistics.median(pairs)


def _spent(module: TaskModule, batch: Sequence[Example]) -> tuple[float, float | None]:
    """Return processor seconds and joules of predicting a batch."""
    mark, began = (time.monotonic(), read_zones()), time.process_time()
    module.fitted.logits(batch)
    return time.process_time() - began, joules_since(mark)


def stored_with_backbone(module: TaskModule) -> int:
    """Return the bytes of the module's files, plus those of the backbone's files if it does not contain them."""
    own = _bytes_in(module.folder)
    told = module.description["backbone"]
    if told is None or told["id"] == CARRIED or is_exported(module.folder):
        return own
    name = whole_name(told["id"])
    folder = package_folder() if name == NAME else backbone_folder(name.removeprefix(FRESH))
    if folder is not None:
        return own + _bytes_in(folder)
    assert module.backbone is not None
    return own + sum(one.numel() * one.element_size() for one in module.backbone.module.parameters())


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
