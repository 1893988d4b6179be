"""Banks on a network that writes: tasks that answer with texts, beside those that read with its encoder alone."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.bank.bank import Bank
from graftwork.bank.stream import stream
from graftwork.cli.main import main
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import file_digest, read_json, safe_load, write_json, write_tensors
from graftwork.module.task_module import READ_BACK, TaskModule
from graftwork.serve.app import application
from graftwork.serve.attention_route import attention
from graftwork.serve.http_bodies import AttentionQuestion
from graftwork.serve.request_log import Records
from graftwork.serve.server_limits import ServerLimits
from graftwork.serve.service import Service
from graftwork.testing.tiny_writers import write_seq2seq

MakeModule = Callable[..., Path]
TEXTS = ("so it was a good film", "the film was sad", "a cold film")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny T5."""
    return f"hf:{write_seq2seq(tmp_path_factory.mktemp('t5') / 't5')}"


@pytest.fixture(scope="module")
def modules(network: str, module: MakeModule) -> dict[str, Path]:
    """A task that writes, and two that read with the encoder."""
    return {
        "write": module("lora", "generation", backbone=network),
        "mood": module("lora", backbone=network),
        "probe": module(backbone=network),
    }


@pytest.mark.slow
def test_rows_of_tasks_that_write_and_that_read_are_answered_together(modules: dict[str, Path], tmp_path: Path) -> None:
    bank = Bank.create(tmp_path / "shop.bank")
    for name, folder in modules.items():
        bank.add(folder, name)
    assert bank.card is not None and bank.card.writes
    network, reader = bank.open_backbone().module, bank.module("mood").backbone
    assert reader is not None and not reader.card.writes
    assert {id(weight) for weight in reader.module.parameters()} < {id(weight) for weight in network.parameters()}
    rows = [(name, text) for text in TEXTS for name in modules]
    alone = {name: TaskModule.load(folder).predict(TEXTS) for name, folder in modules.items()}
    for (name, text), found in zip(rows, bank.predict(rows), strict=True):
        expected = alone[name][TEXTS.index(text)]
        assert found.get("text") == expected.get("text") and found.get("label") == expected.get("label")
        numbers = {"log_probability": found["log_probability"]} if "text" in found else found["probabilities"]
        told = {"log_probability": expected["log_probability"]} if "text" in found else expected["probabilities"]
        assert numbers == pytest.approx(told, abs=1e-4)
    assert bank.cut([("write", "so " * 600), ("write", "so")]) == [True, False]
    assert [finding.difference for finding in bank.examine()][1:] == [0.0] * 3
    attended = attention(bank, AttentionQuestion(text="a good film", block=1, head=0))
    assert attended["words"][:3] == ["a", "good", "film"] and attended["blocks"] == 2


async def events_of(application: Any, body: Any) -> list[tuple[str, Any]]:
    """Ask an ASGI application for events."""
    sent: list[dict[str, Any]] = []
    coming = [{"type": "http.request", "body": json.dumps(body).encode()}]

    async def receive() -> dict[str, Any]:
        return coming.pop() if coming else await asyncio.Event().wait() or {}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    head = {"authorization": "Bearer secret", "accept": "text/event-stream", "content-type": "application/json"}
    scope = {
        "type": "http", "method": "POST", "path": "/v1/predict", "query_string": b"", "client": None,
        "headers": [(name.encode(), value.encode()) for name, value in head.items()],
    }  # fmt: skip
    await application(scope, receive, send)
    assert sent[0]["status"] == 200
    parts = b"".join(message["body"] for message in sent[1:]).decode().split("\n\n")[:-1]
    return [(name[7:], json.loads(data[6:])) for name, data in (part.split("\n") for part in parts)]


def test_a_text_is_told_token_by_token_over_http(modules: dict[str, Path], tmp_path: Path) -> None:
    bank = Bank.create(tmp_path / "shop.bank")
    bank.add(modules["write"], "write")
    (expected,) = bank.predict([("write", TEXTS[0])])
    service = Service(bank, ServerLimits(), Records(io.StringIO()))
    service.renew()
    service.batcher.start()
    told = asyncio.run(events_of(application(service, "secret"), {"task": "write", "text": TEXTS[0]}))
    service.batcher.stop(5)
    assert told[-1] == ("answer", {"answers": {"write": pytest.approx(expected)}, "cut": False})
    pieces = [content["text"] for _, content in told[:-1]]
    assert "".join(pieces) == expected["text"] and len(pieces) > 2


def test_a_bank_of_readers_takes_no_task_that_writes(modules: dict[str, Path], tmp_path: Path) -> None:
    bank = Bank.create(tmp_path / "shop.bank")
    bank.add(modules["probe"])
    with pytest.raises(IncompatibleModule, match="create another bank and add this task first") as told:
        bank.add(modules["write"])
    assert "which writes texts" in told.value.got and "writes" not in told.value.expected
    assert list(bank.tasks) == ["tiny"]


def test_a_bank_of_writers_takes_no_reader_on_another_network(
    modules: dict[str, Path], module: MakeModule, tmp_path: Path
) -> None:
    bank = Bank.create(tmp_path / "shop.bank")
    bank.add(modules["write"], "write")
    with pytest.raises(IncompatibleModule, match="belongs to another backbone"):
        bank.add(module(), "mood")
    assert list(bank.tasks) == ["write"]


def test_the_self_test_reads_texts_back(modules: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "module"
    shutil.copytree(modules["write"], folder)
    test = read_json(folder / "selftest.json")
    assert len(test[READ_BACK]) == len(test["logits"]) and all(number < 0 for number in test[READ_BACK])
    rows = [["another text", chance, cut] for _, chance, cut, *_ in test["logits"]]
    write_json(folder / "selftest.json", test | {"logits": rows})
    with pytest.raises(IncompatibleModule, match="other probabilities of texts"):
        TaskModule.load(folder)
    write_json(folder / "selftest.json", test)
    weights = safe_load(folder / "delta.safetensors")
    write_tensors(folder / "delta.safetensors", {name: weight + 1 for name, weight in weights.items()})
    told = {"delta_sha256": file_digest(folder / "delta.safetensors")}
    write_json(folder / "module.json", read_json(folder / "module.json") | told)
    with pytest.raises(IncompatibleModule, match="other probabilities of texts"):
        TaskModule.load(folder)


def graft(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out + err


def rows_of(path: Path, target: Callable[[str], str]) -> Path:
    words = ("good", "bad", "warm", "cold", "fine", "sad")
    texts = [f"the film was {words[i % 6]} {words[i // 6 % 6]}" for i in range(36)]
    path.write_text("".join(f"{json.dumps({'text': text, 'label': target(text)})}\n" for text in texts))
    return path


@pytest.mark.slow
def test_from_training_to_a_bank_on_the_command_line(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    last = rows_of(tmp_path / "last.jsonl", lambda text: text.split()[-1])
    mood = rows_of(tmp_path / "mood.jsonl", lambda text: str("good" in text))
    writes: tuple[Any, ...] = ("--kind", "generation", "--longest", "6", "--method")
    assert graft(capsys, "train", last, *writes, "lora", "--backbone", network, "--bank", "shop.bank")[0] == 0
    for flags in ((last, *writes, "ia3", "--task", "again", "--beams", "2"), (mood, "--method", "lora")):
        code, said = graft(capsys, "train", *flags, "--bank", "shop.bank")
        assert code == 0, said
    code, said = graft(capsys, "train", mood, "--method", "linear_probe", "--backbone", network, "--bank", "read.bank")
    assert code == 0, said
    code, said = graft(capsys, "train", last, *writes, "lora", "--bank", "read.bank")
    assert code == 2 and "the bank's tasks only read with this backbone" in said and "create another bank" in said
    assert graft(capsys, "train", last, *writes, "majority", "--bank", "read.bank")[0] == 0
    code, said = graft(capsys, "bank", "check", "shop.bank")
    assert code == 0 and said.count("bit-identical outputs") == 2 and said.count("bit-identical logits") == 1
    code, said = graft(capsys, "predict", "shop.bank", "last", "the film was good", "--also", "mood")
    assert code == 0 and "mood: " in said
    code, said = graft(capsys, "predict", "shop.bank", "again", "--file", mood, "--out", "out.csv")
    assert code == 0 and (tmp_path / "out.csv").read_text().startswith(
        "text,probability,log_probability,cut,alternatives\n"
    )
    assert graft(capsys, "predict", "shop.bank", "again", "--file", mood, "--keep", "text", "--out", "kept.csv")[0] == 0
    assert (tmp_path / "kept.csv").read_text().startswith("text,predicted.text,probability,")
    assert "chrf" in graft(capsys, "score", "shop.bank", "last", last)[1]
    run = read_json(tmp_path / "shop.bank" / "tasks" / "last" / "1" / "module.json")["run"]
    code, said = graft(capsys, "verify", run)
    assert code == 0 and "no output differs" in said


@pytest.mark.slow
def test_a_prompt_stands_in_a_bank_beside_a_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, PreTrainedTokenizerFast

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), pad_token="[PAD]")
    tokenizer.save_pretrained("gpt")
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 300, "bos_token_id": 2, "eos_token_id": 2}
    AutoModelForCausalLM.from_config(GPT2Config(vocab_size=len(tokenizer), **sizes)).save_pretrained("gpt")
    mood = rows_of(tmp_path / "mood.jsonl", lambda text: str("good" in text))
    asked = ("train", mood, "--bank", "shop.bank", "--method")
    assert graft(capsys, *asked, "prompt:shots=2", "--backbone", "hf:gpt")[0] == 0
    assert graft(capsys, *asked, "lora", "--task", "tuned")[0] == 0
    bank = Bank.open("shop.bank")
    rows = [(name, text) for name in ("mood", "tuned") for text in TEXTS]
    for (name, text), found in zip(rows, bank.predict(rows), strict=True):
        (alone,) = bank.module(name).predict([text])
        assert found["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-2)
    assert not bank.check()
    code, said = graft(capsys, "bank", "show", "shop.bank", "mood")
    assert code == 0 and "prompt" in said
    with pytest.raises(ConfigError):
        bank.predict([("mood", {"text_a": "so", "text_b": "good"})])


def asked_of(network: str, folder: Path) -> tuple[Task, Task, dict[str, Any]]:
    """A task that writes, one that reads, and how they are trained."""
    last = Task.from_file(rows_of(folder / "last.jsonl", lambda text: text.split()[-1]), kind="generation", longest=4)
    mood = Task.from_file(rows_of(folder / "mood.jsonl", lambda text: str("good" in text)))
    return last, mood, {"method": "lora:rank=2", "backbone": network, "epochs": 1, "runs": str(folder / "runs")}


@pytest.mark.slow
def test_a_stream_has_tasks_that_write_and_tasks_that_read(network: str, tmp_path: Path) -> None:
    last, mood, given = asked_of(network, tmp_path)
    tasks = [last, mood, replace(last, name="first")]
    found = stream(tasks, tmp_path / "shop.bank", strict=True, **given)
    assert not found.failed and [row["kind"] for row in found.content["tasks"]] == [
        "generation", "classification", "generation"
    ]  # fmt: skip
    assert not Bank.open(tmp_path / "shop.bank").check()
    more = stream([mood], tmp_path / "shop.bank", strict=True, **given)
    assert not more.failed and len(more.content["tasks"]) == 3


def test_a_stream_says_where_a_task_that_writes_has_no_place(network: str, tmp_path: Path) -> None:
    last, mood, given = asked_of(network, tmp_path)
    with pytest.raises(ConfigError, match="the first task must be one that writes") as told:
        stream([mood, last], tmp_path / "other.bank", **given)
    assert "name last first" in told.value.message
    with pytest.raises(ConfigError, match="a task that writes texts has none"):
        stream([last], out=tmp_path / "out", **given | {"method": "full-sequential"})
