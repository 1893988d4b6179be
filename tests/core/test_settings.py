"""A part with its settings, as a person writes it."""

from __future__ import annotations

import pytest

from graftwork.core.settings import chosen_settings
from graftwork.errors import ConfigError
from graftwork.registry import objectives


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("True", True), ("false", False), ("False", False)])
def test_a_yes_or_no_is_read_as_it_is_written(text: str, expected: bool) -> None:
    assert chosen_settings(f"word_vectors:ngrams={text}", objectives) == ("word_vectors", {"ngrams": expected})


@pytest.mark.parametrize("text", ["", "no", "1"])
def test_a_yes_or_no_is_not_guessed(text: str) -> None:
    with pytest.raises(ConfigError, match="ngrams must be true or false"):
        chosen_settings(f"word_vectors:ngrams={text}", objectives)
