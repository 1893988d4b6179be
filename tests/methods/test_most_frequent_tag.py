"""Most frequent tag: counts, and what is done about a word that train does not have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged
from graftwork.core.task import Dataset, Split
from graftwork.methods.most_frequent_tag import MostFrequentTag, WordTags
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset


def fitted(rows: list[tuple[str, str]]) -> WordTags:
    """To one example of (word, tag) rows."""
    data, kind = tiny_dataset("tagging"), kinds.get("tagging")
    words, tags = zip(*rows, strict=True)
    task = kind.resolve(replace(data.task, labels=(), metrics=()), [tags])
    train = Split("train", (Example("train/1", {"words": words}, tags),), kind.encode([tags], task))
    return MostFrequentTag().fit(tiny_bench(Dataset(task, {**data.splits, "train": train}, ""), None))


ROWS = [("run", "VERB"), ("run", "NOUN"), ("run", "VERB"), ("The", "DET"), ("Us", "PRON"), ("us", "NOUN")]
ROWS += [("cat", "NOUN"), ("dog", "NOUN")]


@pytest.mark.parametrize(
    ("word", "tag"), [("run", "VERB"), ("Run", "VERB"), ("the", "NOUN"), ("Us", "PRON"), ("zebra", "NOUN")]
)
def test_each_word_by_itself(word: str, tag: str) -> None:
    tagger = fitted(ROWS)
    logits = tagger.logits([Example("x", {"words": ("cat", word)})])
    assert isinstance(logits, Ragged) and logits.counts.tolist() == [2]
    labels = ("DET", "NOUN", "PRON", "VERB")
    assert labels[logits.flat[1].argmax()] == tag
    assert np.exp(logits.flat).sum(axis=1) == pytest.approx([1, 1], abs=1e-6)


def test_it_is_for_words() -> None:
    assert "words" in MostFrequentTag().unfit(tiny_dataset().task, None)
    assert not MostFrequentTag().unfit(tiny_dataset("tagging").task, None)
