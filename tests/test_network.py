"""No network unless a hub name was asked for: a machine without one is not even missed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftwork.cli.main import main

ROWS = [f"a {word} that is {label} {number},{label}" for number in range(8) for word in ("film", "plot", "end", "joke")
        for label in ("good", "bad")]  # fmt: skip


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was tried to be reached, whoever has caught the error."""
    tried: list[Any] = []

    def refuse(*arguments: Any, **named: Any) -> Any:
        tried.append(arguments)
        raise OSError("the network is blocked")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    yield tried


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(ROWS) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_compare_train_and_predict_use_none(
    here: Path, attempts: list[Any], write_network: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--backbone", f"hf:{write_network}", "--epochs", "1", "--cache-size", "0"]
    methods = ["--methods", "majority,linear_probe", "--seeds", "1", "--jobs", "1", "--out", "board"]
    assert main(["compare", "data.csv", *options, *methods]) == 0, capfd.readouterr().err
    assert main(["train", "data.csv", "--method", "linear_probe", *options]) == 0
    (module, *_) = sorted(here.glob("runs/*/module/delta.safetensors"))
    assert main(["predict", str(module.parent), "a good film"]) == 0
    assert attempts == []


@pytest.fixture
def write_network(tmp_path: Path) -> Path:
    """A tiny network of transformers' on disk."""
    import json

    import torch
    from transformers import BertConfig, BertModel

    from graftwork.backbones.tiny_text import ARCHITECTURE, tiny_tokenizer
    from graftwork.io.files import write_tensors

    folder, tokenizer = tmp_path / "network", tiny_tokenizer()
    folder.mkdir()
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), **ARCHITECTURE)
    with torch.random.fork_rng():
        write_tensors(folder / "model.safetensors", BertModel(config).state_dict())
    (folder / "config.json").write_text(json.dumps(config.to_diff_dict()))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    return folder


def test_a_hub_name_that_is_asked_for_reaches_for_it(
    here: Path, attempts: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "data.csv", "--method", "linear_probe", "--backbone", "hf:somebody/network"]) == 2
    assert "neither a folder here nor a model the hub would give" in capfd.readouterr().err
    assert attempts


def test_the_hubs_own_switch_is_honoured(
    here: Path, attempts: list[Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert main(["train", "data.csv", "--method", "linear_probe", "--backbone", "hf:somebody/network"]) == 2
    assert "neither a folder here nor a model" in capfd.readouterr().err and attempts == []
