"""Prefix-tuning: PEFT's answers, what it costs, and the backbones that it does not fit."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, PreTrainedTokenizerFast

from graftwork.backbones.elmo import save_bilm
from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.backbones.word_vectors import as_backbone
from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.methods.prefix import PrefixTuning
from graftwork.nn.virtual_tokens import VirtualTokens
from graftwork.pretrained.load_folder import fresh
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_networks import tiny_bilm, tiny_word_vectors, write_awd_lstm
from graftwork.train.flops import count_flops
from graftwork.train.loop import build_model

DATA = tiny_dataset()
P = 5


def left_to_right(folder: Path) -> Backbone:
    tokenizer = tiny_tokenizer()
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    fresh(GPT2Config(**sizes, initializer_range=0.2), 0, False).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]"
    ).save_pretrained(folder)
    return open_backbone(f"hf:{folder}", precision="fp32")


@pytest.fixture(params=["encoder", "decoder"])
def backbone(request: pytest.FixtureRequest, tmp_path: Path) -> Backbone:
    return left_to_right(tmp_path) if request.param == "decoder" else open_backbone("tiny_text", precision="fp32")


def inputs_of(backbone: Backbone) -> Inputs:
    return backbone.collate(backbone.encode(DATA.train.examples), range(6))


def attached(backbone: Backbone, length: int = P) -> Model:
    torch.manual_seed(0)
    setting = Setting(DATA.task, kinds.get("classification"), backbone)
    return build_model(PrefixTuning(length=length), setting, towers=1)


def pefts(backbone: Backbone, ours: Model) -> Any:
    """The same network with PEFT's prefix in it, and transformers' attention. PEFT counts positions from P on."""
    network: Any = copy.deepcopy(backbone.module)
    network.set_attn_implementation("eager")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
        config = peft.PrefixTuningConfig(num_virtual_tokens=P, task_type="FEATURE_EXTRACTION")
        theirs = peft.get_peft_model(network, config).eval()
        places = network.wpe if backbone.card.family == "gpt2" else network.embeddings.position_embeddings
        places.weight.copy_(places.weight.roll(P, 0))
        blocks = [torch.cat([one.key, one.value], dim=1) for one in ours.adapters.values()]  # type: ignore[list-item]
        theirs.prompt_encoder["default"].embedding.weight.copy_(torch.cat(blocks, dim=1))
    return theirs


def test_the_same_prefix_gives_pefts_answers(backbone: Backbone) -> None:
    ours, inputs = attached(backbone), inputs_of(backbone)
    theirs, real = pefts(backbone, ours), inputs["attention_mask"].bool()
    assert not real.all()
    with torch.no_grad():
        expected = theirs(inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state[real]
        found, plain = (one.features(inputs).sequence[real] for one in (ours.backbone, backbone))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - plain).abs().max() > 0.1
    trained = sum(parameter.numel() for name, parameter in ours.delta().items() if "head" not in name)
    assert trained == 2 * backbone.card.blocks * P * backbone.card.width
    assert trained == sum(parameter.numel() for parameter in theirs.parameters() if parameter.requires_grad)


def test_its_products_are_counted() -> None:
    backbone = open_backbone("tiny_text", precision="fp32")
    ours, inputs = attached(backbone), inputs_of(backbone)
    positions, heads = inputs["attention_mask"].numel(), 2
    more = 2 * positions * P * (2 * backbone.card.width + heads)  # with keys, and with values and a column of ones
    found, plain = (count_flops(lambda one=one: one.features(inputs))[1] for one in (ours.backbone, backbone))
    assert found - plain == backbone.card.blocks * more


def test_it_has_the_heads_of_the_keys() -> None:
    key = torch.randn(3, 2, 7, 4)
    prefix = VirtualTokens(P, 2 * 4)
    before, _ = prefix(key, key)
    assert torch.equal(before[:, :, P:], key) and before.shape == (3, 2, P + 7, 4)
    assert torch.equal(before[1, 1, :P], prefix.key[:, 4:])


def test_what_has_no_such_attention_is_refused(tmp_path: Path) -> None:
    write_awd_lstm(tmp_path / "awd_lstm")
    save_bilm(tiny_bilm(), tmp_path / "elmo", {})
    opened = [open_backbone(f"hf:{tmp_path / name}", precision="fp32") for name in ("awd_lstm", "elmo")]
    for other in (*opened, as_backbone("word_vectors:x", tiny_word_vectors(), random_seed=None, bf16=False)):
        refused = f"the blocks of {other.card.id} have no attention that takes a prefix"
        assert PrefixTuning().unfit(DATA.task, other.card) == refused
    assert PrefixTuning().unfit(DATA.task, open_backbone("tiny_text", precision="fp32").card) == ""
    assert PrefixTuning(length=0).unfit(DATA.task, None) == "length must be above 0, not 0"
