"""Settings as a person writes them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graftwork.core.settings import chosen_settings
from graftwork.errors import ConfigError
from graftwork.registry import Registry

parts: Registry[type] = Registry("part", "tests")


@parts.register("switched")
@dataclass(frozen=True)
class Switched:
    """A part with a switch."""

    on: bool = True
    off: bool = False


@pytest.mark.parametrize(("word", "value"), [("true", True), ("FALSE", False), (str(True), True), (str(False), False)])
def test_a_switch_is_true_or_false_as_a_label_tells_it_too(word: str, value: bool) -> None:
    assert chosen_settings(f"switched:on={word}:off={word}", parts) == ("switched", {"on": value, "off": value})


@pytest.mark.parametrize("word", ["", "no", "0", "nan"])
def test_what_is_neither_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="switched: off must be true or false"):
        chosen_settings(f"switched:off={word}", parts)
