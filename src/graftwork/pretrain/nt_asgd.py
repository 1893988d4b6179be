"""NT-ASGD: averaged SGD that starts averaging when validation stops improving (Merity et al. 2017, arXiv:1708.02182,
algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

PATIENCE = 5  # validations without improvement before averaging starts: n in the paper
AVERAGE = "average."


class NtAsgd:
    """Implements `Optimiser` and `Averages`. Plain SGD, global gradient norm clipped at `clip`, decay on all weights.

    Averaging starts once a loss on validation is above the lowest one before the last `PATIENCE` validations; the
    result is then the mean of the weights since. `rates` maps parameter names to factors on the learning rate.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        clip: float,
        rates: Mapping[str, float],
    ):
        self.parameters, self.rates = dict(parameters), rates
        self.learning_rate, self.weight_decay, self.clip = learning_rate, weight_decay, clip
        self.validations: list[float] = []
        self.averages: dict[str, Tensor] = {}  # empty until averaging starts
        self.averaged = 0  # steps in the averages

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """Update the weights at `rate` x the learning rate; return the gradient norm before clipping."""
        gradients = {name: weight.grad for name, weight in self.parameters.items() if weight.grad is not None}
        norm = float(torch.stack([gradient.square().sum() for gradient in gradients.values()]).sum().sqrt())
        if not math.isfinite(norm):
            return norm
        scale = min(1.0, self.clip / norm) if norm > 0 else 1.0
        self.averaged += bool(self.averages)
        for name, weight in self.parameters.items():
            speed = self.learning_rate * rate * self.rates.get(name, 1.0)
            weight.mul_(1 - speed * self.weight_decay)
            if name in gradients:
                weight.add_(gradients[name], alpha=-speed * scale)
            if self.averages:
                self.averages[name].lerp_(weight, 1 / self.averaged)
            weight.grad = None
        return norm

    def validated(self, nats: float) -> None:
        """Record the mean validation loss per prediction; called after every validation."""
        before = self.validations[: max(0, len(self.validations) - PATIENCE)]
        if not self.averages and before and nats > min(before):
            self.averages = {name: weight.detach().clone() for name, weight in self.parameters.items()}
        self.validations.append(nats)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Use the averaged weights within the block, if there are any."""
        with torch.no_grad():
            if not self.averaged:
                yield
                return
            moved = {name: weight.detach().clone() for name, weight in self.parameters.items()}
            self._set(self.averages)
            try:
                yield
            finally:
                self._set(moved)

    def tensors(self) -> dict[str, Tensor]:
        """Return all state that the next step depends on, other than the weights."""
        kept = {f"{AVERAGE}{name}": average for name, average in self.averages.items()}
        kept["averaged"] = torch.tensor(self.averaged)
        kept["validations"] = torch.tensor(self.validations, dtype=torch.float64)
        return kept

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Resume from the state returned by `tensors`."""
        self.averages = {
            name.removeprefix(AVERAGE): tensor.clone() for name, tensor in tensors.items() if name.startswith(AVERAGE)
        }
        self.averaged = int(tensors["averaged"])
        self.validations = tensors["validations"].tolist()

    def _set(self, weights: Mapping[str, Tensor]) -> None:
        for name, weight in self.parameters.items():
            weight.copy_(weights[name])
