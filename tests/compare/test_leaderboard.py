"""What `compare` makes of its arguments, before any run."""

from __future__ import annotations

import sys

import pytest

from graftwork.compare import leaderboard
from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import methods


def test_methods_as_a_list_or_as_one_string() -> None:
    listed = [item.label for item in leaderboard.choose_methods(["majority", " adapter:size=8"])]
    assert listed == ["majority", "adapter:size=8"]
    assert [item.label for item in leaderboard.choose_methods("majority, adapter:size=8")] == listed
    every = [item.config["name"] for item in leaderboard.choose_methods(None)]
    assert sorted({*every, "contrastive", "no_transfer"}) == methods.names(), "these only where they are asked for"
    assert not {"contrastive", "no_transfer"} & set(every)


def test_random_weights_for_the_methods_that_use_a_backbone() -> None:
    chosen = leaderboard.chosen_methods("majority,lora:rank=4,no_transfer:by=full", True)
    assert [item.label for item in chosen] == [
        "majority", "lora:rank=4", "no_transfer:by=full", "no_transfer:by=lora:rank=4",
    ]  # fmt: skip
    assert leaderboard.chosen_methods(None, True)[-1].label == "no_transfer:by=full"
    with pytest.raises(ConfigError, match="none can start from random weights"):
        leaderboard.chosen_methods("majority,tfidf_svm", True)


def test_methods_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        leaderboard.choose_methods("lora,lora:rank=8")
    with pytest.raises(ConfigError, match="no method is named"):
        leaderboard.choose_methods([])
    with pytest.raises(UnknownName, match="did you mean 'lora'"):
        leaderboard.choose_methods("lorra")


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/usr/bin/graft", "graft compare 'my data.csv'"),
        ("/lib/graftwork/__main__.py", "graft compare 'my data.csv'"),
        ("/home/me/study.py", ""),
    ],
)
def test_the_command_can_be_typed_again(program: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program, "compare", "my data.csv"])
    assert leaderboard.command_line() == command
