"""The encoder of T5 and mT5: loaded without the decoder, and its position bias in runs that start at any block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoTokenizer,
    MT5Config,
    MT5EncoderModel,
    MT5ForConditionalGeneration,
    PreTrainedTokenizerFast,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from graftwork.core.example import Example
from graftwork.core.model import Model
from graftwork.errors import IncompatibleModule, StorageError
from graftwork.methods.bitfit import BitFit
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import check_backbone, check_method, tiny_dataset
from graftwork.testing.tiny_networks import WORDS

PIECES = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((f"\u2581{word}", -2.0) for word in WORDS)]
PIECES += [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz"]
SHAPE: dict[str, Any] = {
    "vocab_size": len(PIECES) + 4, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 3,
    "num_decoder_layers": 2, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
}  # fmt: skip
PLAIN, GATED = T5Config(**SHAPE), T5Config(**SHAPE, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
CONFIGS: dict[str, T5Config | MT5Config] = {"plain": PLAIN, "gated": GATED, "mt5": MT5Config(**SHAPE)}
TEXTS = ["the film was so good", "sad", "it was a warm film is it so fine or cold", ""]
EXAMPLES = [Example(f"train/{i}", {"text": text}) for i, text in enumerate(TEXTS)]


def save_t5(folder: Path, config: T5Config | MT5Config = PLAIN) -> Path:
    """A whole T5 as save_pretrained writes it, with a Unigram tokenizer that ends texts by </s>."""
    tokenizer = Tokenizer(Unigram(PIECES, unk_id=2))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    make = MT5ForConditionalGeneration if isinstance(config, MT5Config) else T5ForConditionalGeneration
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = make(config)
        for layer in network.modules():
            if type(layer).__name__.endswith("LayerNorm"):
                torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    network.save_pretrained(folder)
    return folder


def opened(folder: Path) -> TransformerBackbone:
    """Opened by its name, in fp32."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32")
    assert isinstance(backbone, TransformerBackbone)
    return backbone


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain T5, which no test changes."""
    return save_t5(tmp_path_factory.mktemp("t5"))


@pytest.mark.parametrize("name", CONFIGS)
def test_answers_are_those_of_transformers_encoder(name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    backbone = opened(save_t5(tmp_path, config))
    make = MT5EncoderModel if isinstance(config, MT5Config) else T5EncoderModel
    theirs = make.from_pretrained(tmp_path, attn_implementation="eager").eval()
    given = AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt")
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(4))
    assert torch.equal(inputs["input_ids"], given["input_ids"]) and inputs["input_ids"][1].tolist()[1:3] == [1, 0]
    assert torch.equal(inputs["attention_mask"], given["attention_mask"])
    with torch.no_grad():
        expected = theirs(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).last_hidden_state
    real = given["attention_mask"]
    features = backbone.features(inputs)
    torch.testing.assert_close(features.sequence[real.bool()], expected[real.bool()], atol=1e-5, rtol=0)
    means = (expected * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)
    torch.testing.assert_close(features.pooled, means, atol=1e-5, rtol=0)
    assert backbone.card.parameters == sum(weight.numel() for weight in theirs.parameters())
    assert backbone.card.family == config.model_type and backbone.card.max_length == 512
    check_backbone(backbone, absent=("attention.qkv",))


def test_the_decoder_is_not_loaded(folder: Path, tmp_path: Path) -> None:
    backbone = opened(folder)
    assert {name.partition(".")[0] for name, _ in backbone.module.named_parameters()} == {"encoder"}
    stored = load_file(folder / "model.safetensors")
    assert any(name.startswith("decoder.") for name in stored)
    backbone.module.save_pretrained(tmp_path)
    assert not any(name.startswith(("decoder.", "lm_head")) for name in load_file(tmp_path / "model.safetensors"))


@pytest.mark.parametrize("table", ["shared.weight", "encoder.embed_tokens.weight", "both"])
def test_a_folder_of_the_encoder_alone_opens_equally(table: str, folder: Path, tmp_path: Path) -> None:
    whole = opened(folder)
    save_t5(tmp_path)
    T5EncoderModel.from_pretrained(folder).save_pretrained(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    embedding = stored.pop("shared.weight")
    names = ("shared.weight", "encoder.embed_tokens.weight") if table == "both" else (table,)
    save_file(stored | {name: embedding.clone() for name in names}, tmp_path / "model.safetensors", {"format": "pt"})
    alone = opened(tmp_path)
    inputs = whole.collate(whole.encode(EXAMPLES), range(4))
    assert json.loads((tmp_path / "config.json").read_text())["is_encoder_decoder"] is False
    assert torch.equal(alone.features(inputs).pooled, whole.features(inputs).pooled)
    assert alone.card.parameters == whole.card.parameters and alone.card.blocks == 3


def test_a_folder_without_a_part_of_the_encoder_is_refused(tmp_path: Path) -> None:
    stored = load_file(save_t5(tmp_path) / "model.safetensors")
    del stored["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    save_file(stored, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(IncompatibleModule, match="not whole") as error:
        opened(tmp_path)
    assert "relative_attention_bias" in error.value.got


def test_an_absurd_number_of_blocks_is_refused(tmp_path: Path) -> None:
    config = save_t5(tmp_path) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_layers": 1_000_000}))
    with pytest.raises(StorageError, match="larger than any network has"):
        opened(tmp_path)


@pytest.mark.parametrize("first", [1, 2])
def test_logits_from_cached_states_are_those_of_the_whole_run(first: int, folder: Path) -> None:
    task = tiny_dataset().task
    model = Model(opened(folder), kinds.get(task.kind), task, towers=1).eval()
    model.own_blocks(first)
    inputs = model.backbone.collate(model.backbone.encode(EXAMPLES), range(4))
    with torch.no_grad():
        entering = model.backbone.states(inputs)[first] * inputs["attention_mask"][:, :, None]
        assert torch.equal(model(inputs, entering), model(inputs))
        table = model.network.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        before = model(inputs, entering)
        table[:, 0] += torch.arange(len(table))
        assert (model(inputs, entering) - before).abs().max() > 1e-4  # blocks above read block 0's table
    assert not table.requires_grad and model.prefix == first


def test_the_position_table_trains_with_everything_and_at_the_rate_of_the_embeddings(folder: Path) -> None:
    task = tiny_dataset().task
    model = Model(opened(folder), kinds.get(task.kind), task, towers=1)
    model.own_blocks(0, decay=0.5)
    table = "network.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert model.rates[table] == model.rates["network.encoder.embed_tokens.weight"] == 0.5**3
    assert model.rates["network.encoder.block.0.layer.0.SelfAttention.q.weight"] == 0.5**2
    assert model.tables() == ["network.encoder.embed_tokens.weight"] and model.delta().keys() >= {*model.tables()}
    inputs = model.backbone.collate(model.backbone.encode(EXAMPLES), range(4))
    torch.autograd.backward(model(inputs).sin().sum())
    delta = model.delta()
    assert delta[table].grad is not None and delta[table].grad.abs().sum() > 0
    embedding = delta["network.encoder.embed_tokens.weight"].grad
    assert embedding is not None and embedding.is_sparse


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lora", {}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("full", {}),
                ("linear_probe", {}),
                ("top_layers", {"k": 1}),
                ("adapter", {"size": 4}),
                ("ia3", {}),
            )
        ),
    ],
)
def test_methods(name: str, settings: dict[str, Any], folder: Path) -> None:
    check_method(name, settings, backbone=f"hf:{folder}", of_kinds=("classification",))


def test_bitfit_says_that_there_are_no_biases(folder: Path) -> None:
    assert "no biases" in BitFit().unfit(tiny_dataset().task, opened(folder).card)
