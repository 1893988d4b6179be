"""How fast products are: each precision by its quickest round, and nothing is left changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from graftwork.machine import product_rates as module
from graftwork.machine.product_rates import LEAST_ROUNDS, product_rates

SHAPE = (8, 16, 8)


def test_both_precisions_are_measured() -> None:
    rates = product_rates(0.001, shape=SHAPE, threads=1)
    assert list(rates) == ["fp32", "bf16"] and all(1e4 < rate < 1e14 for rate in rates.values())


def test_a_measurement_changes_nothing() -> None:
    torch.set_num_threads(2)
    try:
        seen: list[int] = []
        before = torch.get_rng_state()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_fastest", lambda *_: seen.append(torch.get_num_threads()) or {"fp32": 1.0})
            product_rates(0.0, shape=SHAPE, threads=1)
        assert seen == [1] and torch.get_num_threads() == 2
        assert bool(torch.equal(torch.get_rng_state(), before))
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_is_the_same_where_no_gradients_are_wanted(mode: Callable[[], torch.no_grad]) -> None:
    with mode():
        assert min(product_rates(0.0, shape=SHAPE, threads=1).values()) > 0


def test_precisions_take_turns_and_the_quickest_round_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = 0.0, []
    took = {"fp32": iter([9.0, 2.0, 5.0, 3.0, 4.0]), "bf16": iter([9.0, 8.0, 6.0, 7.0, 8.0])}  # the first: a warm-up

    def round_of(name: str) -> Callable[[], None]:
        def call() -> None:
            nonlocal now
            order.append(name)
            now += next(took[name])

        return call

    rounds = {name: round_of(name) for name in took}
    assert module._fastest(rounds, 0.0, lambda: now) == {"fp32": 2.0, "bf16": 6.0}
    assert order == ["fp32", "bf16"] * (1 + LEAST_ROUNDS)


def test_work_is_counted_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_fastest", lambda *_: {"fp32": 0.5})
    assert product_rates(0.0, shape=(2, 3, 5)) == {"fp32": 2 * 4 * 2 * 3 * 5 / 0.5}
