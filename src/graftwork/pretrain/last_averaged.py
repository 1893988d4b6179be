"""Averaged checkpoints (Vaswani et al. 2017, arXiv:1706.03762): the mean of the last validated weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from graftwork.pretrain.objective import Optimiser

INNER, KEPT, STEPS = "inner.", "kept.", "steps"
RECENT = 0.1  # share of the steps so far that is averaged over: earlier weights of a short run would only hurt


class AveragingOptimiser:
    """Implements `Optimiser` and `Averages`, around the optimiser that takes the steps.

    The resulting weights are the mean of at most `count` copies: the current weights, and those at the last validations
    within the last tenth of the steps so far. Each copy is as large as the network.
    """

    def __init__(self, inner: Optimiser, parameters: Mapping[str, nn.Parameter], count: int):
        self.inner, self.parameters, self.count = inner, dict(parameters), count
        self.kept: dict[int, dict[str, Tensor]] = {}  # step of a validation -> weights, the latest last
        self.steps = 0

    def step(self, rate: float) -> float:
        """Take the inner optimiser's step; return the gradient norm before clipping."""
        self.steps += 1
        return self.inner.step(rate)

    def validated(self, nats: float) -> None:
        """Keep a copy of the weights; called after every validation."""
        self.kept = self._averaged()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Use the averaged weights within the block."""
        averaged = self._averaged()
        with torch.no_grad():
            if len(averaged) < 2:
                yield
                return
            for name, weight in self.parameters.items():
                weight.copy_(torch.stack([one[name] for one in averaged.values()]).mean(dim=0))
            try:
                yield
            finally:
                for name, weight in self.parameters.items():
                    weight.copy_(averaged[self.steps][name])

    def tensors(self) -> dict[str, Tensor]:
        """Return the inner optimiser's state, the copies and the number of steps."""
        found = {f"{INNER}{name}": tensor for name, tensor in self.inner.tensors().items()}
        for step, weights in self.kept.items():
            found |= {f"{KEPT}{step}.{name}": weight for name, weight in weights.items()}
        return found | {STEPS: torch.tensor(self.steps)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Resume from the state returned by `tensors`."""
        self.inner.restore({name.removeprefix(INNER): t for name, t in tensors.items() if name.startswith(INNER)})
        steps = sorted({int(name.split(".")[1]) for name in tensors if name.startswith(KEPT)})
        self.kept = {
            step: {name: tensors[f"{KEPT}{step}.{name}"].clone() for name in self.parameters} for step in steps
        }
        self.steps = int(tensors[STEPS])

    def _averaged(self) -> dict[int, dict[str, Tensor]]:
        """Return step -> weights of the copies that are averaged; the current weights come last."""
        own = {name: weight.detach().clone() for name, weight in self.parameters.items()}
        found = {step: weights for step, weights in self.kept.items() if step >= (1 - RECENT) * self.steps}
        found = {**found, self.steps: own}
        return {step: found[step] for step in [*found][-self.count :]}
