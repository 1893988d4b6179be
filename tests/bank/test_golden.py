"""A bank of each released format opens for ever: answers as it did, is whole, and takes new tasks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.bank.bank import Bank

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("bank_*")))
def test_a_bank_of_an_earlier_format(name: str, tmp_path: Path, module: Callable[..., Path]) -> None:
    bank = Bank.open(shutil.copytree(GOLDEN / name, tmp_path / "bank"))
    assert set(bank.tasks) == {"moods", "baseline"} and bank.versions("moods") == [1, 2]
    assert bank.check() == []
    answers = bank.predict_all("good film")
    assert answers["baseline"]["label"] == "bad" and answers["moods"]["label"] == "good"
    assert bank.add(module("lora", seed=4), "moods").version == 3
    assert bank.rollback("moods", 2).description["method"]["name"] == "lora"


def test_there_is_one_of_every_format() -> None:
    from graftwork.bank.bank_folder import FORMAT

    assert {path.name for path in GOLDEN.glob("bank_*")} == {f"bank_{number}" for number in range(1, FORMAT + 1)}
