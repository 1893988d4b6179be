"""AdapterHub's bottlenecks, which may read the normed sum after a part of a block (Pfeiffer et al. 2020,
arXiv:2007.07779; placement and order of Pfeiffer et al. 2021, arXiv:2005.00247)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.activation import ACTIVATIONS
from graftwork.nn.sites import site_size
from graftwork.registry import methods
from graftwork.targets.classifier_head import NO_LAYER, read_first_token, unfit_for_head
from graftwork.train.gradient_method import GradientMethod

SITES = {  # (part, input) -> role
    ("attention", "map"): "attention.output", ("attention", "norm"): "attention.norm",
    ("mlp", "map"): "mlp.down", ("mlp", "norm"): "mlp.norm",
}  # fmt: skip


class ResidualBottleneck(nn.Module):
    """h -> U f(D h + d) + u, with D (size, width) small and U (width, size) zero: zero at the start."""

    def __init__(self, width: int, size: int, activation: str):
        super().__init__()
        self.down, self.up = nn.Linear(width, size), nn.Linear(size, width)
        self.activation = activation
        nn.init.normal_(self.down.weight, std=width**-0.5)
        nn.init.zeros_(self.down.bias)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, h: Tensor) -> Tensor:
        """(S, T, width) -> (S, T, width)."""
        kind = h.dtype
        inner = ACTIVATIONS[self.activation](linear(h, self.down.weight.to(kind), self.down.bias.to(kind)))
        return linear(inner, self.up.weight.to(kind), self.up.bias.to(kind))


class BesideMap(nn.Module):
    """y -> y + bottleneck(y) for the output y of a sublayer's last linear layer, before its residual sum and norm."""

    def __init__(self, site: nn.Module, size: int, activation: str):
        super().__init__()
        self.bottleneck = ResidualBottleneck(site_size(site)[1], size, activation)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, D) -> (S, T, D)."""
        change: Tensor = self.bottleneck(y)
        return y + change


class BesideNorm(nn.Module):
    """y -> norm(x + bottleneck(y)) for y = norm(x), with x a sublayer's residual sum: the same norm is used twice."""

    gain: Tensor
    bias: Tensor

    def __init__(self, site: nn.Module, size: int, activation: str):
        super().__init__()
        assert isinstance(site, nn.LayerNorm)
        self.bottleneck = ResidualBottleneck(site.weight.shape[0], size, activation)
        self.eps = site.eps
        self.register_buffer("gain", site.weight.detach(), persistent=False)  # shares the frozen norm's memory
        self.register_buffer("bias", site.bias.detach(), persistent=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, D), (S, T, D) -> (S, T, D)."""
        return layer_norm(x + self.bottleneck(y), self.gain.shape, self.gain, self.bias, self.eps)


@methods.register("adapterhub")
@dataclass(frozen=True)
class AdapterHub(GradientMethod):
    """The method of adapters that `graft bank import` reads from an AdapterHub folder; it can also be trained."""

    parts: str = "none"  # parts of a block that it follows: "mlp", "attention" or "attention+mlp"
    reads: str = "norm"  # "norm": the part's sum, normed; "map": the part's own output
    size: int = 48  # width of the bottleneck
    activation: str = "relu"  # of the bottleneck
    head: str = "tanh"  # activation of the head's hidden layer; "none" without one
    learning_rate: float = 2e-3  # peak of the schedule

    HEAD_START: ClassVar[bool] = False  # its head has a hidden layer

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the sites that it attaches to."""
        return tuple(SITES.get((part, self.reads), "") for part in self.parts.split("+"))

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task is classification and `parts` is set, so that no comparison lists it by
        default."""
        if "" in self.roles or len(set(self.roles)) < len(self.roles):
            what = f"parts={self.parts}, reads={self.reads}"
            return f"parts must be attention, mlp or attention+mlp, and reads norm or map, not {what}"
        if self.activation not in ACTIVATIONS or self.head not in (*ACTIVATIONS, NO_LAYER):
            return f"activation and head must be one of {', '.join(ACTIVATIONS)}; head may also be {NO_LAYER}"
        if self.size <= 0:
            return f"size must be above 0, not {self.size}"
        return unfit_for_head(task, card) or lacking(card, self.roles)

    def attach(self, model: Model) -> None:
        """Plug in the bottlenecks, and make the head read the first token."""
        beside = BesideNorm if self.reads == "norm" else BesideMap
        for role in self.roles:
            model.plug(role, lambda site: beside(site, self.size, self.activation))
        read_first_token(model, self.head)
