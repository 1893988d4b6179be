"""Replay: a share of every batch is general text, against forgetting (Robins 1995)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graftwork.pretrain.objective import Rows
from graftwork.train.seeds import derive


def general_rows(batch: int, share: float) -> int:
    """Return the number of rows of general text in a batch."""
    return round(batch * share)


@dataclass(frozen=True)
class Replayed:
    """Rows of a corpus, a share of every batch replaced by rows of general text."""

    own: Rows
    general: Rows
    share: float

    @property
    def content(self) -> int:
        """The number of ids of a row that come from its corpus."""
        return self.own.content

    def __len__(self) -> int:
        """The number of rows of an epoch of the corpus itself."""
        return len(self.own)

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return the batch (B, T) int64, rows of general text last."""
        replayed = general_rows(batch, self.share)
        parts = [self.own.rows(seed, step, batch - replayed)] if replayed < batch else []
        parts += [self.general.rows(derive(seed, "replay"), step, replayed)] if replayed else []
        return torch.cat(parts)
