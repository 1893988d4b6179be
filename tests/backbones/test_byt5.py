"""ByT5, whose tokens are bytes: transformers' tokens, texts and states, and its encoder for other tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, ByT5Tokenizer, DynamicCache, EncoderDecoderCache, T5Config

from graftwork.core.example import Example
from graftwork.core.writing import TextSearch
from graftwork.pretrained.byte_tokenizer import READ, fast_bytes
from graftwork.pretrained.load_folder import fresh
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.seq2seq import Seq2SeqBackbone
from graftwork.testing import check_backbone, check_method
from graftwork.testing.tiny_writers import T5

TEXTS = ["Ein Käfer", "", "  a  b\n\tc ", "日本語 😀", "x </s> y<extra_id_0>"]
EXAMPLES = [Example(str(i), {"text": text}) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ByT5 as save_pretrained writes it: without a tokenizer.json."""
    made = tmp_path_factory.mktemp("byt5")
    config = T5Config(**T5 | {"vocab_size": 384, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False})
    fresh(config, 5, False, AutoModelForSeq2SeqLM).save_pretrained(made)
    ByT5Tokenizer().save_pretrained(made)
    assert not (made / "tokenizer.json").exists()
    return made


def test_tokens_are_the_bytes_of_a_text() -> None:
    slow = ByT5Tokenizer()
    fast = fast_bytes(slow)
    for text in TEXTS:
        tokens = slow(text).input_ids
        assert fast(text).input_ids == tokens
        for skip in (True, False):
            assert fast.decode(tokens, skip_special_tokens=skip) == slow.decode(tokens, skip_special_tokens=skip)
    assert fast("a", "b").input_ids == slow("a", "b").input_ids and fast.decode([198, 100]) == "a"  # half a letter
    assert fast.get_vocab().keys() >= slow.added_tokens_encoder.keys() and len(fast) == 384
    assert fast.model_max_length == READ and fast_bytes(ByT5Tokenizer(model_max_length=99)).model_max_length == 99


def test_it_writes_what_transformers_writes(folder: Path) -> None:
    backbone = open_backbone(f"hf:{folder}", precision="fp32", writes=True)
    assert isinstance(backbone, Seq2SeqBackbone) and backbone.card.max_length == READ
    theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    given = ByT5Tokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    inputs = backbone.collate(backbone.encode(EXAMPLES), range(5))
    assert torch.equal(inputs["input_ids"], given["input_ids"])
    with torch.no_grad():
        found = backbone.write(backbone.features(inputs).sequence, inputs["attention_mask"], TextSearch(1, 1.0, 0, 9))
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        wanted = theirs.generate(**given, max_new_tokens=9, do_sample=False, past_key_values=cache).tolist()
    for row, other in zip(found, wanted, strict=True):
        assert row.tokens == other[1 : len(row.tokens) + 1]
    assert backbone.encode_texts(["ä"], 9) == ([[198, 167, 1]], 0) and backbone.text_of([198, 167, 1]) == "ä"


def test_its_encoder_reads_for_other_tasks(folder: Path) -> None:
    encoder = open_backbone(f"hf:{folder}", precision="fp32")
    check_backbone(encoder, absent=("attention.qkv",))
    words = encoder.encode([Example("1", {"words": ("das", "Öl", "ist")})])
    assert words.words is not None and words.words.first == [[0, 4, 8]] and len(words.ids[0]) == 13
    assert words.unknown == 0


@pytest.mark.slow
def test_it_learns(folder: Path) -> None:
    check_method("lora", {"rank": 2}, backbone=f"hf:{folder}", of_kinds=("generation", "tagging"))
