"""Prefix-tuning of encoder-decoders: PEFT's answers in the decoder, written alike with keys kept, the shape of all."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.core.writing import TOKENS, TextSearch
from graftwork.methods.prefix import PrefixTuning
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.loop import build_model
from graftwork.train.text_loop import padded_tokens

P = 4
EXAMPLES = [Example(str(i), {"text": text}) for i, text in enumerate(["the film was so good", "sad", "it is cold"])]
WANTED = ["a good film it was", "so sad", "it is warm"]


def attached(folder: Path) -> tuple[Seq2SeqBackbone, Model]:
    """A network, and the same with prefixes of some size."""
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone)
    setting = Setting(tiny_dataset("generation").task, kinds.get("generation"), backbone)
    model = build_model(PrefixTuning(length=P), setting, towers=1).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.delta().values():
            weight.normal_(std=0.5)
    return backbone, model


def pefts(backbone: Seq2SeqBackbone, ours: Model) -> Any:
    """The network with PEFT's prefix, which stands before the decoder's own attention alone."""
    network: Any = copy.deepcopy(backbone.module)
    network.set_attn_implementation("eager")
    own = [one for place, one in ours.adapters.items() if place.startswith("decoder") and "SelfAtt" in place]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
        config = peft.PrefixTuningConfig(
            num_virtual_tokens=P, task_type="SEQ_2_SEQ_LM", num_layers=len(own), token_dim=24, num_attention_heads=3
        )
        theirs = peft.get_peft_model(network, config).eval()
        own = [own[0], own[2], own[1]]  # PEFT deals them out in twos, to each block its own attention and the other
        both = torch.cat([torch.cat([one.key, one.value], dim=1) for one in own], dim=1)  # type: ignore[list-item]
        theirs.prompt_encoder["default"].embedding.weight.copy_(both)
    return theirs


def test_the_same_prefix_of_a_decoder_gives_pefts_answers(tmp_path: Path) -> None:
    backbone, ours = attached(write_seq2seq(tmp_path, "t5 gated"))
    with torch.no_grad():  # PEFT gives virtual tokens positions, whose bias is 0 here
        for network in (backbone.module, ours.network):
            network.decoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.zero_()
    theirs = pefts(backbone, ours)
    for (name, _), hook in zip(list(ours.adapters.items()), ours._hooks, strict=True):
        if not name.startswith("decoder") or "EncDec" in name:
            hook.remove()
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(3))
    tokens = padded_tokens(backbone.encode_texts(WANTED, 12)[0])
    before = torch.cat([torch.zeros(3, 1, dtype=torch.int64), tokens[:, :-1].clamp(min=0)], dim=1)
    with torch.no_grad():
        logits = theirs(**inputs, decoder_input_ids=before).logits
        expected = logits.log_softmax(-1).gather(2, tokens.clamp(min=0)[..., None])[..., 0] * (tokens >= 0)
        found, plain = (Model.forward(one, inputs | {TOKENS: tokens}) for one in (ours, _plain(backbone)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - plain).abs().max() > 0.05


def _plain(backbone: Seq2SeqBackbone) -> Model:
    return Model(backbone, kinds.get("generation"), tiny_dataset("generation").task, towers=1).eval()


@pytest.mark.parametrize("name", ["t5 gated", "bart"])
def test_what_is_written_step_by_step_is_what_is_likeliest_at_once(name: str, tmp_path: Path) -> None:
    backbone, model = attached(write_seq2seq(tmp_path, name))
    writer: Any = model.backbone
    assert len(model.adapters) == 2 + 3 + 3
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(3))
    with torch.no_grad():
        states, mask = model.read(inputs), inputs["attention_mask"]
        assert (states - backbone.features(inputs).sequence).abs().max() > 0.05
        row, *_ = writer.write(states, mask, TextSearch(1, 1.0, 0, 6))
        other, *_ = backbone.write(states, mask, TextSearch(1, 1.0, 0, 6))
        likeliest = writer.module(
            encoder_outputs=(states[:1],),
            attention_mask=mask[:1],
            decoder_input_ids=torch.tensor([[*writer.special.start, *row.tokens[:-1]]]),
        ).logits[0].argmax(dim=-1)  # fmt: skip
    chosen = len(writer.special.first)
    assert row.tokens[chosen:] == likeliest.tolist()[chosen:] and row.tokens != other.tokens
