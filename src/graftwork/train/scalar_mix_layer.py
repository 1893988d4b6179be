"""Scalar mix: softmax weights over the blocks' pooled features, learned with a linear layer (Peters et al. 2018,
arXiv:1802.05365)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear

from graftwork.core.backbone import Encoded
from graftwork.core.method import FrozenPass, Workbench
from graftwork.train.linear_fit import kept_targets
from graftwork.train.seeds import derive

EPOCHS = 20
BATCH = 128
RATE = 5e-3


def fit_mix(bench: Workbench, train: FrozenPass, strength: float, outputs: int) -> Tensor:
    """Train block weights (L + 1,) together with a linear layer on each block's standardised features.

    Each weight is the block's softmax share divided by the standard deviation of its features, so that it applies to
    raw features.
    """
    assert bench.setting.backbone is not None
    features = features_of_blocks(train, bench.setting.backbone.card.blocks)
    mean, sd = features.mean(dim=(0, 2), keepdim=True), features.std(dim=(0, 2), keepdim=True)
    features.sub_(mean).div_(sd.clamp_min(1e-6))  # (N, L + 1, P): blocks on one scale, so that weights compare
    targets = kept_targets(bench.train, train.encoded)
    torch.manual_seed(derive(bench.seed_of("init"), "init"))
    layer = nn.Linear(features.shape[2], outputs)
    scores = nn.Parameter(torch.zeros(features.shape[1]))
    optimiser = torch.optim.AdamW([*layer.parameters(), scores], lr=RATE, weight_decay=strength)
    shuffle = torch.Generator().manual_seed(derive(bench.seed_of("order"), "order"))
    for _ in range(EPOCHS):
        for rows in batches_of_features(train.encoded, len(features), shuffle):
            mixed = torch.einsum("nlp,l->np", features[rows], scores.softmax(0))  # (B, P)
            loss = bench.training_loss.loss(linear(mixed, layer.weight, layer.bias), targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    mixing, layering = 4.0 * features.numel(), 6.0 * features[:, 0].numel() * outputs  # forward and backward
    bench.tally.add_model(EPOCHS * (mixing + layering))
    return scores.detach().softmax(0) / sd.flatten().clamp_min(1e-6)


def mix_blocks(frozen: FrozenPass, shares: Tensor) -> Tensor:
    """Return the sum (N, P), or (W, P), of the blocks' features weighted by `shares` (L + 1,)."""
    return features_of_blocks(frozen, len(shares) - 1, dim=0).mul_(shares[:, None, None]).sum(dim=0)


def features_of_blocks(frozen: FrozenPass, blocks: int, dim: int = 1) -> Tensor:
    """Stack the features (N, L + 1, P), or (W, L + 1, P), along `dim` like `torch.stack`, without a second copy."""
    first = frozen.pooled(0)
    stacked = first.new_empty((*first.shape[:dim], blocks + 1, *first.shape[dim:]))
    for block in range(blocks + 1):
        stacked.select(dim, block).copy_(frozen.pooled(block) if block else first)
    return stacked


def batches_of_features(encoded: Encoded, features: int, shuffle: torch.Generator) -> list[Tensor]:
    """Return shuffled batches of feature indices; several features of one example stay together."""
    if encoded.answers is None:
        return list(torch.split(torch.randperm(features, generator=shuffle), BATCH))
    owned = encoded.rows_kept
    starts, batches = np.cumsum(owned) - owned, []
    filled: list[NDArray[np.int64]] = []
    for example in torch.randperm(len(owned), generator=shuffle).tolist():
        filled.append(np.arange(starts[example], starts[example] + owned[example]))
        if sum(map(len, filled)) >= BATCH:
            batches.append(torch.from_numpy(np.concatenate(filled)))
            filled = []
    return batches + ([torch.from_numpy(np.concatenate(filled))] if sum(map(len, filled)) else [])
