"""BitFit: trains only the biases (Ben Zaken et al. 2022, arXiv:2106.10199)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.sites import bias_of
from graftwork.registry import methods
from graftwork.train.gradient_method import GradientMethod

ROLES = (
    "attention.query", "attention.key", "attention.value", "attention.qkv", "attention.output",
    "mlp.up", "mlp.down", "norm",
)  # fmt: skip


class BiasChange(nn.Module):
    """y -> y + b, with b (out,) zero at the start: the change of a bias, stored apart from the frozen bias."""

    def __init__(self, bias: Tensor):
        super().__init__()
        self.b = nn.Parameter(torch.zeros(bias.shape[0]))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, out) -> (S, T, out)."""
        return y + self.b.to(y.dtype)

    def weights(self) -> Mapping[str, Tensor]:
        """Return b (out,)."""
        return {"b": self.b}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K changes: (K, N, in), (K, N, out) -> (K, N, out)."""
        return y + weights["b"][:, None]

    def fold(self, site: nn.Module, at: str) -> str:
        """Add b to the bias of `site`."""
        bias = bias_of(site)
        assert bias is not None
        bias += self.b.detach().to(bias.dtype)
        return ""


@methods.register("bitfit")
@dataclass(frozen=True)
class BitFit(GradientMethod):
    """BitFit: a small delta in every block, the biases of linear maps and norms."""

    learning_rate: float = 5e-3  # peak of the schedule

    KINDS: ClassVar[tuple[str, ...]] = ("generation",)

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone's linear layers or norms have biases."""
        if card is not None and not card.biased:
            return "the blocks of this backbone have no biases"
        return lacking(card, ROLES) if card is not None and set(ROLES) <= set(card.lacks) else ""

    def attach(self, model: Model) -> None:
        """Plug in a bias change at every site that has a bias."""
        for role in ROLES:
            if any(bias_of(site) is not None for site in model.backbone.sites(role).values()):
                model.plug(role, lambda site: BiasChange(bias_of(site)))  # type: ignore[arg-type]
