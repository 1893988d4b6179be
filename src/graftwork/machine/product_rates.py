"""How fast a device multiplies in fp32 and in bf16, by the products that a layer of a small encoder is made of."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
SHAPE = (1024, 384, 1536)  # (tokens, in, out): a batch of tokens against the widest map of minilm
PRODUCTS = 4  # of each round: one of a frozen map; of one that learns the forward pass and two of its backward pass
LEAST_ROUNDS = 4
FINE = 1e-5  # seconds that a clock must tell apart


def product_rates(
    seconds: float, device: str = "cpu", shape: tuple[int, int, int] = SHAPE, threads: int | None = None
) -> dict[str, float]:
    """Precision -> FLOP per second, 2 per multiply-add, of its fastest round: of `LEAST_ROUNDS`, or as many as fit.

    For `seconds` the precisions take turns, so that what disturbs the machine meets both. `threads` of the processor
    take part; of one, its own time is taken, in which it waits for no core that others use. Draws none of torch's
    random numbers.
    """
    alone = threads == 1 and device == "cpu" and time.get_clock_info("thread_time").resolution < FINE
    before = torch.get_num_threads()
    if threads is not None and threads != before:
        torch.set_num_threads(threads)
    try:
        with torch.inference_mode(False), torch.enable_grad():  # whatever the caller is in
            with torch.random.fork_rng(devices=[]):
                rounds = {name: _round(shape, dtype, device) for name, dtype in PRECISIONS.items()}
            best = _fastest(rounds, seconds, time.thread_time if alone else time.perf_counter)
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
    tokens, wide, out = shape
    return {name: 2.0 * PRODUCTS * tokens * wide * out / taken for name, taken in best.items()}


def _fastest(rounds: dict[str, Callable[[], None]], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds of the quickest call of each: what disturbs a call only slows it down."""
    for call in rounds.values():
        call()  # the first one chooses the routine and packs the weight
    best, done, end = dict.fromkeys(rounds, float("inf")), 0, time.perf_counter() + seconds
    while done < LEAST_ROUNDS or time.perf_counter() < end:
        for name, call in rounds.items():
            begun = clock()
            call()
            best[name] = min(best[name], clock() - begun)
        done += 1
    return best


def _round(shape: tuple[int, int, int], dtype: torch.dtype, device: str) -> Callable[[], None]:
    """A frozen map and one that learns with its backward pass, called as the blocks of a backbone call theirs."""
    from graftwork.nn.packed_linear import LinearMap  # transformers comes with it, which takes a second

    tokens, wide, out = shape
    frozen, learning = (LinearMap(nn.Linear(wide, out)).to(device, dtype) for _ in range(2))
    frozen.requires_grad_(False)
    rows = torch.randn(tokens, wide).to(device, dtype).requires_grad_()  # (tokens, in)
    gradient = torch.randn(tokens, out).to(device, dtype)  # (tokens, out)

    def once() -> None:
        with torch.no_grad():
            frozen(rows)
        learning.weight.grad = learning.bias.grad = rows.grad = None
        learning(rows).backward(gradient)
        if device != "cpu":
            torch.cuda.synchronize()

    return once
