"""The family of AWD-LSTMs: contracts, methods on it, and folders that are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graftwork.core.backbone import ROLES, Backbone
from graftwork.core.example import Example
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.files import safe_load, write_tensors
from graftwork.methods.full import Full
from graftwork.methods.linear_probe import LinearProbe
from graftwork.methods.ulmfit import Ulmfit
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import check_backbone, check_method, tiny_bench, tiny_dataset
from graftwork.testing.tiny_networks import write_awd_lstm
from graftwork.train.loop import FittedModel

ABSENT = tuple(role for role in ROLES if role not in ("embedding", "block"))


def opened(folder: Path, precision: str = "fp32") -> Backbone:
    return open_backbone(f"hf:{write_awd_lstm(folder)}", precision=precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_contract(tmp_path: Path, precision: str) -> None:
    backbone = opened(tmp_path, precision=precision)
    check_backbone(backbone, absent=ABSENT)
    assert backbone.card.widths == (12, 20, 20, 12)
    assert backbone.card.read_widths(words=False) == (36, 60, 60, 36)
    assert backbone.card.read_widths(words=True) == (12, 20, 20, 12)


def test_a_text_is_read_at_its_end_its_heights_and_its_mean(tmp_path: Path) -> None:
    backbone = opened(tmp_path)
    encoded = backbone.encode([Example("1", {"text": "a good film"}), Example("2", {"text": "bad"})])
    with torch.no_grad():
        features = backbone.features(backbone.collate(encoded, [0, 1]))
    for row, ids in enumerate(encoded.ids):
        states = features.sequence[row, : len(ids)]
        expected = torch.cat([states[-1], states.max(dim=0).values, states.mean(dim=0)])
        torch.testing.assert_close(features.pooled[row], expected)


def test_fresh_weights_are_those_of_the_seed(tmp_path: Path) -> None:
    backbone = opened(tmp_path)
    one, same, other = (open_backbone(f"random:hf:{tmp_path}", precision="fp32", seed=seed) for seed in (1, 1, 2))
    assert one.card == same.card and len({backbone.card.revision, one.card.revision, other.card.revision}) == 3
    assert replace(one.card, revision="", id="") == replace(backbone.card, revision="", id="")
    for a, b, c in zip(*(each.module.parameters() for each in (one, same, other)), strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ulmfit", "full", "linear_probe", "top_layers"])
def test_methods_keep_their_promises(tmp_path: Path, method: str) -> None:
    write_awd_lstm(tmp_path)
    check_method(method, {"k": 1} if method == "top_layers" else {}, backbone=f"hf:{tmp_path}")


@pytest.mark.parametrize("kind", ["classification", "tagging", "choice"])
def test_it_learns_every_kind(tmp_path: Path, kind: str) -> None:
    data = tiny_dataset(kind, rows=40)
    bench = tiny_bench(data, opened(tmp_path), epochs=3)
    fitted = Ulmfit(learning_rate=5e-3).fit(bench)
    assert isinstance(fitted, FittedModel)
    history = fitted.facts["validation_by_epoch"]
    assert fitted.facts["stages"][0]["lowest_block"] == 2 and len(fitted.facts["stages"]) == 3
    assert max(history) >= history[0]
    read = fitted.model.head.out.in_features  # type: ignore[union-attr]
    assert read == (12 if kind == "tagging" else 36)


def test_training_changes_the_network(tmp_path: Path) -> None:
    backbone = opened(tmp_path)
    fitted = Full(learning_rate=1e-3).fit(tiny_bench(tiny_dataset(), backbone))
    before = dict(backbone.module.named_parameters())
    for name, weight in fitted.model.network.named_parameters():
        assert not torch.equal(weight, before[name]), name


def test_a_probe_chooses_among_the_layers(tmp_path: Path) -> None:
    fitted = LinearProbe().fit(tiny_bench(tiny_dataset(), opened(tmp_path)))
    assert set(fitted.facts["cross_validation"]) == {"0", "1", "2", "3"}


def test_adapters_say_why_they_do_not_fit(tmp_path: Path) -> None:
    from graftwork.methods.lora import Lora

    backbone = opened(tmp_path)
    assert "attention.qkv" in Lora().unfit(tiny_dataset().task, backbone.card)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    write_awd_lstm(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_size": 24}))
    with pytest.raises(IncompatibleModule, match=r"layers\.0\.bias_hh"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    weights = safe_load(write_awd_lstm(tmp_path) / "model.safetensors", mapped=False)
    weights.pop("layers.1.weight_hh")
    write_tensors(tmp_path / "model.safetensors", weights)
    with pytest.raises(IncompatibleModule, match=r"layers\.1\.weight_hh: missing"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")


@pytest.mark.parametrize("wrong", [0, "many", None, True])
def test_a_size_that_makes_no_network_is_named(tmp_path: Path, wrong: object) -> None:
    write_awd_lstm(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"layers": wrong}))
    with pytest.raises(ConfigError, match="layers is out of range"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")


def test_a_folder_without_its_tokenizer_is_refused(tmp_path: Path) -> None:
    write_awd_lstm(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(StorageError, match="tokenizer"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")


def test_a_tokenizer_of_another_network_is_refused(tmp_path: Path) -> None:
    write_awd_lstm(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 20}))
    weights = safe_load(tmp_path / "model.safetensors", mapped=False)
    weights["embedding.weight"] = weights["embedding.weight"][:20].clone()
    write_tensors(tmp_path / "model.safetensors", weights)
    with pytest.raises(IncompatibleModule, match="more tokens"):
        open_backbone(f"hf:{tmp_path}", precision="fp32")
