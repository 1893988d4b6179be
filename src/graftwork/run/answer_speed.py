"""Prediction speed of a fitted method: one example at a time, and in batches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graftwork.core.example import Example, Input
from graftwork.core.media import Media
from graftwork.core.method import Fitted

WARM_UPS, REPEATS, SECONDS_AT_MOST = 3, 30, 0.5
SOME, MANY = 32, 256  # examples for the throughput: at first, and at most; fewer if the split has fewer
ENOUGH = 1.0  # seconds; no more examples than take about so long are tried after `SOME`


def predict_speed(fitted: Fitted, examples: Sequence[Example]) -> dict[str, Any]:
    """Measure the prediction fields of `Readings`; latency is the median over repeats of one median-length example."""
    by_length = sorted(examples, key=lambda example: sum(map(_length, example.inputs.values())))
    one = [by_length[len(by_length) // 2]]
    flops, grade = fitted.flops(one)  # also the first warm-up
    for _ in range(WARM_UPS):
        fitted.logits(one)
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < SECONDS_AT_MOST:
        began = time.perf_counter()
        fitted.logits(one)
        seconds.append(time.perf_counter() - began)

    def taken(count: int) -> float:
        began = time.perf_counter()
        fitted.logits(examples[:count])
        return time.perf_counter() - began

    *_, (count, took) = timed_counts(len(examples), taken)
    return {
        "predict_flops": flops,
        "predict_flops_grade": grade,
        "predict_latency_seconds": statistics.median(seconds),
        "predict_per_second": count / took,
    }


def timed_counts(rows: int, taken: Callable[[int], float]) -> Iterator[tuple[int, float]]:
    """Yield each number of rows that is answered for the throughput, and its seconds, which `taken` returns."""
    count = min(SOME, rows)
    yield count, (seconds := taken(count))
    more = min(MANY, rows, int(count * ENOUGH / max(seconds, 1e-9)))
    if more >= 2 * count:
        yield more, taken(more)


def _length(given: Input | Media) -> int:
    """Return the number of characters or words, the width of an image, or the frames of a sound."""
    return given.size[0] if isinstance(given, Media) else len(given)
