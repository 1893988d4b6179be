"""A shallower network: it keeps some of the blocks and all other layers (Sanh et al. 2019, arXiv:1910.01108)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import nn

from graftwork.io.files import digest
from graftwork.nn.bert import BertShape
from graftwork.pretrained.transformer import TransformerBackbone


def spread(blocks: int, kept: int) -> list[int]:
    """Return the indices of `kept` evenly spaced blocks out of `blocks`, from 0 upwards: [0, 2, 4] for 3 of 6."""
    return [place * blocks // kept for place in range(kept)]


def with_blocks(backbone: TransformerBackbone, kept: Sequence[int]) -> TransformerBackbone:
    """Return `backbone` with only these of its blocks; the modules are shared, or changed in place."""
    paths = list(backbone.sites("block"))
    owner, _, _ = paths[0].rpartition(".")
    stack: Any = backbone.module.get_submodule(owner)
    parent, _, name = owner.rpartition(".")
    setattr(backbone.module.get_submodule(parent), name, nn.ModuleList(stack[number] for number in kept))
    tell(backbone.module, {"num_hidden_layers": len(kept)})
    return with_new_card(backbone, {"blocks": list(kept)}, blocks=len(kept))


def tell(network: Any, sizes: dict[str, Any]) -> None:
    """Write changed sizes to the network's configuration."""
    if isinstance(network.config, BertShape):
        network.config = dataclasses.replace(network.config, **sizes)
        return
    for name, value in sizes.items():
        setattr(network.config, name, value)


def with_new_card(backbone: TransformerBackbone, how: dict[str, Any], **card: Any) -> TransformerBackbone:
    """Return `backbone` with a card for its changed network: the sizes in `card`, and a revision derived from `how`."""
    numbers = sum(parameter.numel() for parameter in backbone.module.parameters())
    revision = digest({"from": backbone.card.revision, **how})
    new = dataclasses.replace(backbone.card, revision=revision, parameters=numbers, **card)
    return dataclasses.replace(backbone, card=new)
