"""Features of the test split computed once: the same answers to the last bit, one pass, and nobody gets it for free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.machine.memory import Memory
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import answer_order, shared_features
from graftwork.train.shared_features import PooledOnce

BACKBONE = open_backbone("tiny_text", precision="fp32")
DATA = tiny_dataset(rows=40)


@pytest.mark.parametrize("method", ["linear_probe", "prototype", "scalar_mix:epochs=1"])
def test_every_probe_answers_as_it_does_alone(method: str) -> None:
    fitted: Any = parse_method(method).method.fit(tiny_bench(DATA, BACKBONE))
    once = PooledOnce(BACKBONE, DATA.test.examples)
    for _ in range(2):
        assert np.array_equal(once.logits(fitted)[0], fitted.logits(DATA.test.examples))


def test_the_backbone_runs_once_and_later_runs_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: Any = parse_method("prototype").method.fit(tiny_bench(DATA, BACKBONE))
    once, calls = PooledOnce(BACKBONE, DATA.test.examples), list[int]()
    real = type(BACKBONE).states
    monkeypatch.setattr(type(BACKBONE), "states", lambda *given: (calls.append(1), real(*given))[1])
    first, second = once.logits(fitted)[1], once.logits(fitted)[1]
    assert len(calls) == 1
    assert first.wall_seconds == 0 and second.wall_seconds > 0 and second.cpu_seconds > 0


def test_what_finds_no_memory_goes_through_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: Any = parse_method("prototype").method.fit(tiny_bench(DATA, BACKBONE))
    whole, read, real = fitted.logits(DATA.test.examples), list[int](), type(BACKBONE).states

    def short(self: Any, inputs: Any) -> Any:
        read.append(len(inputs["input_ids"]))
        if read[-1] > 3:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return real(self, inputs)

    monkeypatch.setattr(type(BACKBONE), "states", short)
    once = PooledOnce(BACKBONE, DATA.test.examples)
    for _ in range(2):
        with (memory := Memory()).answering("evaluate"):
            np.testing.assert_allclose(once.logits(fitted)[0], whole, rtol=1e-5, atol=1e-5)
        assert memory.in_parts() == {"answers_in_parts": {"evaluate": 1}}, "it is told by every run that uses it"
    assert read[0] > 3 and sum(rows for rows in read if rows <= 3) == len(DATA.test.examples)


def test_a_pass_that_failed_leaves_nothing_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_order, "EXAMPLES_AT_ONCE", 2)
    fitted: Any = parse_method("prototype").method.fit(tiny_bench(DATA, BACKBONE))
    once, alone, calls = PooledOnce(BACKBONE, DATA.test.examples), fitted.logits(DATA.test.examples), list[int]()
    real = type(BACKBONE).states

    def failing(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("in the third batch")
        return real(*given)

    monkeypatch.setattr(type(BACKBONE), "states", failing)
    with pytest.raises(ValueError, match="third"):
        once.logits(fitted)
    found: Any = once.logits(fitted)[0]
    assert np.array_equal(found, alone)


def test_whom_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    once = PooledOnce(BACKBONE, DATA.test.examples)
    assert once.serves(BACKBONE, DATA.test.examples)
    assert not once.serves(BACKBONE, DATA.validation.examples)
    assert not once.serves(open_backbone("random:tiny_text", precision="fp32"), DATA.test.examples)
    monkeypatch.setattr(shared_features, "MOST_BYTES", 100)
    assert not once.serves(BACKBONE, DATA.test.examples)
