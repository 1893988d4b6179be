"""A backbone that was written as a folder answers as the open one did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.io.files import read_json, safe_load
from graftwork.nn.int8_linear import Int8Map
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import as_transformer, write_backbone

EXAMPLES = [Example("1", {"text_a": "a film", "text_b": "It was warm!"}), Example("2", {"text_a": "", "text_b": "x y"})]


def states(backbone: TransformerBackbone) -> torch.Tensor:
    encoded = backbone.encode(EXAMPLES)
    with torch.inference_mode():
        return backbone.states(backbone.collate(encoded, range(len(encoded.ids))))[-1].float()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_opens_with_equal_answers(tmp_path: Path, precision: str) -> None:
    backbone = as_transformer(open_backbone("tiny_text", precision=precision))
    backbone.card = replace(backbone.card, towers=2, max_length=9)
    backbone.__dict__.pop("reader", None)
    write_backbone(backbone, tmp_path / "backbone")
    again = as_transformer(open_backbone(f"hf:{tmp_path / 'backbone'}", precision=precision))
    assert torch.equal(states(again), states(backbone))
    read = ("pooling", "towers", "max_length", "width", "blocks", "lacks")
    assert [getattr(again.card, name) for name in read] == [getattr(backbone.card, name) for name in read]


def test_int8_takes_a_quarter_and_is_read_as_int8(tmp_path: Path) -> None:
    backbone = as_transformer(open_backbone("tiny_text", precision="fp32"))
    for how in ("fp32", "int8"):
        write_backbone(backbone, tmp_path / how, stored_as=how)
    sizes = [(tmp_path / how / "model.safetensors").stat().st_size for how in ("fp32", "int8")]
    assert sizes[1] < sizes[0] / 2  # a tiny network has many biases and norms
    assert safe_load(tmp_path / "int8" / "model.safetensors")["encoder.layer.0.output.dense.weight"].dtype == torch.int8
    again = as_transformer(open_backbone(f"hf:{tmp_path / 'int8'}", precision="fp32"))
    assert isinstance(next(iter(again.sites("mlp.up").values())), Int8Map)
    before, after = states(backbone), states(again)
    assert not torch.equal(before, after) and torch.cosine_similarity(before.flatten(), after.flatten(), 0) > 0.99


def test_what_is_no_text_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't be written"):
        as_transformer(None)


def test_config_says_what_transformers_reads(tmp_path: Path) -> None:
    write_backbone(open_backbone("tiny_text", precision="fp32"), tmp_path / "backbone", stored_as="fp16")
    told = read_json(tmp_path / "backbone" / "config.json")
    assert told["model_type"] == "bert" and told["architectures"] == ["BertModel"]
    assert told["graftwork"]["stored_as"] == "fp16"
