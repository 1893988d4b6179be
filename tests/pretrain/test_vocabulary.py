"""A vocabulary: its ids, what stands inside a word, its files, and those of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer, BertConfig, BertModel, PreTrainedTokenizerFast

from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
from graftwork.core.example import Example
from graftwork.errors import ConfigError, StorageError
from graftwork.nn.character_ids import character_ids, sentence_end_ids, sentence_start_ids
from graftwork.pretrain.tokenizers import bpe, characters, unigram, wordpiece, words
from graftwork.pretrain.vocabulary import BERT, Vocabulary
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import tokenizers

TEXTS = ["the films were unbelievable, the film was believable"] * 3


def test_special_tokens_come_first_and_by_their_names() -> None:
    made = wordpiece.train(TEXTS, 300, True)
    assert made.tokens(range(5)) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert (made.pad, made.unk, made.start, made.end, made.mask) == (0, 1, 2, 3, 4)
    assert made.special_ids == (0, 1, 2, 3, 4)
    assert characters.train(TEXTS, 300, False).mask is None
    with pytest.raises(ConfigError, match="no token '<nothing>'"):
        made.id_of("<nothing>")


def test_what_goes_on_with_a_word() -> None:
    made = wordpiece.train(["ab abc abd abe"] * 3, 40, True)
    tokens = made.tokens(made.encode(["ab abcab abd"])[0])
    assert tokens == ["ab", "abc", "##ab", "abd"]
    assert [bool(made.inside[made.id_of(token)]) for token in tokens] == [token.startswith("##") for token in tokens]
    assert not made.inside[list(made.special_ids)].any()
    for train, first in ((bpe.train, "Ġ"), (unigram.train, "▁")):
        other = train(TEXTS, 300, False)
        ids = other.encode([TEXTS[0]])[0]
        begins = [token.startswith(first) for token in other.tokens(ids)]
        assert [not inside for inside in other.inside[ids]] == begins
        assert any(begins)
    assert not words.train(TEXTS, 300, True).inside.any()


def test_text_is_put_together_again() -> None:
    for train in (bpe.train, unigram.train):
        made = train(TEXTS, 300, False)
        assert made.decode([made.start, *made.encode([TEXTS[0]])[0], made.end]) == TEXTS[0]


def test_words_as_symbols() -> None:
    made = characters.train(["naïve film film"], 300, False)
    table = made.characters()
    assert table.shape == (made.size, 50)
    assert (table[made.pad] == 0).all()
    assert table[made.start].tolist() == sentence_start_ids()
    assert table[made.end].tolist() == sentence_end_ids()
    assert table[made.id_of("naïve")].tolist() == character_ids("naïve")


def test_saved_and_opened_here_and_by_transformers(tmp_path: Path) -> None:
    made = wordpiece.train(TEXTS, 300, True)
    made.save(tmp_path, max_length=77)
    opened = Vocabulary.open(tmp_path)
    assert (opened.revision, opened.specials) == (made.revision, made.specials)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == 77
    assert theirs.mask_token_id == made.mask
    assert theirs("the film", "films")["input_ids"] == [
        made.start, *made.encode(["the film"])[0], made.end, *made.encode(["films"])[0], made.end
    ]  # fmt: skip


def test_the_revision_is_of_what_decides_the_ids() -> None:
    made = wordpiece.train(TEXTS, 300, True)
    assert made.revision == wordpiece.train(TEXTS, 300, True).revision
    assert (
        len({made.revision, wordpiece.train(TEXTS, 300, False).revision, words.train(TEXTS, 300, True).revision}) == 3
    )


def test_folders_of_others(tmp_path: Path) -> None:
    outer = PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer(), unk_token="[UNK]", pad_token="[PAD]", sep_token="[SEP]", cls_token="[CLS]"
    )
    outer.save_pretrained(tmp_path / "whole")
    whole = Vocabulary.open(tmp_path / "whole")
    assert whole.specials.end == "[SEP]"
    assert whole.mask is None
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "tokenizer.json").write_text((tmp_path / "whole" / "tokenizer.json").read_text())
    assert Vocabulary.open(tmp_path / "bare").specials == BERT
    causal = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), eos_token="[SEP]")
    causal.save_pretrained(tmp_path / "causal")
    own = Vocabulary.open(tmp_path / "causal")
    assert {own.pad, own.unk, own.start, own.end} == {own.id_of("[SEP]")}


def test_folders_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        Vocabulary.open(tmp_path)
    wordpiece.train(TEXTS, 300, True).save(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": "none"}))
    with pytest.raises(StorageError, match="no tokenizer can be read"):
        Vocabulary.open(tmp_path)


def test_ids_are_below_the_size() -> None:
    made = unigram.train(TEXTS, 300, False)
    ids = made.encode([*TEXTS, "漢字 never seen"])
    assert max(max(own) for own in ids) < made.size
    assert isinstance(made.inside, np.ndarray)
    assert made.unk in ids[-1]


@pytest.mark.parametrize("name", ["wordpiece", "bpe", "unigram", "words"])
def test_a_backbone_is_opened_with_it(name: str, tmp_path: Path) -> None:
    kind = tokenizers.get(name)
    made = kind.train(TEXTS, 300, kind.lowercase)
    made.save(tmp_path, max_length=64)
    network = BertModel(BertConfig(**(ARCHITECTURE | {"vocab_size": made.size})), add_pooling_layer=False)
    network.save_pretrained(tmp_path)
    backbone = open_backbone(f"hf:{tmp_path}", precision="fp32")
    [ids] = backbone.encode([Example("train/1", {"text": TEXTS[0]})]).ids
    assert list(ids) == [made.start, *made.encode(TEXTS[:1])[0], made.end]
