"""Folders of our own, what methods make of ELMo, and passes that are kept by the words that were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.backbones.elmo import open_bilm, save_bilm
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.files import read_json, safe_load, write_json, write_tensors
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import check_backbone, check_method
from graftwork.testing.tiny_networks import tiny_bilm
from graftwork.train.frozen_pass import batches_of_pass
from graftwork.train.prefix_store import PassSpec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_bilm(tiny_bilm(), tmp_path, {"softmax.bias": torch.ones(3)})
    return tmp_path


def pooled(backbone: Backbone, *texts: str) -> torch.Tensor:
    encoded = backbone.encode([Example(f"x/{row}", {"text": text}) for row, text in enumerate(texts)])
    with torch.no_grad():
        return backbone.features(backbone.collate(encoded, range(len(texts)))).pooled


def test_what_is_saved_is_what_is_opened(folder: Path) -> None:
    network, beside = open_bilm(folder)
    assert network.shape == tiny_bilm().shape
    assert list(beside) == ["softmax.bias"]
    for name, tensor in tiny_bilm().state_dict().items():
        assert torch.equal(network.state_dict()[name], tensor), name


def test_in_bf16_and_from_random_weights(folder: Path) -> None:
    half = open_backbone(f"hf:{folder}", precision="bf16")
    check_backbone(half, absent=half.card.lacks)
    whole, fresh = (open_backbone(f"{form}hf:{folder}", precision="fp32", seed=3) for form in ("", "random:"))
    assert whole.card.revision != fresh.card.revision
    assert not torch.equal(pooled(whole, "a play"), pooled(fresh, "a play"))
    again = open_backbone(f"random:hf:{folder}", precision="fp32", seed=3)
    assert torch.equal(pooled(again, "a play"), pooled(fresh, "a play"))


def test_only_words_are_read(folder: Path) -> None:
    """Of a text the mean over its words; of none zeros."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32")
    inputs = backbone.collate(backbone.encode([Example("x/1", {"text": "a good play"})]), [0])
    expected = backbone.states(inputs)[-1][0, 1:4].mean(dim=0)
    torch.testing.assert_close(pooled(backbone, "a good play")[0], expected.detach())
    assert pooled(backbone, "", "a play")[0].tolist() == [0.0] * 32


def test_a_pass_is_known_by_its_words(folder: Path) -> None:
    backbone = open_backbone(f"hf:{folder}", precision="fp32")
    keys = []
    for text in ("a play", "a plaz", "a play"):
        encoded = backbone.encode([Example("x/1", {"text": text})])
        keys.append(PassSpec.of(backbone, encoded, None, batches_of_pass(encoded, None), {}).key)
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"), [("scalar_mix", {}), ("top_layers", {"k": 1}), ("full", {}), ("ulmfit", {})]
)
def test_methods_fit(folder: Path, name: str, settings: dict[str, Any]) -> None:
    check_method(name, settings, backbone=f"hf:{folder}")


def test_what_does_not_fit_says_so(folder: Path) -> None:
    with pytest.raises(AssertionError, match="have no attention"):
        check_method("lora", backbone=f"hf:{folder}")


def _other_sizes(folder: Path) -> None:
    config = read_json(folder / "config.json")
    config["lstm"]["dim"] = 8
    write_json(folder / "config.json", config)


def _not_whole(folder: Path) -> None:
    tensors = safe_load(folder / "model.safetensors", mapped=False)
    del tensors["words.characters"]
    write_tensors(folder / "model.safetensors", tensors)


def _no_sizes(folder: Path) -> None:
    write_json(folder / "config.json", {"model_type": "elmo"})


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (_other_sizes, IncompatibleModule, "not those of config.json"),
        (_not_whole, IncompatibleModule, "words.characters is missing"),
        (_no_sizes, ConfigError, "not the sizes of an ELMo network"),
        (lambda folder: (folder / "model.safetensors").unlink(), StorageError, "no weights"),
    ],
)
def test_bad_folders_are_named(folder: Path, harm: Any, error: type[Exception], message: str) -> None:
    harm(folder)
    with pytest.raises(error, match=message):
        open_backbone(f"hf:{folder}", precision="fp32")
