"""Word vectors as a backbone: what is known of a text, and what methods make of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.backbones.word_vectors import MAX_LENGTH, WordVectorBackbone, as_backbone
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.data.readers.word_vector_files import write_word_vectors
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.errors import ConfigError, StorageError, UnknownName
from graftwork.io.files import digest
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds, methods
from graftwork.testing import check_backbone, check_method, tiny_bench, tiny_dataset
from graftwork.testing.tiny_networks import tiny_word_vectors

VECTORS = tiny_word_vectors()


def opened(bf16: bool = False, random_seed: int | None = None) -> WordVectorBackbone:
    return as_backbone("word_vectors:tiny", VECTORS, random_seed=random_seed, bf16=bf16)


def pooled(backbone: WordVectorBackbone, *texts: str) -> torch.Tensor:
    encoded = backbone.encode([Example(text, {"text": text}) for text in texts])
    return backbone.features(backbone.collate(encoded, range(len(texts)))).pooled


def test_a_text_is_the_mean_of_its_known_words() -> None:
    good, film = VECTORS.table[VECTORS.row_of("good")], VECTORS.table[VECTORS.row_of("film")]
    means = pooled(opened(), "Good qux film", "don't", "qux")
    torch.testing.assert_close(means[0], torch.from_numpy((good + film) / 2))
    halves = [VECTORS.table[VECTORS.row_of(word)] for word in ("do", "n't")]
    torch.testing.assert_close(means[1], torch.from_numpy(np.mean(halves, axis=0)))
    assert not means[2].any()


def test_unknown_words_are_counted() -> None:
    backbone = opened()
    assert backbone.encode([Example("a", {"text": "good qux, film zap"}), Example("b", {"text": "so"})]).unknown == 2
    tagged = backbone.encode([Example("a", {"words": ("good", "qux", "?")})])
    assert (tagged.unknown, tagged.words and tagged.words.unseen) == (1, 0)
    read = backbone.features(backbone.collate(tagged, [0])).pooled
    assert read.shape == (3, 8) and not read[1].any() and read[0].any()


def test_a_long_text_is_cut_and_counted() -> None:
    encoded = opened().encode([Example("a", {"text": "good " * (MAX_LENGTH + 1)}), Example("b", {"text": "so"})])
    assert encoded.cut == 1 and encoded.lengths.tolist() == [MAX_LENGTH, 1]


def test_choices_are_pairs_of_texts() -> None:
    encoded = opened().encode([Example("a", {"text": "good film", "choices": ("so", "it", "was")})])
    assert encoded.towers == 2 and encoded.sequences_of.tolist() == [6] and len(encoded) == 1
    assert encoded.ids[0] == encoded.ids[2] == encoded.ids[4] and encoded.ids[1] != encoded.ids[3]


def test_in_bf16_too() -> None:
    check_backbone(opened(bf16=True), absent=opened().card.lacks)
    torch.testing.assert_close(pooled(opened(bf16=True), "good film"), pooled(opened(), "good film"), atol=0.02, rtol=0)


def test_fresh_vectors_know_the_same_words() -> None:
    one, same, other = (opened(random_seed=seed) for seed in (1, 1, 2))
    assert torch.equal(pooled(one, "good"), pooled(same, "good")) and one.card.revision == same.card.revision
    assert not torch.equal(pooled(one, "good"), pooled(other, "good")) and one.card.revision != other.card.revision
    assert one.card.id == "random:word_vectors:tiny" and not pooled(one, "qux").any()


def test_the_revision_is_that_of_the_content(tmp_path: Path) -> None:
    write_word_vectors(tmp_path / "v.txt.gz", VECTORS)
    write_word_vectors(tmp_path / "v.vec", VECTORS)
    write_folder(tmp_path / "v", VECTORS)
    names = [f"word_vectors:{tmp_path / name}" for name in ("v.txt.gz", "v.vec", "v")] + [f"hf:{tmp_path / 'v'}"]
    cards = [open_backbone(name, precision="fp32").card for name in names]
    assert len({card.revision for card in cards}) == 1
    assert [card.id for card in cards[:3]] == names[:3]
    assert open_backbone(cards[3].id, precision="fp32").card == cards[3]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        open_backbone(f"word_vectors:{tmp_path / 'v.txt'}", precision="fp32")
    with pytest.raises(ConfigError, match="no word vectors are named"):
        open_backbone("word_vectors:", precision="fp32")
    with pytest.raises(UnknownName) as error:
        open_backbone("word_vector", precision="fp32")
    assert "word_vectors:<file or folder>" in error.value.expected


@pytest.mark.parametrize("name", [pytest.param("linear_probe", marks=pytest.mark.slow), "full"])
def test_methods_that_need_no_blocks_fit(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "v", VECTORS)
    check_method(name, backbone=f"word_vectors:{tmp_path / 'v'}")


def test_methods_that_need_blocks_say_that_there_are_none() -> None:
    task, card = tiny_dataset().task, opened().card
    for name in ("adapter", "lora", "bitfit", "top_layers", "ulmfit", "contrastive"):
        assert methods.get(name)().unfit(task, card), name


def test_full_trains_the_vectors_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    data, backbone = tiny_dataset(rows=80), opened()
    bench = tiny_bench(data, backbone, epochs=4)
    fitted = methods.get("full")(learning_rate=0.02).fit(bench)
    assert bench.score(fitted.logits(data.validation.examples)) > 0.9
    moved = fitted.delta()["network.embedding.weight"] - backbone.module.get_submodule("embedding").weight
    changed = {VECTORS.words[row] for row in torch.nonzero(moved[:-1].abs().sum(1)).flatten().tolist()}
    assert "good" in changed and "?" not in changed  # "?" stands in no text
    setting = Setting(data.task, kinds.get(data.task.kind), backbone)
    restored = methods.get("full")().restore(setting, fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))


def test_words_of_an_unspaced_script_are_found_where_no_space_parts_them() -> None:
    backbone = as_backbone("x", tiny_word_vectors(("银行卡", "丢", "请")), random_seed=None, bf16=False)
    encoded = backbone.encode([Example("a", {"text": "我的银行卡丢了"})])
    assert encoded.ids == [[0, 1]] and encoded.unknown == 3


def test_only_vocabularies_of_unspaced_scripts_are_read_otherwise_than_before() -> None:
    """The revision says so: what was trained on the other ones is as good as it was."""
    vectors = tiny_word_vectors(("abc", "de"))
    backbone = as_backbone("x", vectors, random_seed=None, bf16=False)
    reading = {"version": 1, "max_length": MAX_LENGTH}
    assert backbone.card.revision == digest({"vectors": vectors.digest, "random_seed": None, "reading": reading})
    assert backbone.encode([Example("a", {"text": "我abc de"})]).ids == [[1]]
    strays = tiny_word_vectors(("我", *(f"word{number}" for number in range(10))))
    card = as_backbone("x", strays, random_seed=None, bf16=False).card
    assert card.revision == digest({"vectors": strays.digest, "random_seed": None, "reading": reading})
    mixed = tiny_word_vectors(("abc", "我"))
    backbone = as_backbone("x", mixed, random_seed=None, bf16=False)
    assert backbone.card.revision != digest({"vectors": mixed.digest, "random_seed": None, "reading": reading})
    assert backbone.encode([Example("a", {"text": "我abc de"})]).ids == [[1, 0]]
