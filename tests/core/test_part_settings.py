"""A part with its settings, as a person writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from graftwork.core.part_settings import chosen_settings, described_settings, split_words
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import Registry, methods, objectives


def test_one_string_is_its_words_between_commas() -> None:
    assert split_words("a, b ,,c") == ["a", "b", "c"] and split_words("") == []
    assert split_words([" a, b"]) == [" a, b"], "what is a list is as it is"
    assert Task("t", Path(), metrics=cast(Any, "macro_f1, accuracy")).metrics == ("macro_f1", "accuracy")
    task = Task.from_file("builtin:tickets", metrics="macro_f1", labels=["a, b", "c"])
    assert (task.metrics, task.labels) == (("macro_f1",), ("a, b", "c"))


@pytest.mark.parametrize("parts", [methods, objectives], ids=["methods", "objectives"])
def test_each_setting_says_what_it_is(parts: Registry[Any]) -> None:
    told = [(name, key) for name in parts.names() for key, _, meaning in described_settings(name, parts) if not meaning]
    assert not told


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("True", True), ("false", False), ("False", False)])
def test_a_yes_or_no_is_read_as_it_is_written(text: str, expected: bool) -> None:
    assert chosen_settings(f"word_vectors:ngrams={text}", objectives) == ("word_vectors", {"ngrams": expected})


@pytest.mark.parametrize("text", ["", "no", "1"])
def test_a_yes_or_no_is_not_guessed(text: str) -> None:
    with pytest.raises(ConfigError, match="ngrams must be true or false"):
        chosen_settings(f"word_vectors:ngrams={text}", objectives)
