"""Scalar mix: a linear layer on a learned mix of all blocks of a frozen backbone, as for ELMo (Peters et al. 2018,
arXiv:1802.05365, equation 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import FrozenPass, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.linear_fit import LinearFit, fit_on, fitted_on, kept_targets, scorer
from graftwork.train.loop import Diverged
from graftwork.train.probe import MIX, Probe, restore_probe
from graftwork.train.scalar_mix_layer import batches_of_features, features_of_blocks, mix_blocks
from graftwork.train.seeds import derive


@methods.register("scalar_mix")
@dataclass(frozen=True)
class ScalarMix:
    """A linear layer on gamma x the sum over blocks of s x h, with s a softmax of scores; all are trained jointly."""

    rate: float = 5e-3  # learning rate of AdamW, constant
    pull: float = 1e-3  # the paper's lambda: penalty on the squared scores, which pulls the shares together
    epochs: int = 20  # all are trained; the one that is best on validation is kept

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless all blocks of the backbone have the same width."""
        if card is not None and len(set(card.widths)) > 1:
            return f"the blocks of {card.id} differ in width, so they can't be mixed"
        if not (self.rate > 0 and self.pull >= 0 and self.epochs >= 1):
            found = f"rate {self.rate:g}, pull {self.pull:g} and epochs {self.epochs}"
            return f"rate must be above 0, pull at least 0 and epochs at least 1, not {found}"
        return ""

    def fit(self, bench: Workbench) -> Probe:
        """Train the mix, starting from the best linear layer on equal shares."""
        backbone = bench.setting.backbone
        assert backbone is not None
        train, validation = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
        spread = features_of_blocks(train, backbone.card.blocks).std(dim=(0, 2))  # features are not kept in memory
        scale = spread.clamp_min(1e-6)  # (L + 1,): puts blocks on one scale, so that shares are comparable
        even = torch.full_like(scale, 1 / len(scale)) / scale
        start, _ = fit_on(bench, train, validation, lambda frozen: mix_blocks(frozen, even), bench.tally)
        network, reached, epoch = self._learn(bench, train, validation, scale, start)
        facts = {
            "block": MIX,
            "shares": network.shares.tolist(),
            "gamma": float(network.gamma.detach()),
            "strength": start.strength,
            "best_epoch": epoch,
            "validation": reached,
        } | fitted_on(bench, train.encoded)
        return network.probe(backbone, facts)

    def _learn(
        self, bench: Workbench, train: FrozenPass, validation: FrozenPass, scale: Tensor, start: LinearFit
    ) -> tuple[MixHead, float, int]:
        """Train; return the network after its best epoch, its validation score, and the number of that epoch.

        Raises `Diverged` when no epoch has a validation score.
        """
        objective, targets = bench.training_loss, kept_targets(bench.train, train.encoded)
        features, held = (features_of_blocks(one, len(scale) - 1) for one in (train, validation))  # (N, L + 1, P) each
        score, best = scorer(bench, validation.encoded), (-math.inf, 0, dict[str, Tensor]())
        network = MixHead(scale, start)
        optimiser = torch.optim.AdamW(
            [
                {"params": [network.weight], "weight_decay": start.strength},
                {"params": [network.bias, network.scores, network.gamma], "weight_decay": 0.0},
            ],
            lr=self.rate,
        )
        shuffle = torch.Generator().manual_seed(derive(bench.seed_of("order"), "order"))
        for epoch in range(1, self.epochs + 1):
            losses = []
            for rows in batches_of_features(train.encoded, len(features), shuffle):
                loss = objective.loss(network(features[rows]), targets[rows])
                optimiser.zero_grad()
                (loss + self.pull * network.scores.square().sum()).backward()
                optimiser.step()
                losses.append(float(loss.detach()))
            with torch.no_grad():
                reached = score(network(held))
            bench.log({"epoch": epoch, "validation": reached, "loss": sum(losses) / len(losses)})
            bench.progress(epoch / self.epochs, f"epoch {epoch}/{self.epochs}")
            if reached >= best[0]:
                best = (reached, epoch, {name: one.clone() for name, one in network.state_dict().items()})
        layering = 2.0 * features[:, 0].numel() * network.weight.shape[0]
        bench.tally.add_model(self.epochs * 3 * (2.0 * features.numel() + layering))  # backward is twice forward
        if not best[2]:
            raise Diverged(
                "training diverged: no epoch has a validation score that is a number",
                got=f"loss {sum(losses) / len(losses)}",
                do="train at a lower rate: scalar_mix:rate=NUMBER",
            )
        network.load_state_dict(best[2])
        return network, best[0], best[1]

    restore = restore_probe


class MixHead(nn.Module):
    """A linear layer on a softmax-weighted mix of blocks: (N, L + 1, P) -> (N, C)."""

    def __init__(self, scale: Tensor, start: LinearFit):
        super().__init__()
        self.scale = scale  # (L + 1,)
        self.scores = nn.Parameter(torch.zeros_like(scale))
        self.gamma = nn.Parameter(torch.ones(()))
        self.weight, self.bias = nn.Parameter(start.weight.clone()), nn.Parameter(start.bias.clone())

    @property
    def shares(self) -> Tensor:
        """(L + 1,) weights of the blocks, which sum to 1."""
        return self.scores.softmax(dim=0)

    def forward(self, features: Tensor) -> Tensor:
        """(N, L + 1, P) -> (N, C)."""
        mix = torch.einsum("nlp,l->np", features, self.gamma * self.shares / self.scale)
        return linear(mix, self.weight, self.bias)

    def probe(self, backbone: Any, facts: Mapping[str, Any]) -> Probe:
        """Return a probe whose shares include gamma and the scale, so that they apply to raw features."""
        with torch.no_grad():
            shares = self.gamma * self.shares / self.scale
        return Probe(backbone, shares, self.weight.detach(), self.bias.detach(), facts)
