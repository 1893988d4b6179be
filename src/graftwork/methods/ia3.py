"""IA3: learned gains of keys, values and inner feed-forward states (Liu et al. 2022, arXiv:2205.05638)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.method import Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.sites import bias_of, map_weight, site_size
from graftwork.registry import methods
from graftwork.train.loop import fit_by_gradient, restore_by_attaching


class Gain(nn.Module):
    """y -> y * (1 + g), with g (width,) zero at the start: the identity."""

    def __init__(self, width: int):
        super().__init__()
        self.g = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, width) -> (S, T, width)."""
        return torch.addcmul(y, y, self.g.to(y.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """g (width,)."""
        return {"g": self.g}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """(K, N, in), (K, N, width) -> (K, N, width), by K gains."""
        return torch.addcmul(y, y, weights["g"][:, None])

    def fold(self, site: nn.Module, at: str) -> str:
        """Multiply the columns of the weight of `site` by the gains of its input, or its rows and bias by those of its
        output."""
        weight, bias = map_weight(site), bias_of(site)
        gain = (1 + self.g.detach()).to(weight.dtype)
        weight *= gain if at == "input" else gain[:, None]
        if bias is not None and at == "output":
            bias *= gain
        return ""


@methods.register("ia3")
@dataclass(frozen=True)
class IA3:
    """Gains on the keys, the values and the inner feed-forward states of every block."""

    learning_rate: float = 1e-2  # peak of the schedule

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    BOARD: ClassVar[Entries] = ()  # no board has taught the prior of it: on a board only where it is named

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Fits every backbone with attention and feed-forward maps."""
        return lacking(card, (*_attention(card is not None and "attention.key" in card.lacks), "mlp.down"))

    def attach(self, model: Model) -> None:
        """Plug the gains: behind the attention maps, and before the second feed-forward map."""
        for role in _attention(not model.backbone.sites("attention.key")):
            model.plug(role, lambda site: Gain(site_size(site)[1]))
        model.plug("mlp.down", lambda site: Gain(site_size(site)[0]), at="input")

    fit = fit_by_gradient
    restore = restore_by_attaching


def _attention(fused: bool) -> tuple[str, ...]:
    """The roles of the attention maps; `fused` where a backbone has one map for queries, keys and values."""
    return ("attention.qkv",) if fused else ("attention.key", "attention.value")
