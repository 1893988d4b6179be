"""ULMFiT's three stages, end to end: general text, the task's text, the task."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.io.files import file_digest
from graftwork.pretrain.objectives.awd_lstm import AwdLstmObjective
from graftwork.pretrain.pretraining import Pretrained
from graftwork.pretrained.open_backbone import open_backbone

SIZE = {"embedding_size": 16, "hidden_size": 24, "layers": 2, "max_length": 40}
RECIPE = {"batch": 8, "length": 20, "learning_rate": 1e-2}


@pytest.fixture
def general(corpus: Path, tmp_path: Path) -> Pretrained:
    """Eight steps of the first stage."""
    (tmp_path / "size.json").write_text(json.dumps(SIZE))
    return gw.pretrain(
        corpus, objective="awd_lstm", size=str(tmp_path / "size.json"), steps=8, recipe=RECIPE, validation=0.1,
        runs=tmp_path / "runs", prompt="the cat",
    )  # fmt: skip


def test_three_stages(general: Pretrained, corpus: Path, tmp_path: Path) -> None:
    texts = [line for line in corpus.read_text().splitlines() if "garden" in line]
    (tmp_path / "target.txt").write_text("\n".join(texts * 4) + "\n")
    target = gw.pretrain(
        tmp_path / "target.txt", objective="awd_lstm", backbone=str(general.folder), steps=12,
        recipe={"batch": 8, "length": 20}, validation=0.1, runs=tmp_path / "runs",
    )  # fmt: skip
    first, second = general.result.facts, target.result.facts
    assert first["after"]["validation"]["nats"] < first["before"]["validation"]["nats"]
    assert second["before"]["validation"]["nats"] < first["before"]["validation"]["nats"] - 0.1  # it knows something
    assert second["after"]["validation"]["nats"] < second["before"]["validation"]["nats"]
    assert second["weights_sha256"] != first["weights_sha256"] and not second["added"]
    assert target.result.costs["train_flops"].value is not None
    spec = json.loads((target.folder / "spec.json").read_text())
    assert (spec["recipe"]["schedule"], spec["method"]["divisor"]) == ("slanted", 2.6)
    assert any("sample" in line for line in (general.folder / "log.jsonl").read_text().splitlines())

    rows = [f"{line},{'ab'[line.startswith('the')]}" for line in corpus.read_text().splitlines()[:80]]
    (tmp_path / "data.csv").write_text("\n".join(["text,label", *rows]))
    fitted = gw.train(
        tmp_path / "data.csv", method="ulmfit", backbone=str(target.folder), runs=tmp_path / "runs",
        epochs=3, precision="fp32",
    )  # fmt: skip
    facts = fitted.result.facts
    assert [stage["lowest_block"] for stage in facts["stages"]] == [1, 0]
    assert facts["stages"][1]["rate_of_lowest_block"] < facts["stages"][0]["rate_of_lowest_block"]


def test_the_folder_of_a_stage_is_a_backbone(general: Pretrained) -> None:
    opened = open_backbone(str(general.folder), precision="fp32")
    assert (opened.card.family, opened.card.blocks, opened.card.pooling) == ("awd_lstm", 2, "concat")
    assert opened.card.widths == (16, 24, 16)
    assert general.result.facts["backbone"]["revision"] == opened.card.revision
    assert general.result.facts["weights_sha256"] == file_digest(general.backbone / "model.safetensors")


def test_the_second_stage_has_the_rates_of_ulmfit() -> None:
    fresh, continuing = AwdLstmObjective.recipe, AwdLstmObjective.continuing
    assert (fresh.schedule, continuing.schedule, continuing.warm_up) == ("linear", "slanted", 0.1)
    assert replace(continuing, schedule="linear") == fresh
