"""A task module as one plain network: trained changes are folded into the weights, and the head is one linear layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from graftwork.core.method import THRESHOLDS_FACT, ReadsStates
from graftwork.core.model import Folds, site_of
from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import as_transformer
from graftwork.ship.fewer_blocks import with_blocks
from graftwork.targets.linear_head import PooledHead
from graftwork.train.loop import FittedModel
from graftwork.train.probe import Probe

ENDING_IN_BLOCKS = (  # no layer follows the last block: cut after block k, the network outputs the states of block k
    "bert", "ernie", "electra", "roberta", "xlm-roberta", "camembert", "data2vec-text", "distilbert", "mpnet",
)  # fmt: skip
KEPT_FACTS = ("blind", THRESHOLDS_FACT)  # facts about the predictions that hold for any method


@dataclass(frozen=True)
class LinearHead:
    """logits = W (the network's output, pooled, its towers joined) + b."""

    weight: Tensor  # (C, P) fp32
    bias: Tensor  # (C,)
    facts: Mapping[str, Any] = field(default_factory=dict)  # logits of unseen words, thresholds


@dataclass(frozen=True)
class FoldedNetwork:
    """A network without adapters, and its head. The weights are its own: they may be changed."""

    backbone: TransformerBackbone
    head: LinearHead


def elsewhere(module: TaskModule) -> str:
    """Return "; onnx takes it" if the module predicts from the states of a network, else an empty string."""
    return "; onnx takes it" if module.backbone is not None and isinstance(module.fitted, ReadsStates) else ""


def unfoldable(module: TaskModule) -> str:
    """Return why the module can't be one network with a linear layer on its output, or an empty string."""
    fitted: Any = module.fitted
    try:
        as_transformer(module.backbone)
    except ConfigError as error:
        return error.what
    name = module.description["method"]["name"]
    if isinstance(fitted, Probe):
        return _mixing(fitted, name)
    if not isinstance(fitted, FittedModel):
        return f"{name} does not predict with a linear layer on a network"
    if not isinstance(fitted.head, PooledHead):
        return f"the head of {name} is not one linear layer"
    return not_mergeable(fitted, name)


def _mixing(probe: Probe, method: str) -> str:
    """Return why the probe's input is not the output of a (possibly cut) network, or an empty string."""
    if int(probe.shares.bool().sum()) != 1 or float(probe.shares[probe.depth]) != 1.0:
        return f"its {method} reads a mix of blocks"
    card, output = probe.backbone.card, probe.shares.numel() - 1
    if probe.depth == output or (probe.depth > 0 and card.family in ENDING_IN_BLOCKS):
        return ""
    return f"its {method} reads block {probe.depth} of {output}, and {card.family} has a norm after the last only"


def not_mergeable(fitted: FittedModel, method: str) -> str:
    """Return which adapters of a fitted model can't be folded into weights, or an empty string."""
    odd = {type(one).__name__ for one in fitted.adapters.values() if not isinstance(one, Folds)}
    return (
        f"the adapters of {method} can't be added to the weights of the network: {', '.join(sorted(odd))}"
        if odd
        else ""
    )


@torch.no_grad()
def folded_network(module: TaskModule) -> FoldedNetwork:
    """Return the module's network with its adapters folded in; its logits equal the module's but for rounding.

    Raises `ConfigError` for a module whose adapters can't be folded into weights (bottlenecks, prefixes, prompts).
    """
    reason = unfoldable(module)
    if reason:
        raise _not_folded(module, reason)
    fitted: Any = module.fitted
    facts = {name: fitted.facts[name] for name in KEPT_FACTS if name in fitted.facts}
    if isinstance(fitted, Probe):
        backbone = as_transformer(fitted.backbone).copy()
        if fitted.depth < fitted.backbone.card.blocks:
            backbone = with_blocks(backbone, range(fitted.depth))
        return FoldedNetwork(backbone, LinearHead(fitted.weight.clone(), fitted.bias.clone(), facts))
    out = fitted.head.out
    return FoldedNetwork(
        merged_network(module, fitted),
        LinearHead(out.weight.detach().float().clone(), out.bias.detach().float().clone(), facts),
    )


@torch.no_grad()
def merged_network(module: TaskModule, fitted: FittedModel) -> TransformerBackbone:
    """Return a copy of the network of `module`, whose fitted model is given, with its adapters in the weights.

    Raises `ConfigError` for an adapter that can't be folded into the weights.
    """
    places: dict[str, Any] = dict(fitted.adapters)
    own = as_transformer(module.backbone if places else fitted.model.backbone).copy()  # one without hooks
    own.module.requires_grad_(False)
    for place, adapter in places.items():
        path, at = site_of(place)
        reason = adapter.fold(own.module.get_submodule(path), at)
        if reason:
            raise _not_folded(module, reason)
    return own


def own_network(module: TaskModule) -> tuple[TransformerBackbone, LinearHead | None]:
    """Return a copy of the module's network that may be changed, and its head, or None if the delta is kept.

    A module is folded if it can be and is no probe. Otherwise its adapters, prompts or mix of blocks stay in the
    delta, on a copy of the frozen network, and `save_standalone` is to be called without a head. Raises `ConfigError`
    for a network with trained weights of its own that can't be folded.
    """
    fitted: Any = module.fitted
    if not unfoldable(module) and not isinstance(fitted, Probe):
        network = folded_network(module)
        return network.backbone, network.head
    reason = unchangeable(module)
    if reason:
        raise _not_folded(module, reason)
    return as_transformer(module.backbone).copy(), None


def unchangeable(module: TaskModule) -> str:
    """Return why `own_network` can't return a network, or an empty string."""
    try:
        as_transformer(module.backbone)
    except ConfigError as error:
        return error.what
    fitted: Any = module.fitted
    trained = isinstance(fitted, FittedModel) and any(
        weight.requires_grad for weight in fitted.model.network.parameters()
    )
    return unfoldable(module) if trained and not fitted.adapters else ""


def _not_folded(module: TaskModule, reason: str) -> ConfigError:
    return ConfigError(
        f"it can't be made one network: {reason}",
        where=str(module.folder),
        expected="a module of full, top_layers, bitfit, lora or ia3, or a linear_probe on one block",
        do="compress it without merge: it keeps its adapters",
    )
