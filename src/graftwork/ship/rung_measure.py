"""Measures of a compressed module: its loss of score, shown on validation, its speed, its bytes, its energy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from graftwork.backbones.minilm import NAME, package_folder
from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.core.task import Split, Task
from graftwork.errors import ConfigError
from graftwork.meters.energy_joules import joules_since, read_zones
from graftwork.module.confidence import words_in
from graftwork.module.exported_folder import is_exported
from graftwork.module.module_place import CARRIED
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import FRESH, backbone_folder
from graftwork.registry import kinds, metrics
from graftwork.run.score_interval import Evidence, RowTally, weigh_together

CERTAINTY = 0.95  # of the one-sided interval of a loss
BATCH, REPEATS, ROWS_TIMED = 32, 5, 256
ANSWERS = 15  # single ones that are timed


@dataclass(frozen=True)
class ScoreLoss:
    """The loss of score by a compression, as fractions: positive if the compressed module is worse."""

    score: float  # of the compressed module
    mean: float  # the module's score less it
    most: float  # the loss that is not exceeded, with a certainty of 95 %

    def as_json(self) -> dict[str, float]:
        """Return it as JSON."""
        return {"score": self.score, "loss": self.mean, "loss_at_most": self.most}


@dataclass(frozen=True)
class RelativeSpeed:
    """The speed of a module beside that of the one it was made of, measured in turn on the same texts."""

    ratio: float  # predictions per processor second, as a multiple of the original's
    joules_ratio: float | None = None  # energy of a prediction, as a share of the original's; None: not read


def loss_of(task: Task, split: Split, before: Logits, after: Logits) -> ScoreLoss:
    """Return the loss by the headline metric, from a paired bootstrap over the rows.

    Rows that are all answered alike do not show that no other would be: of N rows without a loss the bound is
    1 - 0.05^(1/N), about 3/N.
    """
    first, second = evidence(task, split, before, after)
    drawn = float(np.percentile(first.draws - second.draws, 100 * CERTAINTY))
    return ScoreLoss(second.score, first.score - second.score, max(drawn, least_shown(len(split.examples))))


def evidence(task: Task, split: Split, *logits: Logits, by: str = "") -> list[Evidence]:
    """Return the evidence for each of `logits`, on the same draws of rows, by the metric `by`: the headline metric if
    none is named."""
    kind, metric = kinds.get(task.kind), metrics.get(by or task.metrics[0])
    tallies = [RowTally.of(metric.statistics(split.targets, kind.predictions(one, task), task)) for one in logits]
    return weigh_together([(tally, metric) for tally in tallies])


def least_shown(rows: int) -> float:
    """Return the smallest loss, a fraction, that so many rows can show not to be exceeded: where all are alike."""
    return float(1 - (1 - CERTAINTY) ** (1 / rows))


def rows_needed(allowed: float) -> int:
    """Return the number of rows without a loss that show one of at most `allowed`, a fraction above 0."""
    return 1 if allowed >= 1 else int(np.ceil(np.log(1 - CERTAINTY) / np.log(1 - allowed)))


def pace(
    original: TaskModule, compressed: TaskModule, examples: Sequence[Example], joules: bool = False
) -> RelativeSpeed:
    """Time both in turn on each batch, of 32 texts of near-equal lengths, with one thread.

    Time is that of the processor, which other programs do not change; of five repeats the median ratio is taken. With
    `joules` the processor's counters are read too: raises `ConfigError` where they can't be.
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
    with one_thread():
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
    """Return the processor time of one answer as a share of the original's: one thread, a text of median length, the
    median of as many as `ANSWERS` in turn."""
    one = [sorted(examples, key=words_in)[len(examples) // 2]]
    pairs = []
    with one_thread():
        for module in (original, compressed):
            module.fitted.logits(one)  # warm
        for _ in range(ANSWERS):
            (first, _), (second, _) = (_spent(module, one) for module in (original, compressed))
            pairs.append(second / max(first, 1e-9))
    return statistics.median(pairs)


def _spent(module: TaskModule, batch: Sequence[Example]) -> tuple[float, float | None]:
    """Return processor seconds and joules of answering a batch."""
    mark, began = (time.monotonic(), read_zones()), time.process_time()
    module.fitted.logits(batch)
    return time.process_time() - began, joules_since(mark)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread; a network of onnxruntime keeps the number that it was opened with."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def stored_with_backbone(module: TaskModule) -> int:
    """Return the bytes of the module's files and, where it does not carry it, of its backbone's."""
    own = _bytes_in(module.folder)
    told = module.description["backbone"]
    if told is None or told["id"] == CARRIED or is_exported(module.folder):
        return own
    folder = package_folder() if told["id"] == NAME else backbone_folder(told["id"].removeprefix(FRESH))
    if folder is not None:
        return own + _bytes_in(folder)
    assert module.backbone is not None
    return own + sum(one.numel() * one.element_size() for one in module.backbone.module.parameters())


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
