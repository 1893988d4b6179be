"""A few hundred of the requests that `benchmarks/bank/fuzz.py` sends by the hundred thousand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graftwork.serve.openapi import openapi

FUZZING = Path(__file__).resolve().parents[2] / "benchmarks" / "bank" / "fuzzing.py"
TOKEN = "a-token-for-tests"


@pytest.fixture(scope="module")
def fuzzing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bank_fuzzing", FUZZING)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(3))
def test_odd_requests_are_refused_and_tell_nothing(running: Any, fuzzing: ModuleType, seed: int) -> None:
    fuzzer = fuzzing.Fuzzer(openapi(), list(running.bank.tasks), TOKEN, seed)
    seen = set()
    for _ in range(120):
        raw, whole = fuzzer.request()
        heard = fuzzing.exchange(running.server.port, raw, 5.0 if whole else 0.02)
        assert not fuzzing.faults(heard) and (heard or not whole), (raw[:500], heard[:500])
        seen.add(heard[9:12])
    assert {b"200", b"400", b"422"} <= seen
    assert not [line for line in running.lines() if line.get("event") == "internal error"]
    assert running.client.predict({"task": "mood", "text": "a"})[0] == 200


def test_the_same_seed_draws_the_same_requests(fuzzing: ModuleType) -> None:
    first, again, other = (fuzzing.Fuzzer(openapi(), ["mood"], TOKEN, seed) for seed in (1, 1, 2))
    drawn = [[fuzzer.request() for _ in range(20)] for fuzzer in (first, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("heard", "only_head", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", False, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", False, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", True, True),
        (b"HTTP/1.1 100 Continue\r\n\r\n", False, False),
        (b"HTTP/1.1 200 OK\r\nContent-Le", True, False),
    ],
)
def test_a_whole_answer_is_known(fuzzing: ModuleType, heard: bytes, only_head: bool, whole: bool) -> None:
    assert fuzzing.is_whole(heard, only_head) is whole


@pytest.mark.parametrize(
    ("heard", "fault"),
    [
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", "status 500"),
        (b"HTTP/1.1 422 X\r\n\r\nTraceback (most recent", "inside: Traceback"),
        (b"HTTP/1.1 422 X\r\n\r\nin /tmp/shop.bank", "inside: /tmp/"),
        (b"HTTP/1.1 422 X\r\n\r\nKeyError: 'task'", "inside: KeyError"),
        (b"garbage", "no HTTP"),
        (b"HTTP/1.1 422 X\r\n\r\nthe body is not JSON", None),
        (b"", None),
    ],
)
def test_faults_are_found(fuzzing: ModuleType, heard: bytes, fault: str | None) -> None:
    assert fuzzing.faults(heard) == ([fault] if fault else [])
