"""Gradient accumulation: a training step in as many parts as memory requires, and a model of its memory use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from graftwork.core.backbone import Encoded
from graftwork.core.length_buckets import positions_of
from graftwork.core.method import Workbench
from graftwork.core.model import Model
from graftwork.machine.memory import OutOfMemory, Rows, attempt, too_large_alone
from graftwork.units import show

PROCESS_BYTES = 700_000_000  # the interpreter, the libraries and small data; nothing of it is on an accelerator
PEAK = 1.5  # peak memory of a step / what it saves for its backward pass, at most
MOMENTS = 8  # bytes per trained parameter, beside its gradient and the flat gradient copy

RunPart = Callable[[Rows, Tensor, float], float]  # rows, targets, share of the batch -> share x loss; gradients add up


def in_parts(
    model: Model,
    bench: Workbench,
    encoded: Encoded,
    rows: Rows,
    targets: Tensor,
    weight: Callable[[Tensor], float],
    run: RunPart,
) -> float:
    """Run one step over `rows` with targets (B, …) or (W, …); return the loss, with gradients on the parameters.

    `weight` returns, for the targets of a part, the number that its loss is averaged over.

    In one part this is just `run`. Raises `OutOfMemory` if a single example does not fit.
    """
    memory, known = bench.memory, len(bench.memory.cuts)

    def positions(part: Rows) -> int:
        return positions_of(encoded, part)

    def work(parts: Sequence[Rows]) -> float:
        if len(parts) == 1:
            return run(rows, targets, 1.0)
        answers = _split(encoded, targets, parts)
        weights = [weight(part) for part in answers]
        return math.fsum(map(run, parts, answers, [weight / (sum(weights) or 1.0) for weight in weights]))

    memory.begin()
    length = int(encoded.lengths[list(rows)].max())
    if memory.stale(model.start, length):
        longest = max(range(len(rows)), key=lambda place: positions([rows[place]]))
        own = _split(encoded, targets, [[row] for row in rows])[longest]
        measure(model, bench, length, positions([rows[longest]]), lambda: run([rows[longest]], own, 1.0))
    while True:
        parts = memory.parts(rows, positions)
        loss, why = attempt(partial(work, parts))
        if loss is not None:
            memory.done(len(parts))
            for cut in memory.cuts[known:]:
                bench.log({"cut": asdict(cut)})
            return loss
        forget_gradients(model)
        memory.halve(parts, positions, why)


def _split(encoded: Encoded, targets: Tensor, parts: Sequence[Rows]) -> tuple[Tensor, ...]:
    """Split the targets of a batch by its parts."""
    return torch.split(targets, [len(encoded.answered(np.array(part))) for part in parts])


def measure(model: Model, bench: Workbench, length: int, positions: int, run: Callable[[], float]) -> None:
    """Bound the size of parts by the memory that `run` needs for one example of `length` tokens, `positions` in all.

    Raises `OutOfMemory` where that example alone exceeds the bound.
    """
    memory = bench.memory
    assert memory.bound is not None and bench.setting.backbone is not None
    taken, held = step_bytes(model, run), held_bytes(model, bench.setting.backbone.module)
    if held + taken > memory.bound:
        raise OutOfMemory(
            f"one example of {positions:,} tokens takes more than --max-memory",
            got=f"about {show(held, 'bytes')} for weights, optimiser and process, {show(taken, 'bytes')} beside them",
            expected=f"at most {show(memory.bound, 'bytes')}",
            do="allow more, cut long texts, or use a smaller backbone or a method that trains fewer blocks",
        )
    memory.allow(model.start, length, int((memory.bound - held) * positions / taken))


def held_bytes(model: Model, backbone: nn.Module) -> float:
    """Return the bytes held through all steps: weights, each once; gradients, moments and best values of the delta."""
    weights = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for module in (backbone, model)
        for tensor in (*module.parameters(), *module.buffers())
    }
    trained = sum(weight.numel() * (4 + MOMENTS + 3 * weight.element_size()) for weight in model.delta().values())
    return sum(weights.values()) + trained + (PROCESS_BYTES if model.device.type == "cpu" else 0)


def step_bytes(model: Model, run: Callable[[], float]) -> float:
    """Estimate the peak bytes of a forward and backward pass beyond `held_bytes`. Raises `OutOfMemory`."""
    saved: dict[int, int] = {}
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss, why = attempt(run)
    forget_gradients(model)
    if loss is None:
        raise too_large_alone(why)
    return PEAK * sum(saved.values())


def forget_gradients(model: Model) -> None:
    """Clear the gradients, such as those of an interrupted pass."""
    for weight in model.delta().values():
        weight.grad = None
