"""Averaged checkpoints (Vaswani et al. 2017, arXiv:1706.03762): the mean of the last validated weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from graftwork.pretrain.objective import Optimiser

INNER, KEPT, MOVED = "inner.", "kept.", "moved"


class LastAveraged:
    """Implements `Optimiser` and `Averages`, around the optimiser that takes the steps.

    The answer is the mean of the `count` latest of the weights at validations and the weights now; each copy is as
    large as the network.
    """

    def __init__(self, inner: Optimiser, parameters: Mapping[str, nn.Parameter], count: int):
        self.inner, self.parameters, self.count = inner, dict(parameters), count
        self.kept: list[dict[str, Tensor]] = []  # of the last validations, the latest last
        self.moved = True  # whether a step was taken since

    def step(self, rate: float) -> float:
        """Take the inner optimiser's step; return the gradient norm before clipping."""
        self.moved = True
        return self.inner.step(rate)

    def validated(self, nats: float) -> None:
        """Keep a copy of the weights; called after every validation."""
        self.kept = [*self.kept, self._copy()][-self.count :]
        self.moved = False

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Use the averaged weights within the block."""
        own = self._copy()
        averaged = [*self.kept, own][-self.count :] if self.moved else self.kept
        with torch.no_grad():
            if len(averaged) < 2:
                yield
                return
            for name, weight in self.parameters.items():
                weight.copy_(torch.stack([one[name] for one in averaged]).mean(dim=0))
            try:
                yield
            finally:
                for name, weight in self.parameters.items():
                    weight.copy_(own[name])

    def tensors(self) -> dict[str, Tensor]:
        """Return the inner optimiser's state, the copies, and whether a step was taken since the last one."""
        found = {f"{INNER}{name}": tensor for name, tensor in self.inner.tensors().items()}
        for place, weights in enumerate(self.kept):
            found |= {f"{KEPT}{place}.{name}": weight for name, weight in weights.items()}
        return found | {MOVED: torch.tensor(self.moved)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Resume from the state returned by `tensors`."""
        self.inner.restore({name.removeprefix(INNER): t for name, t in tensors.items() if name.startswith(INNER)})
        places = sorted({int(name.split(".")[1]) for name in tensors if name.startswith(KEPT)})
        self.kept = [{name: tensors[f"{KEPT}{place}.{name}"].clone() for name in self.parameters} for place in places]
        self.moved = bool(tensors[MOVED])

    def _copy(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self.parameters.items()}
