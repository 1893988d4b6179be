"""Pruning of feed-forward layers: the columns that the loss depends on least are removed (Michel et al. 2019,
arXiv:1905.10650, there for attention heads)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graftwork.core.backbone import towers_of
from graftwork.core.model import Model
from graftwork.core.ragged import flat
from graftwork.core.task import Split, Task
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.ship.fewer_blocks import tell, with_new_card
from graftwork.ship.folding import FoldedNetwork
from graftwork.targets.linear_head import PooledHead
from graftwork.train.answer_order import batches

UP, DOWN = "mlp.up", "mlp.down"
SIZES = ("intermediate_size", "hidden_dim", "d_ff", "encoder_ffn_dim")  # what configurations call the number of columns
ROWS = 512  # examples that the importance is measured on, at most


def unprunable(backbone: TransformerBackbone) -> str:
    """Return why columns can't be removed from the feed-forward parts of a network, or an empty string."""
    ups, downs = _maps(backbone, UP), _maps(backbone, DOWN)
    if not ups or len(ups) != len(downs):
        return f"the blocks of {backbone.card.id} have no feed-forward part of two linear maps"
    if backbone.card.shared_blocks or backbone.layout.time_first:
        return f"the blocks of {backbone.card.id} are one block, used again, or run time first"
    columns = {site.weight.shape[0] for site in ups} | {site.weight.shape[1] for site in downs}
    if len(columns) > 1 or _gated(backbone, columns.pop()):
        return f"the feed-forward parts of {backbone.card.id} have a gate, or columns of different numbers"
    if not _size_name(backbone):
        return f"the configuration of {backbone.card.id} does not say how many columns its feed-forward parts have"
    return ""


def _maps(backbone: TransformerBackbone, role: str) -> list[Any]:
    """Return the linear layers with a role, block by block."""
    return list(backbone.sites(role).values())


def _gated(backbone: TransformerBackbone, columns: int) -> bool:
    blocks, up = backbone.sites("block").values(), {id(site) for site in backbone.sites(UP).values()}
    linear = (part for block in blocks for part in block.modules() if isinstance(part, nn.Linear))
    width = backbone.card.width
    return columns == width or any(part.out_features == columns and id(part) not in up for part in linear)


def _size_name(backbone: TransformerBackbone) -> str:
    columns = _maps(backbone, UP)[0].weight.shape[0]
    config: Any = backbone.module.config
    return next((name for name in SIZES if getattr(config, name, None) == columns), "")


def importance(network: FoldedNetwork, task: Task, train: Split) -> list[Tensor]:
    """Return, per block, the importance (F,) of each column: the change of the loss to first order if it is removed.

    It is |sum over positions of activation x gradient|, summed over up to `ROWS` examples (Molchanov et al. 2017,
    arXiv:1611.06440).
    """
    backbone, kind = network.backbone, kinds.get(task.kind)
    model = Model(backbone, kind, task, towers_of(backbone.card.towers, train.examples[0]))
    assert isinstance(model.head, PooledHead)
    model.head.out.load_state_dict({"weight": network.head.weight, "bias": network.head.bias})
    examples = train.examples[:ROWS]
    encoded, targets = backbone.encode(examples), torch.from_numpy(flat(train.targets[: len(examples)]))
    downs = _maps(backbone, DOWN)
    found = [torch.zeros(down.weight.shape[1]) for down in downs]
    first = _maps(backbone, UP)[0].requires_grad_(True)  # so that everything after it has a gradient
    entering: list[tuple[int, Tensor]] = []

    def keep(number: int, given: Sequence[Tensor]) -> None:
        given[0].retain_grad()
        entering.append((number, given[0]))

    hooks = [
        down.register_forward_pre_hook(lambda site, given, number=number: keep(number, given))
        for number, down in enumerate(downs)
    ]
    try:
        for rows in batches(encoded):
            inputs = backbone.collate(encoded, encoded.sequences(rows))
            told = targets[encoded.answered(rows)].to(model.device)
            (kind.loss(model(inputs), told) * kind.weight(told)).backward()
            for number, activation in entering:
                assert activation.grad is not None
                effect = activation.detach().float() * activation.grad.float()  # (S, T, F)
                found[number] += effect.sum(dim=1).abs().sum(dim=0).cpu()
            entering.clear()
            first.weight.grad = None
    finally:
        for hook in hooks:
            hook.remove()
        first.requires_grad_(False)
    return found


@torch.no_grad()
def without_columns(backbone: TransformerBackbone, scores: Sequence[Tensor], kept: int) -> TransformerBackbone:
    """Return `backbone` with the `kept` columns of the highest scores in each feed-forward part, changed in place."""
    name = _size_name(backbone)
    for up, down, score in zip(_maps(backbone, UP), _maps(backbone, DOWN), scores, strict=True):
        rows = score.topk(kept).indices.sort().values
        _keep(up, up.weight[rows], None if up.bias is None else up.bias[rows])
        _keep(down, down.weight[:, rows], down.bias)
    tell(backbone.module, {name: kept})
    return with_new_card(backbone, {"columns": kept, "scores": [np.round(one.tolist(), 6).tolist() for one in scores]})


def _keep(site: Any, weight: Tensor, bias: Tensor | None) -> None:
    site.weight = nn.Parameter(weight.contiguous().clone(), requires_grad=False)
    site.bias = None if bias is None else nn.Parameter(bias.clone(), requires_grad=False)
    site.out_features, site.in_features = weight.shape
