"""Invented texts."""

from __future__ import annotations

from graftwork.core.example import Example
from graftwork.ship.invented_texts import invent_examples

PAIRS = [
    Example(f"train/{number}", {"text_a": f"one two three four {number}", "text_b": "five six"}) for number in range(20)
]


def test_each_text_is_made_of_words_of_all() -> None:
    made = invent_examples(PAIRS, 3, seed=0)
    assert len(made) == 60 and len({one.id for one in made}) == 60
    known = {word for one in PAIRS for text in one.inputs.values() for word in text.split()}
    assert all(set(text.split()) <= known for one in made for text in one.inputs.values())
    assert all(text for one in made for text in one.inputs.values())
    assert sum(new.inputs != old.inputs for new, old in zip(made, PAIRS * 3, strict=True)) > 40


def test_words_stay_words_and_the_seed_decides() -> None:
    words = [Example("train/1", {"words": ("a", "b", "c", "d", "e")})]
    (made,) = invent_examples(words, 1, seed=1)
    assert isinstance(made.inputs["words"], tuple) and made == invent_examples(words, 1, seed=1)[0]
    assert {one.inputs["words"] for one in invent_examples(words, 30, seed=2)} != {made.inputs["words"]}


def test_texts_without_words_stay_as_they_are() -> None:
    assert [one.inputs for one in invent_examples([Example("train/1", {"text": ""})], 2, seed=0)] == [{"text": ""}] * 2
