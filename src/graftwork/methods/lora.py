"""LoRA: a trainable low-rank map beside frozen linear maps (Hu et al. 2021, arXiv:2106.09685)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.core.transformer import site_size
from graftwork.registry import methods
from graftwork.train.loop import fit_by_gradient, restore_by_attaching


class LowRank(nn.Module):
    """y -> y + (alpha / rank) B A x, with A (rank, in) random and B (out, rank) zero at the start."""

    def __init__(self, site: nn.Module, rank: int, alpha: float):
        super().__init__()
        inward, outward = site_size(site)
        self.a = nn.Parameter(torch.empty(rank, inward))
        self.b = nn.Parameter(torch.zeros(outward, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, out) -> (S, T, out)."""
        return y + linear(linear(x, self.a.to(x.dtype)), (self.scale * self.b).to(x.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """A (rank, in) and B (out, rank), scaled."""
        return {"a": self.a, "b": self.scale * self.b}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """(K, N, in), (K, N, out) -> (K, N, out), by K maps."""
        return y + torch.bmm(torch.bmm(x, weights["a"].mT), weights["b"].mT)


@methods.register("lora")
@dataclass(frozen=True)
class Lora:
    """On the query and value maps of every block; on the fused map where a backbone has only that."""

    rank: int = 8
    alpha: float = 16.0
    learning_rate: float = 2e-3  # peak of the schedule

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Fits every backbone with attention."""
        if self.rank <= 0:
            return f"rank must be above 0, not {self.rank}"
        fused = card is not None and "attention.query" in card.lacks
        return lacking(card, ("attention.qkv",) if fused else ("attention.query", "attention.value"))

    def attach(self, model: Model) -> None:
        """Plug a low-rank map beside each attention map."""
        fused = not model.backbone.sites("attention.query")
        for role in ("attention.qkv",) if fused else ("attention.query", "attention.value"):
            model.plug(role, lambda site: LowRank(site, self.rank, self.alpha))

    fit = fit_by_gradient
    restore = restore_by_attaching
