"""The head of transformers' sequence classifiers: the first token, unscaled, a hidden layer and a linear layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from graftwork.core.backbone import BackboneCard, Features
from graftwork.core.kind import OneClass
from graftwork.core.model import Model
from graftwork.core.task import Task
from graftwork.nn.activation import ACTIVATIONS
from graftwork.registry import kinds

NO_LAYER = "none"  # activation name that means no hidden layer


class ClassifierHead(nn.Module):
    """`Features -> logits (B, C)` = W f(V t + v) + w of the first token t, unscaled; without a hidden layer W t + w.

    Always in fp32, like every head.
    """

    def __init__(self, width: int, outputs: int, activation: str):
        super().__init__()
        self.hidden = nn.Linear(width, width) if activation != NO_LAYER else None
        self.out = nn.Linear(width, outputs)
        self.activation = activation

    def forward(self, features: Features) -> Tensor:
        """Map (B, T, D) to (B, C). The network must read a pair of texts as one sequence."""
        token = features.sequence[:, 0]  # (B, D)
        with torch.autocast(token.device.type, enabled=False):
            token = token.float()
            if self.hidden is not None:
                token = ACTIVATIONS[self.activation](self.hidden(token))
            return linear(token, self.out.weight, self.out.bias)


def unfit_for_head(task: Task, card: BackboneCard | None) -> str:
    """Return why a method with this head cannot do the task on this backbone, or an empty string."""
    if not isinstance(kinds.get(task.kind), OneClass):
        return f"its head answers classification, not {task.kind}"
    if card is not None and card.towers > 1 and task.text_a is not None:
        return f"its head reads a pair as one sequence, and {card.id} reads each text by itself"
    if card is not None and card.modality == "sound":
        return f"its head is that of text and image classifiers, and {card.id} reads sounds"
    if card is None or card.pooling != "last":
        return ""
    return f"its head reads the first token, and that of {card.id} has not seen the others"


def read_first_token(model: Model, activation: str) -> None:
    """Replace the head of `model` by a `ClassifierHead`."""
    outputs = next(model.head.parameters())
    model.head = ClassifierHead(model.backbone.card.width, outputs.shape[0], activation).to(model.device)
