"""A module that carries its backbone: folded, moved, spoilt, and refused by a bank."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graftwork.bank.bank import Bank
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.module.module_files import CARRIED
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.merge import Merge
from graftwork.ship.folding import folded_network, own_network, unfoldable
from graftwork.ship.standalone import save_standalone

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("full", "classification"),
        ("lora", "classification"),
        pytest.param("ia3", "classification", marks=pytest.mark.slow),
        ("bitfit", "classification"),
        pytest.param("top_layers:k=1", "classification", marks=pytest.mark.slow),
        pytest.param("full", "tagging", marks=pytest.mark.slow),
        pytest.param("lora", "multilabel", marks=pytest.mark.slow),
        pytest.param("lora", "regression", marks=pytest.mark.slow),
    ],
)
def test_merged_it_answers_as_before(tmp_path: Path, teacher: Teacher, method: str, kind: str) -> None:
    module, data = teacher(kind, method)
    facts = Merge().apply(module, tmp_path / "a", data, seed=0)
    shutil.move(tmp_path / "a", tmp_path / "moved")
    made = TaskModule.load(tmp_path / "moved")
    assert facts["largest_difference"] < 1e-4 and made.description["backbone"]["id"] == CARRIED
    texts = data.train.examples
    before, after = module.fitted.logits(texts), made.fitted.logits(texts)
    assert np.abs(np.asarray(getattr(before, "flat", before)) - np.asarray(getattr(after, "flat", after))).max() < 1e-4
    assert Merge().unfit(made) == "it is one network already"


def test_adapters_that_are_no_change_of_weights_stay(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher(method="adapter:size=4")
    assert "can't be added to the weights of the network: Bottleneck" in unfoldable(module) and Merge().unfit(module)
    with pytest.raises(ConfigError, match="can't be made one network"):
        folded_network(module)
    network, head = own_network(module)
    made = save_standalone(module, tmp_path / "own", network, head=head)
    assert head is None and made.description["method"] == module.description["method"]
    texts = data.validation.examples
    assert np.abs(made.fitted.logits(texts) - module.fitted.logits(texts)).max() < 1e-5


@pytest.fixture(scope="module")
def whole(teacher: Teacher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    module, data = teacher()
    Merge().apply(module, folder := tmp_path_factory.mktemp("merged") / "module", data, seed=0)
    return folder


def test_a_changed_backbone_is_refused(tmp_path: Path, whole: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "module")
    told = read_json(folder / "module.json")
    write_json(folder / "module.json", told | {"backbone": told["backbone"] | {"revision": "0" * 64}})
    with pytest.raises(IncompatibleModule, match="has changed since it was saved"):
        TaskModule.load(folder)


def test_a_missing_backbone_and_a_link_are_refused(tmp_path: Path, whole: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "module")
    told = read_json(folder / "module.json")
    write_json(folder / "module.json", told | {"backbone": told["backbone"] | {"revision": "1" * 64}})  # not one open
    shutil.move(folder / "backbone", tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        TaskModule.load(folder)
    os.symlink(tmp_path / "elsewhere", folder / "backbone")
    with pytest.raises(StorageError, match="link"):
        TaskModule.load(folder)


def test_a_bank_takes_it_only_where_the_backbone_is_its_own(tmp_path: Path, whole: Path) -> None:
    with pytest.raises(IncompatibleModule, match="carries its own backbone"):
        Bank.create(tmp_path / "empty.bank").add(whole)
    bank = Bank.create(tmp_path / "own.bank", backbone=f"hf:{whole / 'backbone'}", precision="fp32")
    entry = bank.add(whole)
    alone = TaskModule.load(whole)
    answers = (bank.predict([(entry.name, "a warm film")])[0], alone.predict(["a warm film"])[0])
    assert answers[0]["probabilities"] == pytest.approx(answers[1]["probabilities"], abs=1e-5)
