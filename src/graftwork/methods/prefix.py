"""Prefix-tuning: learned keys and values before those of every attention (Li & Liang 2021, arXiv:2101.00190)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.method import Entries
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.sites import site_size
from graftwork.registry import methods
from graftwork.train.loop import fit_by_gradient, restore_by_attaching

ROLE = "attention"
START = 0.02  # standard deviation of untrained keys and values


class Prefix(nn.Module):
    """Keys and values (P, H d) of P virtual tokens, the same before every text; small at the start."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.key, self.value = (nn.Parameter(START * torch.randn(length, width)) for _ in range(2))

    def forward(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put them before keys and values: (S, H, T, d) each -> (S, H, P + T, d) each."""
        return _before(self.key, key), _before(self.value, value)


def _before(prefix: Tensor, own: Tensor) -> Tensor:
    sequences, heads, _, width = own.shape
    put = prefix.to(own.dtype).view(-1, heads, width).transpose(0, 1)  # (H, P, d)
    return torch.cat([put.expand(sequences, -1, -1, -1), own], dim=2)


@methods.register("prefix")
@dataclass(frozen=True)
class PrefixTuning:
    """Learned keys and values before those of the text, in the attention of every block."""

    length: int = 10  # virtual tokens
    learning_rate: float = 3e-3  # peak of the schedule

    VERSION: ClassVar[int] = 1
    IDENTITY_AT_START: ClassVar[bool] = False
    uses_backbone: ClassVar[bool] = True
    BOARD: ClassVar[Entries] = ()  # no board has taught the prior of it: on a board only where it is named

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Fits every backbone whose attention is computed here."""
        if self.length <= 0:
            return f"length must be above 0, not {self.length}"
        lacks = card is not None and ROLE in card.lacks
        return f"the blocks of {card.id} have no attention that takes a prefix" if card is not None and lacks else ""

    def attach(self, model: Model) -> None:
        """Put a prefix before the keys and values of every block."""
        widths = iter(_key_widths(model.backbone))
        model.plug(ROLE, lambda site: Prefix(self.length, next(widths)), at="attention")

    fit = fit_by_gradient
    restore = restore_by_attaching


def _key_widths(backbone: Backbone) -> list[int]:
    """The sizes H d of a position's key in every block; H may be below the number of heads of the queries.

    A fused map has queries, as wide as what the output map takes, and keys and values of equal widths.
    """
    keys, fused = backbone.sites("attention.key"), backbone.sites("attention.qkv")
    outputs = backbone.sites("attention.output")
    return [site_size(site)[1] for site in keys.values()] or [
        (site_size(site)[1] - site_size(output)[0]) // 2
        for site, output in zip(fused.values(), outputs.values(), strict=True)
    ]
