"""The driver of the benchmark notes what became of every request."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "bank"
BODY = json.dumps({"task": "mood", "text": "a"})


def opened(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bank_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"bank_{name}"] = module  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def driver() -> Iterator[ModuleType]:
    yield opened("driver")
    del sys.modules["bank_driver"]


def plan(running: Any, **changes: Any) -> dict[str, Any]:
    told = {"port": running.server.port, "token": running.client.token, "bodies": [BODY], "seconds": 0.3, "seed": 0}
    return told | {"clients": 4, "connections": 2, "rate": None} | changes


def test_clients_that_ask_again_when_they_are_answered(running: Any, driver: ModuleType) -> None:
    noted = asyncio.run(driver.drive(plan(running)))
    assert len(noted) >= 8 and {status for _, _, status in noted} == {200}
    assert all(0 < sent <= due for due, sent, _ in noted)


def test_requests_that_are_sent_when_they_are_due(running: Any, driver: ModuleType) -> None:
    noted = asyncio.run(driver.drive(plan(running, rate=200.0)))
    assert 30 < len(noted) < 100 and {status for _, _, status in noted} == {200}


def test_refusals_are_noted(serving: Any, driver: ModuleType) -> None:
    running = serving(queue_tokens=1)
    running.bank.seconds = 0.05
    noted = asyncio.run(driver.drive(plan(running, rate=300.0)))
    assert {status for _, _, status in noted} == {200, 429}


def test_a_server_that_is_not_there_is_a_failure(running: Any, driver: ModuleType) -> None:
    running.server.stop(notice_seconds=0)
    noted = asyncio.run(driver.drive(plan(running, rate=50.0)))
    assert noted and {status for _, _, status in noted} == {0}


def test_a_summary_counts_by_status() -> None:
    served = opened("served")
    told = served.summary([(0.2, 0.1, 200), (0.4, 0.3, 200), (0.02, 0.01, 429)], 2.0)
    assert told["statuses"]["200"]["count"] == 2 and told["statuses"]["200"]["per_second"] == 1.0
    assert told["statuses"]["200"]["since_due_ms"]["p50"] == 300.0
    assert told["statuses"]["429"]["since_sent_ms"]["max"] == 10.0
    del sys.modules["bank_served"]
