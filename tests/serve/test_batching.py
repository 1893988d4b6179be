"""The queue: what is computed together, who is refused, and that nobody's mistake is another's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from graftwork.core.example import Example
from graftwork.serve.batching import Batcher, Rows
from graftwork.serve.http_errors import HttpRefusal
from graftwork.serve.request_parsing import Piece
from graftwork.serve.server_limits import ServerLimits

LIMITS = ServerLimits(batch_tokens=40, queue_tokens=40, linger_seconds=0.0)  # a request's share is 10


def pieces(*texts: str, tokens: int = 5) -> list[Piece]:
    return [Piece("mood", Example(text, {"text": text}), tokens) for text in texts]


class Bench:
    """A batcher whose batches wait at `gate`."""

    def __init__(self, limits: ServerLimits):
        self.gate, self.batches, self.told = threading.Event(), [], []
        self.batcher = Batcher(self.compute, limits, lambda *told: self.told.append(told))
        self.batcher.start()

    def compute(self, rows: Rows, tell: Any = None) -> list[dict[str, Any]]:
        assert self.gate.wait(5)
        self.batches.append([example.id for _, example in rows])
        if any("bad" in example.id for _, example in rows):
            raise ValueError("bad row")
        return [{"value": example.id} for _, example in rows]

    async def blocked(self) -> asyncio.Future[Any]:
        """A first request that the thread is busy with."""
        ticket = self.batcher.put(pieces("first"))
        while self.batcher.waiting[0]:
            await asyncio.sleep(0.001)
        return ticket.result


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**limits: Any) -> Bench:
        made.append(Bench(replace(LIMITS, **limits)))
        return made[-1]

    yield make
    for one in made:
        one.gate.set()
        one.batcher.stop(5)


def values(answers: list[dict[str, Any]]) -> list[str]:
    return [answer["value"] for answer in answers]


def test_what_comes_while_a_batch_runs_is_the_next_one(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        first = await made.blocked()
        tickets = [made.batcher.put(pieces(name)) for name in "abc"]
        made.gate.set()
        assert values(await first) == ["first"]
        assert [values(await ticket.result) for ticket in tickets] == [["a"], ["b"], ["c"]]

    asyncio.run(go())
    assert made.batches == [["first"], ["a", "b", "c"]]
    assert [told[:2] for told in made.told] == [(1, 5), (3, 15)]
    assert made.told[0][2] >= 0


def test_a_batch_has_so_many_tokens_at_most(bench: Any) -> None:
    made = bench(queue_tokens=1000)

    async def go() -> None:
        await made.blocked()
        tickets = [made.batcher.put(pieces(str(i))) for i in range(20)]
        made.gate.set()
        await asyncio.gather(*(ticket.result for ticket in tickets))

    asyncio.run(go())
    assert [len(batch) for batch in made.batches] == [1, 8, 8, 4]


def test_one_row_larger_than_a_batch_is_computed_alone(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        await made.blocked()
        tickets = [made.batcher.put(pieces(name, tokens=size)) for name, size in (("a", 5), ("huge", 500), ("b", 5))]
        made.gate.set()
        await asyncio.gather(*(ticket.result for ticket in tickets))

    asyncio.run(go())
    assert made.batches == [["first"], ["a"], ["huge"], ["b"]]


def test_a_long_request_shares_its_batches_with_those_behind_it(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        await made.blocked()
        long = made.batcher.put(pieces(*(f"l{i}" for i in range(12))))
        short = made.batcher.put(pieces("s"))
        made.gate.set()
        assert values(await long.result) == [f"l{i}" for i in range(12)]
        assert values(await short.result) == ["s"]

    asyncio.run(go())
    assert "s" in made.batches[1] and len(made.batches) == 3


def test_a_full_queue_refuses_at_once_and_a_long_request_fills_only_its_share(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        await made.blocked()
        made.batcher.put(pieces(*"0123456789"))  # counts for 10 of 40
        for name in "abcdef":
            made.batcher.put(pieces(name))
        assert made.batcher.waiting == (7, 40) and made.batcher.full
        began = time.monotonic()
        with pytest.raises(HttpRefusal) as refused:
            made.batcher.put(pieces("g"))
        assert time.monotonic() - began < 0.5
        assert refused.value.status == 429 and refused.value.retry_after == 1

    asyncio.run(go())
    made.gate.set()


def test_a_failing_request_fails_alone(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        await made.blocked()
        good, bad, fine = (made.batcher.put(pieces(name)) for name in ("good", "bad", "fine"))
        made.gate.set()
        assert values(await good.result) == ["good"] and values(await fine.result) == ["fine"]
        with pytest.raises(ValueError, match="bad row"):
            await bad.result

    asyncio.run(go())


def test_what_is_dropped_is_not_computed(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        await made.blocked()
        gone, stays = made.batcher.put(pieces("gone")), made.batcher.put(pieces("stays"))
        made.batcher.drop(gone)
        assert made.batcher.waiting == (1, 5)
        made.gate.set()
        assert values(await stays.result) == ["stays"] and not gone.result.done()

    asyncio.run(go())
    assert made.batches == [["first"], ["stays"]]


def test_stopping_answers_what_is_queued(bench: Any) -> None:
    made = bench()

    async def go() -> None:
        first = await made.blocked()
        ticket = made.batcher.put(pieces("last"))
        made.gate.set()
        await asyncio.get_running_loop().run_in_executor(None, made.batcher.stop, 5)
        assert values(await first) == ["first"] and values(await ticket.result) == ["last"]

    asyncio.run(go())
    assert not made.batcher.alive


def test_an_idle_machine_does_not_linger_and_a_busy_one_does(bench: Any) -> None:
    made = bench(linger_seconds=0.5)
    made.gate.set()

    async def go() -> None:
        began = time.monotonic()
        await made.batcher.put(pieces("first")).result
        assert time.monotonic() - began < 0.45
        tickets = [made.batcher.put(pieces("a"))]
        await asyncio.sleep(0.02)
        tickets.append(made.batcher.put(pieces("b")))
        await asyncio.gather(*(ticket.result for ticket in tickets))

    asyncio.run(go())
    assert made.batches == [["first"], ["a", "b"]]
