"""A task module as a network with the classifier that transformers puts on its architecture, where that is possible.

Our own head is linear in the pooled states *scaled to unit mean square*. The classifiers of transformers do not scale,
so they can't express most of our modules. There are two exceptions:

- a module whose head has their layers: one trained by `peft_lora`, here or elsewhere;
- a module on ModernBERT, whose classifier has a layer norm. The states after its last norm, which has a gain g and no
  bias, lie in the hyperplane sum(x / g) = 0. A reflection maps this hyperplane to the vectors with mean 0. For these a
  layer norm equals our scaling, and the output layer undoes the reflection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import THRESHOLDS_FACT
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.classifier_layers import CLASSIFIERS
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import as_transformer, tensors_of
from graftwork.ship.folding import elsewhere, folded_network, merged_network, not_mergeable, unfoldable
from graftwork.targets.classifier_head import ClassifierHead
from graftwork.train.loop import FittedModel

MODERNBERT = "modernbert"
POOLINGS = {"mean": "mean", "first": "cls"}  # ours -> ModernBERT's
LARGE = 1024.0  # factor of the norm's input: it only makes the norm's epsilon negligible
ELSEWHERE = "sentence_transformers and onnx take it"


@dataclass(frozen=True)
class ClassifierWeights:
    """A network and its classifier, as transformers names them."""

    backbone: TransformerBackbone
    weights: Mapping[str, Tensor]
    settings: Mapping[str, Any] = field(default_factory=dict)  # entries of the configuration


def no_classifier(module: TaskModule) -> str:
    """Return why transformers has no classifier that gives the module's logits, or an empty string."""
    fitted: Any = module.fitted
    if isinstance(fitted, FittedModel) and isinstance(fitted.head, ClassifierHead):
        return _no_first_token(module, fitted)
    if why := unfoldable(module):
        return f"{why}{elsewhere(module)}"
    card = _card(module)
    if card.family != MODERNBERT:
        known = CLASSIFIERS.get(card.family) if module.task.kind == "classification" else None
        theirs = f", and peft_lora with head={known.activation} trains a head of theirs" if known else ""
        return (
            "its head reads the pooled states scaled to unit mean square, and the classifier that transformers puts on "
            f"{card.family} does not scale; {ELSEWHERE}{theirs}"
        )
    if card.towers > 1 and "text_b" in module.roles:
        return "its head compares two texts, and a classifier reads them as one; onnx takes it"
    if card.pooling not in POOLINGS:
        return f"ModernBERT's classifier has no pooling {card.pooling!r}; {ELSEWHERE}"
    norm: Any = as_transformer(module.backbone).module.get_submodule("final_norm")
    return "" if norm.bias is None else f"the last norm of this ModernBERT has a bias; {ELSEWHERE}"


def classifier_of_module(module: TaskModule) -> ClassifierWeights:
    """Return the network with the trained changes merged into its weights, and its classifier.

    Raises `ConfigError` for an adapter that can't be merged into the weights.
    """
    fitted: Any = module.fitted
    if isinstance(fitted, FittedModel) and isinstance(fitted.head, ClassifierHead):
        return _first_token(module, fitted)
    return _modernbert(module)


def _no_first_token(module: TaskModule, fitted: Any) -> str:
    family, activation = _card(module).family, fitted.head.activation
    if family not in CLASSIFIERS:
        return f"the classifier that transformers puts on {family} is not known here; onnx takes it"
    if activation != CLASSIFIERS[family].activation:
        expected = CLASSIFIERS[family].activation
        return f"its head has {activation}, the classifier of {family} {expected}: train it with head={expected}"
    why = not_mergeable(fitted, module.description["method"]["name"])
    return f"{why}; onnx takes it" if why else ""


@torch.no_grad()
def _first_token(module: TaskModule, fitted: Any) -> ClassifierWeights:
    backbone = merged_network(module, fitted)
    known, prefix = CLASSIFIERS[backbone.card.family], _prefix(backbone)
    weights = _prefixed(backbone)
    for path, layer in ((known.hidden, fitted.head.hidden), (known.out, fitted.head.out)):
        inside = path == known.hidden and not known.own_hidden  # the network's own pooler
        name = f"{prefix}.{path}" if inside else path
        weights |= {f"{name}.{part}": getattr(layer, part).detach().float().clone() for part in ("weight", "bias")}
    return ClassifierWeights(backbone, weights)


@torch.no_grad()
def _modernbert(module: TaskModule) -> ClassifierWeights:
    network = folded_network(module)
    backbone, head = network.backbone, network.head
    norm: Any = backbone.module.get_submodule("final_norm")
    turn = reflection(norm.weight.detach().double())
    shift = head.bias.new_tensor(head.facts.get(THRESHOLDS_FACT, [0.0] * len(head.bias)))
    weights = _prefixed(backbone) | {
        "head.dense.weight": LARGE * turn.float(),
        "head.norm.weight": torch.ones(len(turn)),
        "classifier.weight": (head.weight.double() @ turn).float(),
        "classifier.bias": head.bias + shift,
    }
    settings = {
        "classifier_pooling": POOLINGS[backbone.card.pooling],
        "classifier_activation": "linear",  # none
        "classifier_bias": False,
        "norm_bias": False,
    }
    return ClassifierWeights(backbone, weights, settings)


def reflection(gain: Tensor) -> Tensor:
    """Return the reflection (D, D) that maps the hyperplane sum(x / gain) = 0 to the vectors with mean 0.

    It is orthogonal and its own inverse. A gain (D,) of 0 means that x is 0 there.
    """
    zero = gain == 0
    normal = zero.to(gain.dtype) if bool(zero.any()) else 1 / gain
    normal = normal / normal.norm()
    across = normal - torch.full_like(normal, len(normal) ** -0.5)
    if float(across.norm()) < 1e-12:
        return torch.eye(len(normal), dtype=gain.dtype)
    across = across / across.norm()
    return torch.eye(len(normal), dtype=gain.dtype) - 2 * torch.outer(across, across)


def _card(module: TaskModule) -> BackboneCard:
    return as_transformer(module.backbone).card


def _prefix(backbone: TransformerBackbone) -> str:
    return str(getattr(backbone.module, "base_model_prefix", "bert"))


def _prefixed(backbone: TransformerBackbone) -> dict[str, Tensor]:
    return {f"{_prefix(backbone)}.{name}": tensor for name, tensor in tensors_of(backbone).items()}
