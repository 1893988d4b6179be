"""Replay: a share of every batch is general text, so that the network does not forget it (Robins 1995)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graftwork.pretrain.objective import Rows
from graftwork.train.seeds import derive


def general_rows(batch: int, share: float) -> int:
    """How many rows of a batch are general text."""
    return round(batch * share)


@dataclass(frozen=True)
class Replayed:
    """Rows of a corpus, and among every batch as many of another as `share` says."""

    own: Rows
    general: Rows
    share: float

    @property
    def content(self) -> int:
        """Ids of a row that come from its corpus."""
        return self.own.content

    def __len__(self) -> int:
        """Rows of an epoch of the corpus itself."""
        return len(self.own)

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """(B, T) int64; those of the general text come last."""
        replayed = general_rows(batch, self.share)
        parts = [self.own.rows(seed, step, batch - replayed)] if replayed < batch else []
        parts += [self.general.rows(derive(seed, "replay"), step, replayed)] if replayed else []
        return torch.cat(parts)
