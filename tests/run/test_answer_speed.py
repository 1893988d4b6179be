"""Prediction speed: one example of median length for latency and cost, a batch for throughput."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.run import answer_speed
from graftwork.run.answer_speed import predict_speed

EXAMPLES = [Example(f"test/{size}", {"text": "x" * size}) for size in (9, 1, 50, 2, 3)]


class Slow:
    """Takes a hundredth of a second per call and a thousandth per example."""

    trained_parameters = 0

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.asked: list[Sequence[Example]] = []

    def logits(self, examples: Sequence[Example]) -> Any:
        self.asked.append(examples)
        time.sleep(0.01 + 0.001 * len(examples))
        return np.zeros((len(examples), 2))

    def delta(self) -> dict[str, Any]:
        return {}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        return 10.0 * sum(len(example.inputs["text"]) for example in examples), "model"


def test_latency_is_of_one_example_and_throughput_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_speed, "MANY", 40)
    fitted = Slow()
    found = predict_speed(fitted, EXAMPLES * 10)
    assert 0.011 <= found["predict_latency_seconds"] < 1
    assert 100 < found["predict_per_second"] <= 40 / 0.05
    assert len(fitted.asked[-1]) == 40
    monkeypatch.setattr(answer_speed, "ENOUGH", 0.01)
    assert 100 < predict_speed(fitted, EXAMPLES * 10)["predict_per_second"] <= 8 / 0.018
    assert len(fitted.asked[-1]) == answer_speed.SOME == 8, "some took long enough"


@pytest.mark.parametrize(
    ("rows", "of_one", "counts"),
    [(1000, 0.001, [32, 256]), (1000, 0.01, [32, 100]), (1000, 0.02, [32]), (40, 0.001, [32]), (9, 0.001, [9])],
)
def test_no_more_examples_than_take_a_second(
    rows: int, of_one: float, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_speed, "SOME", 32)
    monkeypatch.setattr(answer_speed, "MANY", 256)
    assert [count for count, _ in answer_speed.timed_counts(rows, lambda count: count * of_one)] == counts


def test_the_one_example_is_of_median_length() -> None:
    fitted = Slow()
    found = predict_speed(fitted, EXAMPLES)
    assert (found["predict_flops"], found["predict_flops_grade"]) == (30.0, "model")
    assert all(asked == [EXAMPLES[4]] for asked in fitted.asked[:-1])


def test_a_slow_method_is_not_repeated_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_speed, "REPEATS", 1000)
    monkeypatch.setattr(answer_speed, "SECONDS_AT_MOST", 0.05)
    fitted = Slow()
    predict_speed(fitted, EXAMPLES)
    assert 2 <= len(fitted.asked) < 10
