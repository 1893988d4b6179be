"""Adapters: small bottlenecks inside frozen blocks (Houlsby et al. 2019, arXiv:1902.00751; placement of Pfeiffer et al.
2021, arXiv:2005.00247, as an option)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.method import AS_IT_COMES, Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.sites import bias_of, site_size
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod

PLACEMENTS = {"houlsby": ("attention.output", "mlp.down"), "pfeiffer": ("mlp.down",)}


class Bottleneck(nn.Module):
    """y -> y + U gelu(D y + d) + u, with D (size, out) small and U (out, size) zero: the identity at the start."""

    def __init__(self, site: nn.Module, size: int):
        super().__init__()
        width = site_size(site)[1]
        self.down = nn.Linear(width, size)
        self.up = nn.Linear(size, width)
        nn.init.normal_(self.down.weight, std=width**-0.5)
        nn.init.zeros_(self.down.bias)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, out) -> (S, T, out)."""
        kind = y.dtype
        inner = gelu(linear(y, self.down.weight.to(kind), self.down.bias.to(kind)))
        return y + linear(inner, self.up.weight.to(kind), self.up.bias.to(kind))

    def weights(self) -> Mapping[str, Tensor]:
        """Return D (size, out), d (size,), U (out, size), u (out,)."""
        return {"D": self.down.weight, "d": self.down.bias, "U": self.up.weight, "u": self.up.bias}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K bottlenecks: (K, N, in), (K, N, out) -> (K, N, out)."""
        inner = gelu(torch.baddbmm(weights["d"][:, None], y, weights["D"].transpose(1, 2)))
        return y + torch.baddbmm(weights["u"][:, None], inner, weights["U"].transpose(1, 2))


class Rescale(nn.Module):
    """y -> y (1 + g) + b, with g and b (out,) zero at the start: trains a norm's gain and bias."""

    def __init__(self, site: nn.Module):
        super().__init__()
        width = next(site.parameters()).shape[0]
        self.g = nn.Parameter(torch.zeros(width))
        self.b = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, D), (S, T, D) -> (S, T, D)."""
        return torch.addcmul(y + self.b.to(y.dtype), y, self.g.to(y.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """Return g and b (out,)."""
        return {"g": self.g, "b": self.b}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K gains and biases: (K, N, D), (K, N, D) -> (K, N, D)."""
        return torch.addcmul(y + weights["b"][:, None], y, weights["g"][:, None])

    def fold(self, site: nn.Module, at: str) -> str:
        """Fold g and b into the gain and bias of the norm `site`; return a reason if it has no bias to take b."""
        weight, bias = getattr(site, "weight", None), bias_of(site)
        if not isinstance(site, nn.LayerNorm) or not isinstance(weight, Tensor) or bias is None:
            return "a norm without a bias has no place for the one that was trained"
        gain = (1 + self.g.detach()).to(bias.dtype)
        weight.detach().mul_(gain)
        bias.mul_(gain).add_(self.b.detach().to(bias.dtype))
        return ""


@methods.register("adapter")
@dataclass(frozen=True)
class Adapter(GradientMethod):
    """Adapter tuning: a bottleneck after each block's attention and feed-forward part, and the blocks' norms."""

    size: int = 64  # width of the bottleneck
    placement: str = "houlsby"  # "pfeiffer": after the feed-forward part only, norms frozen
    learning_rate: float = 2e-3  # peak of the schedule

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)
    LADDER: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone's blocks have the linear layers that the bottlenecks attach to."""
        if self.placement not in PLACEMENTS:
            return f"placement must be one of {', '.join(PLACEMENTS)}, not {self.placement!r}"
        if self.size <= 0:
            return f"size must be above 0, not {self.size}"
        return lacking(card, PLACEMENTS[self.placement])

    def attach(self, model: Model) -> None:
        """Plug in the bottlenecks, and for Houlsby's placement trainable gains and biases of the norms."""
        for role in PLACEMENTS[self.placement]:
            model.plug(role, lambda site: Bottleneck(site, self.size))
        if self.placement == "houlsby" and model.backbone.sites("norm"):  # OLMo's norms have no weights
            model.plug("norm", Rescale)
