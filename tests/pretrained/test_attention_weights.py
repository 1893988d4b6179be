"""The weights of a head against transformers' own, and from tokens to words."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from transformers import BertModel

from graftwork.backbones.tiny_text import ARCHITECTURE
from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.pretrained.attention_weights import AttentionWeights, attention_weights
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone

TEXT = "My card isn't lost 🙂, is it?"


@pytest.fixture(scope="module")
def backbone() -> TransformerBackbone:
    opened = open_backbone("tiny_text", precision="fp32")
    assert isinstance(opened, TransformerBackbone)
    return opened


@pytest.mark.parametrize(("block", "head"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_weights_are_those_of_transformers(backbone: TransformerBackbone, block: int, head: int) -> None:
    theirs = BertModel(copy.deepcopy(backbone.module.config), add_pooling_layer=False).eval()
    theirs.set_attn_implementation("eager")
    theirs.load_state_dict(backbone.module.state_dict())
    inputs = backbone.collate(backbone.encode([Example("a", {"text": TEXT})]), [0])
    with torch.no_grad():
        expected = theirs(**inputs, output_attentions=True).attentions[block][0, head]
    found = attention_weights(backbone, TEXT, block, head)
    np.testing.assert_allclose(found.weights, expected.numpy(), atol=1e-6)
    assert found.weights.shape == (len(found.tokens),) * 2
    assert (found.blocks, found.heads) == (2, ARCHITECTURE["num_attention_heads"])


def test_heads_and_blocks_differ(backbone: TransformerBackbone) -> None:
    maps = [attention_weights(backbone, TEXT, block, head).weights for block in (0, 1) for head in (0, 1)]
    assert all(np.abs(maps[i] - maps[j]).max() > 0.01 for i in range(4) for j in range(i))


def test_the_backbone_is_as_it_was(backbone: TransformerBackbone) -> None:
    inputs = backbone.collate(backbone.encode([Example("a", {"text": TEXT})]), [0])
    before, implementation = backbone.states(inputs)[-1], backbone.module.config._attn_implementation
    attention_weights(backbone, TEXT, 0, 0)
    assert torch.equal(backbone.states(inputs)[-1], before)
    assert backbone.module.config._attn_implementation == implementation != "eager"


def test_words_are_stretches_of_the_text(backbone: TransformerBackbone) -> None:
    found = attention_weights(backbone, TEXT, 0, 0)
    words = ("[CLS]", "My", "card", "isn", "'", "t", "lost", "🙂", ",", "is", "it", "?", "[SEP]")
    assert found.words == words
    assert found.tokens[:5] == ("[CLS]", "My", "ca", "rd", "is")
    assert found.word_of[:5] == (0, 1, 2, 2, 3)
    assert found.added == (True, *(False,) * 11, True)
    assert not found.cut


def test_to_a_word_is_the_sum_and_from_a_word_the_mean() -> None:
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.2, 0.5]], dtype=np.float32)
    found = AttentionWeights(("a", "b", "c"), (0, 1, 1), ("a", "bc"), (False, False), weights, 1, 1, False)
    np.testing.assert_allclose(found.of_words(), [[0.5, 0.5], [0.2, 0.8]], atol=1e-6)


def test_rows_of_words_sum_to_one(backbone: TransformerBackbone) -> None:
    found = attention_weights(backbone, TEXT, 1, 1).of_words()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_bf16_gives_numbers_too() -> None:
    opened = open_backbone("tiny_text", precision="bf16")
    assert isinstance(opened, TransformerBackbone)
    found = attention_weights(opened, TEXT, 0, 0)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=0.02)


def test_a_long_text_is_read_to_the_backbones_length(backbone: TransformerBackbone) -> None:
    found = attention_weights(backbone, "good film " * 100, 0, 0)
    assert found.cut and len(found.tokens) == backbone.card.max_length


@pytest.mark.parametrize(("block", "head", "noun"), [(2, 0, "block 2"), (-1, 0, "block -1"), (0, 2, "head 2")])
def test_what_is_not_there_is_an_error(backbone: TransformerBackbone, block: int, head: int, noun: str) -> None:
    with pytest.raises(ConfigError, match=noun) as caught:
        attention_weights(backbone, TEXT, block, head)
    assert caught.value.expected == "0 to 1"
