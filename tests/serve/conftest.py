"""A real server on this machine over a bank that needs no network to answer."""

from __future__ import annotations

import http.client
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graftwork.bank.task_version import TaskEntry
from graftwork.core.example import Example
from graftwork.errors import GraftworkError, IncompatibleModule, UnknownName
from graftwork.machine.memory import OutOfMemory
from graftwork.serve.request_log import Records
from graftwork.serve.server import Server, bind
from graftwork.serve.server_limits import ServerLimits
from graftwork.serve.service import Service

TOKEN = "a-token-for-tests"
CARD = SimpleNamespace(id="tiny_text", revision="0" * 64, blocks=2)
ROLES = {
    "mood": ("text",),
    "topic": ("text",),
    "names": ("words",),
    "same": ("text_a", "text_b"),
    "asks": ("question", "words"),
    "picks": ("text", "choices"),
    "flowers": ("image",),
}


def described(roles: Sequence[str], kind: str = "classification") -> dict[str, Any]:
    """As much of a `module.json` as the server reads."""
    backbone = {"id": "tiny_text", "revision": "0" * 64, "blocks": 2, "max_length": 64}
    return {
        "format": 1,
        "task": {"name": "x", "kind": kind, "labels": ["bad", "good"], "metrics": ["accuracy"]},
        "roles": list(roles),
        "backbone": backbone,
        "precision": "fp32",
        "method": {"name": "linear_probe"},
        "recipe": {"epochs": 1},
        "run": "7d0ff04b",
        "scores": {"accuracy": 0.9},
        "costs": {"stored_bytes": {"value": 1000}},
        "trained_parameters": 10,
    }


@dataclass
class StandIn:
    """A bank whose answers say what was asked; `gate` holds its batches up, `poison` makes a text fail."""

    path: Path
    tasks: dict[str, Any] = field(default_factory=dict)
    by_version: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    gate: threading.Event = field(default_factory=threading.Event)
    entered: int = 0  # batches that have begun
    batches: list[list[tuple[str, Example]]] = field(default_factory=list)
    coming: dict[str, Any] | None = None  # what the next `refresh` finds
    failing: dict[str, str] = field(default_factory=dict)
    unreadable: GraftworkError | None = None
    card: Any = field(default_factory=lambda: CARD)
    precision: str = "fp32"
    spoken: threading.Event = field(default_factory=threading.Event)  # until it is set, a text stops at its first word
    ended: list[BaseException] = field(default_factory=list)  # what ended the telling of texts

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Any = None) -> list[dict[str, Any]]:
        self.entered += 1
        assert self.gate.wait(10)
        self.batches.append(list(rows))
        time.sleep(self.seconds)
        for name, example in rows:
            if name not in self.tasks:
                raise UnknownName("task", name, self.tasks)
            if "damaged" in str(example.inputs.values()):
                raise IncompatibleModule("delta.safetensors is another one", where=f"{self.path}/tasks")
            if "enormous" in str(example.inputs.values()):
                raise OutOfMemory("one example needs more memory than is available", got="can't allocate memory")
            if "poison" in str(example.inputs.values()):
                raise ZeroDivisionError("a secret of /the/inside")
        if tell is not None:
            return [self.told(place, example, tell) for place, (_, example) in enumerate(rows)]
        return [{"label": f"{name}: {next(iter(example.inputs.values()))}"} for name, example in rows]

    def told(self, place: int, example: Example, tell: Callable[[int, str], None]) -> dict[str, Any]:
        """Write the text of an example again, told word by word."""
        said = ""
        try:
            for word in example.inputs["text"].split():
                said = f"{said} {word}".strip()
                tell(place, said)
                while not self.spoken.wait(0.005):
                    tell(place, said)
                if word == "broken":
                    raise ZeroDivisionError("a secret of /the/inside")
        except BaseException as error:
            self.ended.append(error)
            raise
        return {"text": said, "log_probability": -1.5, "cut": False}

    def cut(self, rows: Sequence[tuple[str, Any]]) -> list[bool]:
        return [len(str(given.get("text", ""))) > 200 for _, given in rows]

    def refresh(self) -> None:
        if self.unreadable:
            raise self.unreadable
        if self.coming is not None:
            self.tasks, self.coming = self.coming, None

    def load_all(self) -> dict[str, str]:
        return dict(self.failing)


def entries(names: Mapping[str, Sequence[str]], folder: Path) -> dict[str, Any]:
    return {
        name: TaskEntry(name, 1, "", 1000, "", folder / name / "1", described(roles), has_board=name == "mood")
        for name, roles in names.items()
    }


@dataclass
class Client:
    """Asks one server."""

    port: int
    token: str | None = TOKEN

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        """Status, JSON (or text), headers. A body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if content is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, content, sent | {k.replace("_", "-"): v for k, v in headers.items()})
            response = connection.getresponse()
            text = response.read().decode()
            told = {name.lower(): value for name, value in response.getheaders()}
            as_json = told.get("content-type", "").startswith("application/json")
            return response.status, json.loads(text) if as_json and text else text, told
        finally:
            connection.close()

    def predict(self, body: Any) -> tuple[int, Any]:
        status, answer, _ = self.ask("POST", "/v1/predict", body)
        return status, answer


@dataclass
class Running:
    """A server, what it serves, and what it logged."""

    server: Server
    bank: StandIn
    client: Client
    log: io.StringIO

    def lines(self) -> list[dict[str, Any]]:
        self.server.service.records._write()
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that happens in another thread."""
        end = time.monotonic() + 5
        while not holds():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.005)


@pytest.fixture
def bank(tmp_path: Path) -> StandIn:
    standing = StandIn(tmp_path / "shop.bank", entries(ROLES, tmp_path / "shop.bank" / "tasks"))
    standing.path.mkdir()
    (standing.path / "bank.json").write_text("{}")
    standing.gate.set()
    return standing


@pytest.fixture(scope="module")
def ending() -> Iterator[Callable[[Server], None]]:
    """Ends a server beside the tests that follow: it takes a fifth of a second of waiting. All have ended at last."""
    with ThreadPoolExecutor(max_workers=8) as threads:
        ended = []
        yield lambda server: ended.append(threads.submit(server.stop, notice_seconds=0))
        for one in ended:
            one.result(timeout=30)


@pytest.fixture
def serving(bank: StandIn, ending: Callable[[Server], None]) -> Iterator[Callable[..., Running]]:
    """Starts servers with such limits, and ends them."""
    started: list[Running] = []

    def start(log_texts: bool = False, **limits: Any) -> Running:
        log = io.StringIO()
        service = Service(bank, replace(ServerLimits(), **limits), Records(log), log_texts=log_texts)
        service.renew()
        server = Server(service, TOKEN, bind("127.0.0.1", 0), pause_seconds=0.02)
        server.start()
        started.append(Running(server, bank, Client(server.port), log))
        return started[-1]

    yield start
    bank.gate.set()
    for one in started:
        ending(one.server)


@pytest.fixture
def running(serving: Callable[..., Running]) -> Running:
    return serving()


@pytest.fixture
def client_of() -> Callable[[int], Client]:
    return Client
