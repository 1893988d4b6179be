"""Our BERT beside transformers', with the same weights: the same bits, in one direction and in the other."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.nn.attention_interface import with_our_attention
from graftwork.nn.bert import BertShape, bert_of
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.layout import BERT
from graftwork.pretrained.load_folder import fresh

SIZES = {
    "vocab_size": tiny_tokenizer().get_vocab_size(),
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
TEXTS = ("my card is lost", "a", "where is the loan that i asked for, and what of my card")
PAIRS = [Example(str(n), {"text_a": text, "text_b": TEXTS[0]}) for n, text in enumerate(TEXTS)]


def both(bf16: bool) -> tuple[Backbone, Backbone]:
    """Ours, and transformers'."""
    theirs = fresh(BertConfig(**SIZES, initializer_range=0.2), seed=1, bf16=bf16)
    weights = {name: weight.detach().clone() for name, weight in theirs.state_dict().items()}
    ours = bert_of(BertShape(**SIZES), weights, torch.bfloat16 if bf16 else torch.float32)
    told = {"pad_id": 0, "max_length": 64, "random_seed": None, "identity": {}}
    return (
        assemble("bert", ours, tiny_tokenizer(), BERT, **told),  # type: ignore[arg-type]
        assemble("bert", with_our_attention(theirs), tiny_tokenizer(), BERT, **told),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("examples", [PAIRS, PAIRS[:1]])  # with padding, and without
def test_states_and_features_are_those_of_transformers(examples: list[Example], bf16: bool) -> None:
    ours, theirs = both(bf16)
    encoded = ours.encode(examples)
    inputs = ours.collate(encoded, range(len(encoded.ids)))
    states, expected = ours.states(inputs), theirs.states(inputs)
    assert len(states) == 4 and all(map(torch.equal, states, expected))
    assert all(map(torch.equal, ours.states_up_to(inputs, 1), expected[:2]))  # type: ignore[attr-defined]
    for start in (0, 2):
        found = ours.features(inputs, start, states[start])
        assert torch.equal(found.pooled, theirs.features(inputs, start, states[start]).pooled)


def test_it_has_the_names_and_learns_the_same() -> None:
    ours, theirs = both(bf16=False)
    assert ours.card == theirs.card
    inputs = ours.collate(ours.encode(PAIRS), range(3))
    gradients = []
    for backbone in (ours, theirs):
        backbone.module.requires_grad_(True)
        backbone.features(inputs).pooled.square().sum().backward()  # type: ignore[no-untyped-call]
        gradients.append({name: weight.grad for name, weight in backbone.module.named_parameters()})
    assert list(gradients[0]) == list(gradients[1])
    assert all(torch.equal(one, other) for one, other in zip(*(g.values() for g in gradients), strict=True))


def test_a_weight_that_is_missing_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"embeddings\.LayerNorm\.bias"):
        bert_of(BertShape(**SIZES), {}, torch.float32)
