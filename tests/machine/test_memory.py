"""Batches are cut by what was learnt of memory, in the same way whenever the same was learnt."""

from __future__ import annotations

import errno
import gc
import json
import weakref

import pytest
import torch

from graftwork.machine.memory import Cut, Memory, OutOfMemory, Rows, answers_in_halves, attempt, in_halves, ran_out

ROWS = list(range(10))
CPU = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate"


def tens(part: object) -> int:
    """Positions of rows of ten tokens."""
    assert isinstance(part, list)
    return 10 * len(part)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), RuntimeError(CPU),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError("std::bad_alloc"), RuntimeError("could not create a primitive"), OutOfMemory("one example"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_memory_that_could_not_be_had(error: Exception) -> None:
    assert ran_out(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("shapes differ"),
        RuntimeError("could not create a primitive descriptor"),
        OSError(errno.ENOSPC, "No space left"),
        KeyError("x"),
    ],
)
def test_other_errors_are_other_errors(error: Exception) -> None:
    assert not ran_out(error)
    with pytest.raises(type(error)):
        attempt(lambda: (_ for _ in ()).throw(error))


def test_after_want_of_memory_for_a_kernel_there_are_none_of_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only then: the thread that found none could build no other."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    for told, goes_on in ((CPU, True), ("could not create a primitive", False)):
        assert attempt(lambda told=told: (_ for _ in ()).throw(RuntimeError(told))) == (None, told)
        assert torch.backends.mkldnn.enabled is goes_on


def test_nothing_is_cut_unless_something_ran_out() -> None:
    memory = Memory()
    memory.begin()
    assert memory.parts(ROWS, tens) == [ROWS]
    memory.done(1)
    assert memory.facts() == {}


def test_a_batch_is_halved_until_it_fits_and_later_ones_are_cut_alike() -> None:
    memory = Memory()
    memory.begin()
    memory.halve([ROWS], tens, "no memory")
    assert memory.parts(ROWS, tens) == [ROWS[:5], ROWS[5:]]
    memory.halve(memory.parts(ROWS, tens), tens, "no memory")
    assert [len(part) for part in memory.parts(ROWS, tens)] == [3, 2, 3, 2]
    memory.done(4)
    memory.begin()
    assert memory.parts(ROWS[:3], tens) == [ROWS[:3]] and len(memory.parts(ROWS, tens)) == 4
    memory.done(4)
    cuts = [{"step": 0, "positions": 50, "why": "no memory"}, {"step": 0, "positions": 30, "why": "no memory"}]
    assert memory.facts() == {"accumulation": {"parts": 4, "steps": 2, "cuts": cuts}}


def test_one_example_that_is_too_much_is_said() -> None:
    memory = Memory()
    memory.begin()
    with pytest.raises(OutOfMemory, match="one example of 10 tokens") as caught:
        memory.halve([[3]], tens, "no memory")
    assert caught.value.got == "no memory" and "smaller backbone" in caught.value.do


def test_the_same_cuts_come_again_at_the_same_steps() -> None:
    memory = Memory(cuts=[Cut(2, 50, "no memory")])
    found = []
    for _ in range(4):
        memory.begin()
        found.append(len(memory.parts(ROWS, tens)))
        memory.done(found[-1])
    assert found == [1, 1, 2, 2]


def test_what_was_learnt_is_gone_on_with() -> None:
    memory = Memory(bound=10**9)
    memory.begin()
    memory.allow(0, 64, 40)
    memory.done(len(memory.parts(ROWS, tens)))
    memory.passes["train"], memory.answers["fit"] = 2, 3
    again = Memory(bound=10**9)
    again.restore(json.loads(json.dumps(memory.state())))
    assert again.state() == memory.state() and again.parts(ROWS, tens) == memory.parts(ROWS, tens)
    assert not again.stale(0, 64) and again.stale(0, 90) and again.stale(1, 64)


def test_answers_come_in_halves_in_their_order() -> None:
    def work(part: object) -> list[int]:
        assert isinstance(part, list)
        if len(part) > 3:
            raise MemoryError
        return part

    found = in_halves(ROWS, work)
    assert [row for part in found for row in part] == ROWS and max(map(len, found)) == 3
    with pytest.raises(OutOfMemory, match="one example needs more"):
        in_halves(ROWS, lambda part: (_ for _ in ()).throw(MemoryError()))


def test_answers_in_halves_are_counted_by_whoever_is_answering() -> None:
    def work(part: Rows) -> int:
        if len(part) > 3:
            raise MemoryError
        return len(part)

    memory = Memory()
    with memory.answering("fit"):
        answers_in_halves(ROWS, work), answers_in_halves(ROWS[:2], work)
    answers_in_halves(ROWS, work)
    assert memory.in_parts() == {"answers_in_parts": {"fit": 1}} and not memory.facts()
    memory.restore(Memory().state() | {"answers": {"fit": 2, "evaluate": 1}})
    assert memory.answers == {"fit": 3, "evaluate": 1}, "of the attempts before too"


def test_what_was_held_is_free_before_the_next_try() -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        big = torch.zeros(9)
        held.append(weakref.ref(big))
        raise MemoryError

    gc.disable()
    try:
        assert attempt(work) == (None, "no memory left")
    finally:
        gc.enable()
    assert held[0]() is None
