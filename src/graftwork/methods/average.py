"""Average: the mean of the weights of several trainings from one start
(Wortsman et al. 2022, "Model soups", arXiv:2203.05482)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.checkpoint import NothingKept
from graftwork.core.meter import Phase
from graftwork.core.method import Entries, Fitted, NetworkMethod, OfKinds, Setting, Workbench, unfit
from graftwork.core.part_settings import TOLD
from graftwork.core.task import Task
from graftwork.data.splits.batch_order import epoch_batches
from graftwork.registry import methods
from graftwork.train.seeds import derive
from graftwork.train.wrapper_method import (
    OWN_VERSION,
    OtherReading,
    WrapperMethod,
    innermost,
    method_by,
    takes_a_recipe,
    unfit_over,
)


@methods.register("average")
@dataclass(frozen=True)
class Average(WrapperMethod):
    """The method `by`, trained `runs` times from the same start; predictions cost what those of one training cost.

    Training n draws everything except the initial weights from a seed that is higher by n.
    """

    runs: int = 3  # trainings; the first is the run of `by` with the same seed
    by: str = field(default="full", metadata={TOLD: True})  # the method, with its hyper-parameters

    BOARD: ClassVar[Entries] = ()  # on a board only if requested: it takes the time of `runs` trainings
    uses_backbone: ClassVar[bool] = True

    @property
    def VERSION(self) -> int:
        """A version that changes with that of `by`; `OWN_VERSION` counts twice, as this method is at version 2."""
        return super().VERSION + OWN_VERSION

    @property
    def KINDS(self) -> tuple[str, ...]:
        """The kinds whose outputs are not logits, such as generation, that `by` supports."""
        below = method_by(self.by)
        return below.KINDS if isinstance(below, OfKinds) else ()

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless there are two trainings or more, and `by` fits and is trained by gradient."""
        if self.runs < 2:
            return f"runs must be 2 or more, not {self.runs}"
        below = method_by(self.by)
        trained = innermost(below) if isinstance(below, OtherReading) else below
        if not (isinstance(trained, NetworkMethod) and takes_a_recipe(trained)):
            return unfit_over(self.by) or f"{self.by} is not trained in steps, so each of its runs is the same"
        return unfit(below, task, card)

    def fit(self, bench: Workbench) -> Fitted:
        """Fit `by` with each seed, reusing stored runs, and return it with the mean of the weights."""
        first, facts = self._trained(bench, 0)
        precision = {name: tensor.dtype for name, tensor in first.items()}
        total = {name: tensor.double() for name, tensor in first.items()}
        for number in range(1, self.runs):  # one at a time: each delta may be as large as the network
            delta, told = self._trained(bench, number)
            for name, tensor in delta.items():
                total[name] += tensor.double()
            facts = {name: fact for name, fact in facts.items() if told.get(name) == fact}
        mean = {name: (tensor / self.runs).to(precision[name]) for name, tensor in total.items()}
        return self.restore(bench.setting, mean, facts | {"averaged": self.runs})

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Fitted:
        """Restore the method `by` with these weights."""
        return method_by(self.by).restore(setting, delta, facts)

    def _trained(self, bench: Workbench, number: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the weights and facts of one training. A stored run is reused, charged and logged like a new one."""
        found = bench.earlier(self.by, number) if bench.earlier is not None else None
        if found is None:
            made = method_by(self.by).fit(self._bench(bench, number))
            return _tensors(made.delta()), dict(made.facts)
        bench.charged.add(found.time)
        bench.tally.include(found.tally)
        for line in found.log:
            bench.log(line)
        return _tensors(found.delta), dict(found.facts)

    def _bench(self, bench: Workbench, number: int) -> Workbench:
        """Return the bench of one training: all have the same initial weights, and shared work is charged once."""

        def progress(done: float, text: str) -> None:
            bench.progress((number + done) / self.runs, f"training {number + 1} of {self.runs}, {text}")

        own = replace(bench, progress=progress, keeper=NothingKept(), training=number)
        if number == 0:
            return own
        order = partial(epoch_batches, bench.recipe, derive(own.seed_of("order"), "order"))
        return replace(own, order=order, charged=Phase())


def _tensors(delta: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(array) for name, array in delta.items()}
