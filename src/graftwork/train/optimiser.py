"""AdamW over one flat fp32 copy of the trained parameters (Loshchilov & Hutter 2019, arXiv:1711.05101).

Weights that compute in bf16 keep their fp32 master here; fp32 weights are views of the flat vector itself. One
vector means one kernel for the norm and one for the update, whatever the number of parameters. Only the rows of an
embedding table that a batch touches are updated: half of a small encoder's weights are untouched rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

BETAS, EPSILON = (0.9, 0.999), 1e-8
MASTER, TABLE = "master", "table"  # parts of the tensor names of `FlatAdamW.tensors`


class _Group:
    """Parameters with one weight decay and one share of the rate, as one flat vector."""

    def __init__(self, parameters: list[nn.Parameter]):
        self.parameters = parameters
        self.master = torch.cat([p.detach().float().flatten() for p in parameters])
        self.master.grad = torch.zeros_like(self.master)
        sizes = [p.numel() for p in parameters]
        shapes = [p.shape for p in parameters]
        self.weights = [v.view(s) for v, s in zip(torch.split(self.master, sizes), shapes, strict=True)]
        self.gradients = [v.view(s) for v, s in zip(torch.split(self.master.grad, sizes), shapes, strict=True)]
        for parameter, weight in zip(parameters, self.weights, strict=True):
            if parameter.dtype == torch.float32:
                parameter.data = weight

    def gather(self) -> Tensor:
        """Move the gradients into the flat vector and return its squared norm."""
        assert self.master.grad is not None
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            if parameter.grad is None:
                gradient.zero_()
            else:
                gradient.copy_(parameter.grad)
                parameter.grad = None
        return torch.dot(self.master.grad, self.master.grad)

    def scatter(self) -> None:
        """Copy the new fp32 weights to parameters of lower precision."""
        for parameter, weight in zip(self.parameters, self.weights, strict=True):
            if parameter.dtype != torch.float32:
                parameter.data.copy_(weight)


class _Rows:
    """An embedding table (V, D) with sparse gradients: AdamW without decay, on the touched rows only.

    Unlike in dense AdamW, the moments of an untouched row do not decay, and its momentum does not move it; when it is
    touched again they continue from their last values. Bias correction counts the steps of the table, not of the row.
    """

    def __init__(self, table: nn.Parameter):
        self.table = table
        self.master = table.detach().float().clone()
        self.first, self.second = torch.zeros_like(self.master), torch.zeros_like(self.master)  # the two moments
        self.rows, self.gradient = torch.empty(0, dtype=torch.int64), self.master[:0]  # (R,), (R, D)
        self.steps = 0

    def gather(self) -> Tensor:
        """Store the batch's rows and their gradient; return its squared norm."""
        assert self.table.grad is not None
        gradient = self.table.grad.coalesce()
        self.table.grad = None
        self.rows, self.gradient = gradient.indices()[0], gradient.values().float()
        return self.gradient.square().sum()

    def update(self, learning_rate: float) -> None:
        """Take one AdamW step."""
        self.steps += 1
        first = self.first[self.rows].lerp_(self.gradient, 1 - BETAS[0])
        second = self.second[self.rows].lerp_(self.gradient.square(), 1 - BETAS[1])
        self.first[self.rows], self.second[self.rows] = first, second
        size = (second / (1 - BETAS[1] ** self.steps)).sqrt_().add_(EPSILON)
        moved = self.master[self.rows].addcdiv_(first, size, value=-learning_rate / (1 - BETAS[0] ** self.steps))
        self.master[self.rows] = moved
        self.table.data[self.rows] = moved.to(self.table.dtype)

    def touched(self) -> Tensor:
        """Return the indices (R,) of the rows with a moment other than zero."""
        return ((self.first != 0) | (self.second != 0)).any(dim=1).nonzero()[:, 0]

    def tensors(self) -> dict[str, Tensor]:
        """Return weights and moments of the touched rows, (R, D) each, their row numbers, and the step count."""
        rows = self.touched()
        parts = {"master": self.master, "first": self.first, "second": self.second}
        kept = {name: part[rows] for name, part in parts.items()}
        return kept | {"rows": rows, "steps": torch.tensor(self.steps)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the result of `tensors` on an untrained table."""
        rows = tensors["rows"].to(self.master.device)
        for name, part in (("master", self.master), ("first", self.first), ("second", self.second)):
            part[rows] = tensors[name].to(part.device)
        self.table.data[rows] = self.master[rows].to(self.table.dtype)
        self.steps = int(tensors["steps"])


class FlatAdamW:
    """AdamW with bias correction, global-norm clipping and decay on matrices only.

    Parameters with "embedding" in their name do not decay either, such as an image network's patch embedding.
    `tables` names the parameters whose gradients are sparse; `rates` maps some parameters to a share of the rate.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        clip: float,
        tables: Collection[str] = (),
        rates: Mapping[str, float] | None = None,
        betas: tuple[float, float] = BETAS,
    ):
        self.learning_rate, self.weight_decay, self.clip = learning_rate, weight_decay, clip
        self.rates = rates or {}
        self._known: set[str] = set()
        self.groups: list[_Group] = []
        self.tables: list[tuple[_Rows, float]] = []  # with their shares of the rate
        settings = self._take(parameters, tables)
        self.adam = torch.optim.AdamW(settings, lr=learning_rate, betas=betas, eps=EPSILON, fused=True)

    def add(self, parameters: Mapping[str, nn.Parameter], tables: Collection[str] = ()) -> None:
        """Train these too from now on; parameters trained already keep their moments."""
        for group in self._take(parameters, tables):
            self.adam.add_param_group(group)

    def _take(self, parameters: Mapping[str, nn.Parameter], tables: Collection[str]) -> list[dict[str, Any]]:
        """Copy new parameters into flat vectors, one per decay and rate; return AdamW's parameter groups."""
        new = {name: parameter for name, parameter in parameters.items() if name not in self._known}
        self._known |= new.keys()
        alike: dict[tuple[float, float], list[nn.Parameter]] = {}  # (decay, share of the rate) -> parameters
        for name, parameter in new.items():
            if name not in tables:
                decay = self.weight_decay if parameter.ndim >= 2 and "embedding" not in name else 0.0
                alike.setdefault((decay, self.rates.get(name, 1.0)), []).append(parameter)
        groups = [_Group(group) for group in alike.values()]
        self.groups += groups
        self.tables += [(_Rows(new[name]), self.rates.get(name, 1.0)) for name in tables if name in new]
        return [
            {"params": [group.master], "weight_decay": decay, "share": share}
            for group, (decay, share) in zip(groups, alike, strict=True)
        ]

    def tensors(self, weights: bool = False) -> dict[str, Tensor]:
        """Return all that the next step depends on except fp32 weights, or with `weights` those too.

        These are moments, step counts, the fp32 masters of other weights, and the touched rows of tables.
        """
        kept = {
            f"{number}.{name}": tensor
            for number, group in enumerate(self.groups)
            for name, tensor in self.adam.state[group.master].items()  # none before the first step
        }
        for number, group in enumerate(self.groups):
            if weights or any(parameter.dtype != torch.float32 for parameter in group.parameters):
                kept[f"{number}.{MASTER}"] = group.master.detach()
        for number, (table, _) in enumerate(self.tables):
            kept |= {f"{TABLE}{number}.{name}": tensor for name, tensor in table.tensors().items()}
        return kept

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the result of `tensors` for the same parameters in the same order, on untrained tables.

        fp32 weights that it does not contain are set by the caller.
        """
        of_tables: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            place, _, part = name.partition(".")
            if place.startswith(TABLE):
                of_tables.setdefault(int(place.removeprefix(TABLE)), {})[part] = tensor
                continue
            group = self.groups[int(place)]
            if part == MASTER:
                group.master.copy_(tensor)
                group.scatter()
            else:
                self.adam.state[group.master][part] = tensor.to(group.master.device, copy=True)
        for number, parts in of_tables.items():
            self.tables[number][0].restore(parts)

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """Take one step at `rate` x the learning rate; return the gradient's norm before clipping."""
        squares = [group.gather() for group in self.groups] + [table.gather() for table, _ in self.tables]
        norm = math.sqrt(sum(torch.stack(squares).tolist()))
        if not math.isfinite(norm):
            return norm
        excess = max(1.0, norm / self.clip)
        # The fused kernel divides by it, so that clipping needs no separate pass.
        scale = squares[0].new_full((), excess) if excess > 1 else None
        self.adam.grad_scale = scale  # type: ignore[attr-defined]
        for settings in self.adam.param_groups:
            settings["lr"] = self.learning_rate * rate * settings["share"]
        self.adam.step()
        for group in self.groups:
            group.scatter()
        for table, share in self.tables:
            table.gradient.div_(excess)
            table.update(self.learning_rate * rate * share)
        return norm


def warm_up_then_linear(step: int, steps: int, warm_up: float) -> float:
    """Return the share of the rate at `step` (0-based) of `steps`: up over the `warm_up` share, then down to 0."""
    rise = max(1, round(steps * warm_up))
    if step < rise:
        return (step + 1) / rise
    return max(0.0, (steps - step) / max(1, steps - rise))
