"""What a pre-training costs, what it is charged for, and what its record says of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import graftwork as gw
from graftwork.core.run import RunResult
from graftwork.errors import ConfigError
from graftwork.meters import energy_joules
from graftwork.pretrain import pretraining
from graftwork.pretrain.parallel import Peers
from graftwork.pretrain.training_text import Corpora, TextChoice, open_texts

SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture
def how(tmp_path: Path) -> dict[str, Any]:
    """A tiny network, small batches."""
    (tmp_path / "size.json").write_text(json.dumps(SIZE))
    recipe = {"batch": 8, "length": 24}
    return {"size": str(tmp_path / "size.json"), "recipe": recipe, "validation": 0.1, "runs": tmp_path / "runs"}


class Pair(Peers):
    """Another process, that spends 100 processor seconds between any two exchanges."""

    def __init__(self) -> None:
        super().__init__(0, 2)
        object.__setattr__(self, "exchanges", [])

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        self.__dict__["exchanges"].append("add up")
        tensors[-1].add_(100.0 * self.__dict__["exchanges"].count("add up"))  # its seconds so far come last

    def broadcast(self, number: float) -> float:
        self.__dict__["exchanges"].append("broadcast")
        return number

    def wait(self) -> None:
        pass


def test_the_price_is_of_all_processes_at_no_exchange_of_its_own(
    corpus: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(steps: int) -> tuple[RunResult, Counter[str]]:
        pair = Pair()
        monkeypatch.setattr(pretraining, "peers", lambda: nullcontext(pair))
        return gw.pretrain(corpus, steps=steps, **how).result, Counter(pair.__dict__["exchanges"])

    (_, few), (result, many) = ran(2), ran(6)
    assert many - few == Counter({"add up": 4}), "one a step, of the gradients"
    fit = result.costs["train_cpu_seconds"].value or 0
    assert fit == pytest.approx(700, abs=90)  # it is heard of at every step and at the end
    assert (result.costs["energy_joules"].value or 0) > fit


def test_what_was_spent_before_the_first_step_is_of_the_budget(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    microjoules = {tmp_path: 0}
    (tmp_path / "max_energy_range_uj").write_text("1" + 20 * "0")
    monkeypatch.setattr(energy_joules, "read_zones", lambda: dict(microjoules))

    def dear(asked: TextChoice) -> Corpora:
        microjoules[tmp_path] += 40_000_000
        return open_texts(asked)

    monkeypatch.setattr(pretraining, "open_texts", dear)
    with pytest.raises(ConfigError, match=r"spent before the first step[\s\S]*30 J"):
        gw.pretrain(corpus, objective="word_vectors", budget="30J", runs=tmp_path / "runs")


@pytest.mark.parametrize(
    ("objective", "short"), [("masked", 0), pytest.param("masked:second=sentence_order", 16, marks=pytest.mark.slow)]
)
def test_one_pass_reads_the_corpus_once(objective: str, short: int, corpus: Path, how: dict[str, Any]) -> None:
    how["recipe"] |= {"short_length": short}
    facts = gw.pretrain(corpus, objective=objective, **how).result.facts
    assert facts["passes"] == pytest.approx(1, abs=0.02) and facts["passes"] >= 1
    assert facts["tokens_seen"] > 1.08 * facts["text"]["train"]["tokens"]  # with what frames the rows


def test_validation_is_at_the_length_that_training_ends_with(corpus: Path, how: dict[str, Any]) -> None:
    def held(**recipe: Any) -> Any:
        facts = gw.pretrain(corpus, steps=1, **how | {"recipe": how["recipe"] | recipe}).result.facts
        return facts["held"]["validation"]

    assert held(short_length=16)["length"] == 24
    assert held(short_length=16, short_share=1.0)["length"] == 16
    assert held(batch=4)["rows"] == 4 and held()["rows"] == 8


def test_what_an_objective_remarks_is_a_note(corpus: Path, how: dict[str, Any], tmp_path: Path) -> None:
    cnn = {"embedding": {"dim": 4}, "filters": [[1, 8]], "n_highway": 1, "max_characters_per_token": 50,
           "activation": "relu"}  # fmt: skip
    lstm = {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
    (tmp_path / "size.json").write_text(json.dumps({"char_cnn": cnn, "lstm": lstm}))
    facts = gw.pretrain(corpus, objective="bidirectional:samples=0:predicted=20", steps=1, **how).result.facts
    assert any("not among the 20 that are predicted" in note for note in facts["notes"])
