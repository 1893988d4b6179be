"""What a pre-training costs, what it is charged for, and what its record says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.errors import ConfigError
from graftwork.meters import energy_joules
from graftwork.pretrain import pretraining
from graftwork.pretrain.material import Asked, Texts
from graftwork.pretrain.parallel import JointWatch, Peers

SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture
def how(tmp_path: Path) -> dict[str, Any]:
    """A tiny network, small batches."""
    (tmp_path / "size.json").write_text(json.dumps(SIZE))
    recipe = {"batch": 8, "length": 24}
    return {"size": str(tmp_path / "size.json"), "recipe": recipe, "validation": 0.1, "runs": tmp_path / "runs"}


def test_the_price_is_of_all_processes(corpus: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def meet(watch: JointWatch, peers: Peers) -> None:
        watch._others += 100.0

    monkeypatch.setattr(JointWatch, "meet", meet)
    costs = gw.pretrain(corpus, steps=6, **how).result.costs
    fit = costs["train_cpu_seconds"].value or 0
    assert fit == pytest.approx(700, abs=90)  # they meet after every step and at the end
    assert (costs["energy_joules"].value or 0) > fit


def test_what_was_spent_before_the_first_step_is_of_the_budget(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    microjoules, opened = {tmp_path: 0}, pretraining.open_texts
    (tmp_path / "max_energy_range_uj").write_text("1" + 20 * "0")
    monkeypatch.setattr(energy_joules, "read_zones", lambda: dict(microjoules))

    def dear(asked: Asked) -> Texts:
        microjoules[tmp_path] += 40_000_000
        return opened(asked)

    monkeypatch.setattr(pretraining, "open_texts", dear)
    with pytest.raises(ConfigError, match=r"spent before the first step[\s\S]*30 J"):
        gw.pretrain(corpus, objective="word_vectors", budget="30J", runs=tmp_path / "runs")
