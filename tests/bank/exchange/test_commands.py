"""`graft bank export-task` and `graft bank import`, end to end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from graftwork.bank.bank import Bank
from graftwork.cli.main import main
from graftwork.module.task_module import TaskModule

WriteNetwork = Callable[..., Path]
MakeModule = Callable[..., TaskModule]
Logits = Callable[[TaskModule], Tensor]
METHODS = {"peft": "peft_lora:maps=attention.query:head=relu", "adapters": "adapterhub:parts=mlp"}


@pytest.fixture(scope="module")
def made(write_module: MakeModule, write_network: WriteNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with a task of each format's, on a DistilBERT; no test changes it."""
    folder = tmp_path_factory.mktemp("bank")
    made = Bank.create(folder / "shop.bank")
    for format, method in METHODS.items():
        made.add(write_module(folder / format, method, write_network("distilbert")).folder, format)
    return made.path


@pytest.fixture
def bank(made: Path, tmp_path: Path) -> Path:
    """Its copy."""
    return shutil.copytree(made, tmp_path / "shop.bank")


@pytest.mark.parametrize("format", list(METHODS))
def test_out_and_in_again(
    format: str, bank: Path, tmp_path: Path, logits: Logits, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["bank", "export-task", str(bank), f"{format}@1", str(out), "--format", format]) == 0
    assert "README.md" in capsys.readouterr().out
    labels = ["--labels", "no, yes ,perhaps"]
    assert main(["bank", "import", str(bank), str(out), "--name", "again", *labels]) == 0
    assert "In the bank: again, version 1" in capsys.readouterr().out
    opened = Bank.open(bank)
    assert torch.equal(logits(opened.module("again")), logits(opened.module(format)))
    assert opened.predict([("again", "good")]) == opened.predict([(format, "good")])
    assert main(["bank", "show", str(bank), "again"]) == 0
    shown = capsys.readouterr().out
    assert f"unknown: imported from {format}" in shown and "price tag  unknown" in shown
    assert main(["bank", "ls", str(bank)]) == 0 and main(["bank", "check", str(bank)]) == 0


def test_among_other_rows_it_answers_as_alone(bank: Path, make_module: MakeModule, write_network: WriteNetwork) -> None:
    opened = Bank.open(bank)
    opened.add(make_module("lora:rank=2", write_network("distilbert")).folder, "own")
    rows = [(task, text) for text in ("good", "the film was not very good", "bad") for task in (*METHODS, "own")]
    together, alone = opened.predict(rows), [opened.predict([row])[0] for row in rows]
    for one, other in zip(together, alone, strict=True):
        assert one["label"] == other["label"]
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    assert len({str(answer) for answer in together}) == len(rows)


def test_into_a_new_bank(
    bank: Path, write_network: WriteNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, fresh = tmp_path / "out", tmp_path / "fresh.bank"
    assert main(["bank", "export-task", str(bank), "peft", str(out), "--format", "peft", "--json"]) == 0
    exported = {"folder": str(out), "bank": str(bank), "task": "peft", "version": 1, "format": "peft"}
    assert json.loads(capsys.readouterr().out) == exported
    assert main(["bank", "import", str(fresh), str(out), "--name", "mood"]) == 2
    assert "--backbone hf:FOLDER" in capsys.readouterr().err and not fresh.exists()
    network = f"hf:{write_network('distilbert')}"
    assert (
        main(["bank", "import", str(fresh), str(out), "--name", "mood", "--backbone", network, "--pair", "--json"]) == 0
    )
    imported = {"path": str(fresh), "task": "mood", "version": 1, "new": True}
    assert json.loads(capsys.readouterr().out) == {"bank": imported}
    assert Bank.open(fresh).predict([("mood", ("good", "bad"))])[0]["label"] in ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export-task", "BANK", "pfet", "OUT", "--format", "peft"], "did you mean 'peft'?"),
        (["export-task", "BANK", "peft@x", "OUT", "--format", "peft"], "not a version"),
        (["export-task", "BANK", "peft", "OUT", "--format", "onnx"], "unknown format 'onnx'"),
        (
            ["export-task", "BANK", "peft", "OUT", "--format", "adapters"],
            "a task trained with peft_lora can't be exported",
        ),
        (["import", "BANK", "OUT", "--name", "x"], "not a folder that peft or adapters saved"),
        (["import", "BANK", "OUT", "--name", ".x"], "not a name for a task"),
    ],
)
def test_mistakes(
    words: list[str], message: str, bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (bank / "bank.json").read_bytes()
    places = {"BANK": str(bank), "OUT": str(tmp_path / "out")}
    assert main(["bank", *(places.get(word, word) for word in words)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and (bank / "bank.json").read_bytes() == before
