"""Real images, sounds and a real network: the data are as their sources describe them, and the probe is as good."""

from __future__ import annotations

from pathlib import Path

import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.pretrained.open_backbone import open_backbone

pytestmark = pytest.mark.real


def digits(shared: Path) -> Task:
    folder = shared / "data" / "free_spoken_digits"
    return Task.from_file(folder / "train_list.tsv", test=folder / "test_list.tsv", sound="file")


def test_sets_are_as_their_sources_say(shared: Path) -> None:
    folder = shared / "data" / "hymenoptera"
    data = load(Task.from_file(folder / "train", test=folder / "val"))
    assert data.report["classes"]["test"] == {"ants": 70, "bees": 83}
    assert sum(data.report["rows"].values()) == 244 + 153
    spoken = load(digits(shared))
    assert spoken.report["media"]["test"]["rates"] == {"8000": 300}


@pytest.mark.slow
def test_a_baseline_knows_digits(shared: Path, tmp_path: Path) -> None:
    run = gw.train(digits(shared), method="log_mel", runs=tmp_path)
    assert run.result.scores["accuracy"] >= 0.90


@pytest.mark.slow
def test_a_probe_tells_ants_from_bees(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "hymenoptera"
    task = Task.from_file(folder / "train", test=folder / "val")
    backbone = f"hf:{shared / 'fixtures' / 'weights' / 'mobilenet_v2_1.0_224'}"
    assert open_backbone(backbone, precision="fp32").card.widths[-1] == 1280
    run = gw.train(task, method="linear_probe", backbone=backbone, runs=tmp_path)
    assert run.result.scores["accuracy"] >= 0.93
