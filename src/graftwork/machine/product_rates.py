"""Measurement of a device's matrix product rates in fp32 and bf16, on the products of a small encoder's layer."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
SHAPE = (1024, 384, 1536)  # (tokens, in, out): a batch of tokens times the widest linear layer of minilm
PRODUCTS = 4  # per round: one of a frozen linear layer, three of a trained one (one forward, two backward)
LEAST_ROUNDS = 4
FINE = 1e-5  # seconds: coarsest usable resolution of a clock


def product_rates(
    seconds: float, device: str = "cpu", shape: tuple[int, int, int] = SHAPE, threads: int | None = None
) -> dict[str, float]:
    """Return the FLOP/s of each precision in its fastest round, counting 2 FLOP per multiply-add.

    The precisions alternate for `seconds`, and for at least `LEAST_ROUNDS` rounds, so that disturbances affect both.
    With `threads=1` on the processor, thread time is measured, which excludes waits for busy cores; None leaves torch's
    number of threads. Torch's random state is unchanged.
    """
    alone = threads == 1 and device == "cpu" and time.get_clock_info("thread_time").resolution < FINE
    before = torch.get_num_threads()
    if threads is not None and threads != before:
        torch.set_num_threads(threads)
    try:
        with torch.inference_mode(False), torch.enable_grad():  # whatever the caller's mode
            with torch.random.fork_rng(devices=[]):
                rounds = {name: _round(shape, dtype, device) for name, dtype in PRECISIONS.items()}
            best = _fastest(rounds, seconds, time.thread_time if alone else time.perf_counter)
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
    tokens, wide, out = shape
    return {name: 2.0 * PRODUCTS * tokens * wide * out / taken for name, taken in best.items()}


def _fastest(rounds: dict[str, Callable[[], None]], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Return the seconds of each function's fastest call, since disturbances only slow a call down."""
    for call in rounds.values():
        call()  # the first call selects the routine and packs the weight
    best, done, end = dict.fromkeys(rounds, float("inf")), 0, time.perf_counter() + seconds
    while done < LEAST_ROUNDS or time.perf_counter() < end:
        for name, call in rounds.items():
            begun = clock()
            call()
            best[name] = min(best[name], clock() - begun)
        done += 1
    return best


def _round(shape: tuple[int, int, int], dtype: torch.dtype, device: str) -> Callable[[], None]:
    """Return a function that runs a frozen linear layer, and a trained one with its backward pass, as in a block."""
    from graftwork.nn.packed_linear import LinearMap  # imports transformers, which takes a second

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
