"""The server over a real bank: tiny modules on the tiny backbone, swapped, spoilt and emptied while it serves."""

from __future__ import annotations

import io
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank.bank import Bank
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting
from graftwork.io.files import read_json, write_json
from graftwork.module.task_module import save_module
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.serve.request_log import Records
from graftwork.serve.server import Server, bind, open_served
from graftwork.serve.server_limits import ServerLimits
from graftwork.serve.service import Service, Watcher
from graftwork.ship.export_bank import export_bank
from graftwork.testing import tiny_bench, tiny_dataset

TOKEN = "a-token-for-tests"
TEXT = "the film was so good"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A linear probe for classes, others for words and for pairs, and a baseline without a backbone."""
    wanted = {
        "mood": ("linear_probe", "classification"),
        "names": ("linear_probe", "tagging"),
        "guess": ("majority", "classification"),
        "same": ("linear_probe", "classification"),
    }
    made = {}
    for name, (method, kind) in wanted.items():
        data, parsed = tiny_dataset(kind, pair=name == "same"), parse_method(method)
        backbone = open_backbone("tiny_text", precision="fp32") if parsed.method.uses_backbone else None
        fitted = parsed.method.fit(tiny_bench(data, backbone, epochs=1))
        told = {"run": "run0", "method": parsed.config, "recipe": {}, "precision": "fp32", "backbone_seed": 0}
        told |= {"scores": {data.task.metrics[0]: 0.5}, "trained_parameters": fitted.trained_parameters}
        kept = data.test.examples[:2]
        setting = Setting(data.task.resolved(name=name), kinds.get(kind), backbone)
        made[name] = tmp_path_factory.mktemp(name) / "module"
        save_module(made[name], setting, fitted, told, kept, fitted.logits(kept))
    return made


@pytest.fixture
def shop(modules: dict[str, Path], tmp_path: Path) -> Bank:
    """As another process sees it."""
    bank = Bank.create(tmp_path / "shop.bank")
    for name, module in modules.items():
        bank.add(module, name)
    return bank


@pytest.fixture
def real(shop: Bank, client_of: Any) -> Iterator[Any]:
    service = Service(Bank.open(shop.path), ServerLimits(), Records(io.StringIO()))
    service.renew()
    server = Server(service, TOKEN, bind("127.0.0.1", 0), pause_seconds=0.02)
    server.start()
    yield client_of(server.port)
    server.stop(notice_seconds=0)


@pytest.fixture(params=["bank", pytest.param("exported", marks=pytest.mark.slow)])
def answering(request: pytest.FixtureRequest, shop: Bank, client_of: Any, tmp_path: Path) -> Iterator[Any]:
    """A client of the bank, or of what was exported of it, and the tasks that answer there."""
    names = set(shop.tasks) - {"guess"}  # which has no network, and so no graph
    if request.param == "exported":
        export_bank({name: shop.module(name) for name in sorted(names)}, tmp_path / "onnx", to="onnx")
    folder = tmp_path / "onnx" if request.param == "exported" else shop.path
    service = Service(open_served(folder, "cpu"), ServerLimits(), Records(io.StringIO()))
    service.renew()
    server = Server(service, TOKEN, bind("127.0.0.1", 0), pause_seconds=0.02)
    server.start()
    yield client_of(server.port), set(service.catalogue.tasks)
    server.stop(notice_seconds=0)


def again(module: Path, folder: Path) -> Path:
    """The same module with another card: another version of it."""
    shutil.copytree(module, folder)
    write_json(folder / "module.json", read_json(folder / "module.json") | {"note": "again"})
    return folder


def until(holds: Any) -> None:
    gate = threading.Event()
    for _ in range(500):
        if holds():
            return
        gate.wait(0.01)
    raise AssertionError("it did not happen")


def test_answers_are_those_of_the_bank(answering: Any, shop: Bank) -> None:
    client, tasks = answering
    status, answer = client.predict({"rows": [{"task": "*", "text": TEXT}, {"task": "names", "words": TEXT.split()}]})
    assert status == 200
    first, second = (row["answers"] for row in answer["rows"])
    alone = shop.predict_all(TEXT)
    assert first.keys() == alone.keys() & tasks and alone.keys() == {"mood", "names", "guess"}
    assert first["mood"]["label"] == alone["mood"]["label"]
    (words,) = shop.predict([("names", TEXT.split())])
    assert [span["text"] for span in second["names"]["spans"]] == [span["text"] for span in words["spans"]]
    assert first["mood"]["probabilities"] == pytest.approx(alone["mood"]["probabilities"], abs=1e-5)


def test_a_long_text_is_cut_and_a_short_one_is_not(answering: Any) -> None:
    client, _ = answering
    rows = [{"task": "mood", "text": "so good " * 2000}, {"task": "mood", "text": TEXT}]
    assert [row["cut"] for row in client.predict({"rows": rows})[1]["rows"]] == [True, False]


def test_the_state_of_the_server_is_told(answering: Any) -> None:
    client, tasks = answering
    assert client.ask("GET", "/readyz")[1] == {"ready": True, "draining": False, "tasks": len(tasks), "failed": []}
    listed = client.ask("GET", "/v1/tasks")[1]
    assert {task["name"] for task in listed["tasks"]} == tasks and listed["bank"]["backbone"]["id"] == "tiny_text"
    assert client.ask("GET", "/v1/tasks/names")[1]["kind"] == "tagging"
    assert f"graftwork_tasks {len(tasks)}.0" in client.ask("GET", "/metrics")[1]
    assert client.ask("GET", "/")[0] == 200
    assert client.predict({"task": "mode", "text": TEXT})[0] == 404


def test_a_text_is_cut_if_one_of_its_tasks_read_its_beginning_only(answering: Any) -> None:
    """The tagger reads windows, and so all of it."""
    client, _ = answering
    for tasks in (["names", "mood"], ["mood", "names"], "*"):
        assert client.predict({"task": tasks, "text": "so good " * 2000})[1]["rows"][0]["cut"] is True
    rows = [{"task": "names", "text": "so good " * 2000}, {"task": ["names", "mood"], "text": TEXT}]
    assert [row["cut"] for row in client.predict({"rows": rows})[1]["rows"]] == [False, False]


def test_swaps_while_clients_ask_fail_nobody(real: Any, shop: Bank, modules: dict[str, Path], tmp_path: Path) -> None:
    shop.add(again(modules["mood"], tmp_path / "again"), "mood")
    statuses: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            statuses.append(real.predict({"task": ["mood", "guess"], "text": TEXT})[0])

    clients = [threading.Thread(target=ask) for _ in range(2)]
    for client in clients:
        client.start()
    seen = set()
    for number in range(6):
        shop.rollback("mood", to=1 + number % 2)
        until(lambda number=number: real.ask("GET", "/v1/tasks/mood")[1]["version"] == 1 + number % 2)
        seen.add(1 + number % 2)
    done.set()
    for client in clients:
        client.join()
    assert seen == {1, 2} and len(statuses) > 5 and set(statuses) == {200}


@pytest.mark.parametrize("step", ["answers", "cut"])
def test_a_task_that_takes_other_inputs_since_it_was_asked(
    step: str, shop: Bank, modules: dict[str, Path], client_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Bank.open(shop.path)
    service = Service(served, ServerLimits(), Records(io.StringIO()))
    service.renew()
    server = Server(service, TOKEN, bind("127.0.0.1", 0), pause_seconds=3600)
    server.start()
    real = getattr(served, step)

    def late(rows: Any, *more: Any) -> Any:
        if shop.tasks["mood"].version == 1:
            shop.add(modules["same"], "mood")
            served.refresh()
        return real(rows, *more)

    monkeypatch.setattr(served, step, late)
    asked = {"task": ["guess", "mood"], "text": "so good " * 2000}
    status, answer, headers = client_of(server.port).ask("POST", "/v1/predict", asked)
    assert status == 503 and "was replaced" in answer["error"]["what"] and headers["retry-after"] == "1"
    service.renew()
    assert client_of(server.port).predict({"task": "mood", "text_a": "so", "text_b": "good"})[0] == 200
    server.stop(notice_seconds=0)


def test_a_delta_that_was_edited_is_told_and_the_others_answer(shop: Bank, client_of: Any) -> None:
    delta = shop.tasks["mood"].folder / "delta.safetensors"
    delta.write_bytes(delta.read_bytes()[:-1] + b"\x00")
    service = Service(Bank.open(shop.path), ServerLimits(), Records(io.StringIO()))
    service.renew()
    server = Server(service, TOKEN, bind("127.0.0.1", 0), pause_seconds=0.02)
    server.start()
    try:
        client = client_of(server.port)
        status, answer = client.predict({"task": "mood", "text": TEXT})
        assert status == 503 and "'mood' could not be opened" in answer["error"]["what"]
        assert str(shop.path) not in str(answer)
        assert client.predict({"task": "guess", "text": TEXT})[0] == 200
        assert client.ask("GET", "/readyz")[1]["failed"] == ["mood"]
        assert {task["name"] for task in client.ask("GET", "/v1/tasks")[1]["tasks"] if "failed" in task} == {"mood"}
    finally:
        server.stop(notice_seconds=0)


def test_a_former_version_answers_beside_the_current_one(real: Any, shop: Bank, modules: dict[str, Path]) -> None:
    before = real.predict({"task": "mood", "text": TEXT})[1]["rows"][0]["answers"]["mood"]
    shop.add(modules["guess"], "mood")
    until(lambda: real.ask("GET", "/v1/tasks/mood")[1]["version"] == 2)
    told = real.ask("GET", "/v1/tasks/mood")[1]
    assert [(one["name"], one["version"]) for one in told["versions"]] == [("mood@1", 1)]
    status, answer = real.predict({"task": ["mood", "mood@1"], "text": TEXT})
    answers = answer["rows"][0]["answers"]
    assert status == 200 and answers["mood@1"] == before != answers["mood"]
    assert real.ask("GET", "/v1/tasks/mood@1")[1]["versions"][0]["name"] == "mood@2"
    assert real.predict({"rows": [{"task": "mood@1", "text": TEXT}], "abstain_below": 0.999})[0] == 200
    assert real.predict({"task": "mood@3", "text": TEXT})[0] == 404
    assert "mood@1" not in {task["name"] for task in real.ask("GET", "/v1/tasks")[1]["tasks"]}


def test_files_that_were_put_back_are_opened_without_another_change(
    shop: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = shop.tasks["mood"].folder / "delta.safetensors"
    whole = delta.read_bytes()
    delta.write_bytes(whole[:-1] + b"\x00")
    records = Records(io.StringIO())
    told: list[str] = []
    monkeypatch.setattr(records, "event", lambda event, **facts: told.append(event))
    service = Service(Bank.open(shop.path), ServerLimits(), records)
    service.renew()
    watcher = Watcher(service, pause_seconds=0.01, retry_seconds=0.05)
    watcher.start()
    try:
        assert service.failed.keys() == {"mood"} and service.catalogue.failed.keys() == {"mood"}
        threading.Event().wait(0.3)  # it is tried again, and told once
        assert told.count("task failed to open") == 1
        delta.write_bytes(whole)
        until(lambda: not service.failed)
        assert "mood" in service.catalogue.tasks and not service.catalogue.failed
    finally:
        watcher.stop(5)


def test_a_folder_that_is_removed_goes_on_being_served(real: Any, shop: Bank) -> None:
    shutil.rmtree(shop.path)
    until(lambda: "trouble" in real.ask("GET", "/readyz")[1])
    assert real.predict({"task": "mood", "text": TEXT})[0] == 200
    assert real.ask("GET", "/v1/tasks/mood")[0] == 200


def test_a_bank_that_is_emptied_says_so(real: Any, shop: Bank) -> None:
    for name in list(shop.tasks):
        shop.remove(name)
    until(lambda: real.ask("GET", "/v1/tasks")[1]["tasks"] == [])
    assert {real.predict({"task": task, "text": TEXT})[0] for task in ("mood", "*")} == {404}
    assert real.ask("GET", "/readyz")[0] == 200
