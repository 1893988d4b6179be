"""A run that is interrupted after any step ends, bit for bit, as one that was not."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.meter import Phase
from graftwork.core.method import Workbench
from graftwork.core.opening import open_backbone
from graftwork.core.ragged import flat
from graftwork.core.run import Recipe
from graftwork.core.task import Dataset
from graftwork.registry import methods
from graftwork.run import keeping
from graftwork.run.keeping import Keeping
from graftwork.run.methods import parse_method
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.checkpoint import Checkpoints

SHORT = Recipe(epochs=3, batch_size=8)
OpenShop = Callable[..., Any]
KINDS = ("classification", "multilabel", "regression", "tagging", "span", "choice")


class Killed(BaseException):
    """Stands for a kill in the middle of a run: nothing cleans up."""


@pytest.fixture(autouse=True)
def after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY_SECONDS", 0.0)


class Attempts:
    """Fits of one method to one data set, each in a workbench of its own; those in `folder` go on from each other."""

    def __init__(self, data: Dataset, backbone: Any, method: str, **recipe: Any):
        self.data, self.backbone, self.method, self.recipe = data, backbone, parse_method(method).method, recipe

    def fit(self, folder: Path, kill_at: int | None = None) -> tuple[Any, io.StringIO]:
        """Fitted, and its log; with `kill_at` it is killed after so many steps of its own."""
        bench, lines, steps = tiny_bench(self.data, self.backbone, epochs=4), io.StringIO(), 0
        bench.recipe = {**bench.recipe, **self.recipe}
        bench.log = lambda line: lines.write(json.dumps(line) + "\n") and None

        def progress(done: float, text: str) -> None:
            nonlocal steps
            steps += 1
            if steps == kill_at:
                raise Killed

        bench.progress, bench.keeper = progress, Keeping(Checkpoints(folder, "run", {}), lines, bench)
        return self.method.fit(bench), lines

    def killed(self, folder: Path, kill_at: int) -> None:
        with pytest.raises(Killed):
            self.fit(folder, kill_at)


def without_times(lines: io.StringIO) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [{name: value for name, value in line.items() if name != "time"} for line in found]


def require_equal(attempts: Attempts, whole: Path, broken: Path) -> None:
    """What comes of the attempts in the folder `broken` is what comes of one that nothing interrupts."""
    (one, lines), (other, more) = attempts.fit(whole), attempts.fit(broken)
    deltas = one.delta(), other.delta()
    assert deltas[0].keys() == deltas[1].keys()
    for name, tensor in deltas[0].items():
        assert torch.equal(tensor, deltas[1][name]), name
    assert np.array_equal(flat(one.logits(attempts.data.test.examples)), flat(other.logits(attempts.data.test.examples)))
    assert json.dumps(one.facts, default=str) == json.dumps(other.facts, default=str)
    assert without_times(lines) == without_times(more)


METHODS = ("full", "full:embeddings=frozen", "top_layers:k=1", "adapter", "lora", "bitfit", "ulmfit", "contrastive")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_on_exactly(method: str, precision: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(), open_backbone("tiny_text", precision=precision), method)
    for kill_at in (1, 4, 2):  # in the first epoch; in the second; and at the end of that
        attempts.killed(tmp_path / "broken", kill_at)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_on_exactly(kind: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(kind), open_backbone("tiny_text", precision="fp32"), "full")
    attempts.killed(tmp_path / "broken", 5)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("step", range(1, 13))
def test_every_step_of_gradual_unfreezing_can_be_the_last(step: int, precision: str, tmp_path: Path) -> None:
    attempts = Attempts(tiny_dataset(), open_backbone("tiny_text", precision=precision), "ulmfit", kept_share=0.5)
    attempts.killed(tmp_path / "broken", step)
    require_equal(attempts, tmp_path / "whole", tmp_path / "broken")
