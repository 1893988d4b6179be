"""LoRA as PEFT trains it for text classifiers: on any linear layers, with the head of transformers' classifiers
(Hu et al. 2021, arXiv:2106.09685)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graftwork.core.backbone import BackboneCard, lacking
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.activation import ACTIVATIONS
from graftwork.nn.low_rank import LowRank
from graftwork.registry import methods
from graftwork.targets.classifier_head import NO_LAYER, read_first_token, unfit_for_head
from graftwork.train.gradient_method import GradientMethod

MAPS = (
    "attention.query", "attention.key", "attention.value", "attention.qkv", "attention.output", "mlp.up", "mlp.down",
)  # fmt: skip


@methods.register("peft_lora")
@dataclass(frozen=True)
class PeftLora(GradientMethod):
    """The method of LoRA weights that `graft bank import` reads from a PEFT folder; it can also be trained."""

    maps: str = "none"  # roles joined by +: "attention.query+attention.value"
    rank: int = 8  # rank of the added map
    alpha: float = 16.0  # the map is scaled by alpha / rank
    head: str = "tanh"  # activation of the head's hidden layer; "none" without one
    learning_rate: float = 2e-3  # peak of the schedule

    HEAD_START: ClassVar[bool] = False  # its head has a hidden layer

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task is classification and `maps` is set, so that no comparison lists it by
        default."""
        roles = tuple(self.maps.split("+"))
        unknown = [role for role in roles if role not in MAPS]
        if unknown or len(set(roles)) < len(roles):
            return f"maps must be of {', '.join(MAPS)}, each once, with + between them, not {self.maps!r}"
        if self.head not in (*ACTIVATIONS, NO_LAYER):
            return f"head must be one of {', '.join(ACTIVATIONS)}, {NO_LAYER}, not {self.head!r}"
        if self.rank <= 0:
            return f"rank must be above 0, not {self.rank}"
        return unfit_for_head(task, card) or lacking(card, roles)

    def attach(self, model: Model) -> None:
        """Plug in a low-rank update of each projection named in `maps`, and make the head read the first token."""
        for role in self.maps.split("+"):
            model.plug(role, lambda site: LowRank(site, self.rank, self.alpha))
        read_first_token(model, self.head)
