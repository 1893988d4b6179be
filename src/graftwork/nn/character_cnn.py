"""A character-level word encoder: a convolution over characters, highways and a projection (Kim et al. 2016,
arXiv:1508.06615; Józefowicz et al. 2016, arXiv:1602.02410)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from graftwork.nn.activation import ACTIVATIONS
from graftwork.nn.character_ids import AFTER_WORD, SYMBOLS


@dataclass(frozen=True)
class CharacterShape:
    """The sizes of a character CNN."""

    width: int  # of a character's embedding
    filters: tuple[tuple[int, int], ...]  # (characters that a filter spans, filters of that span)
    highways: int
    activation: str  # of the convolutions

    @property
    def features(self) -> int:
        """F, the number of filters."""
        return sum(count for _, count in self.filters)


class CharacterCNN(nn.Module):
    """An encoder of words as vectors (…, P): convolutions with max pooling, highways, a linear layer."""

    def __init__(self, shape: CharacterShape, projected: int):
        super().__init__()
        self.shape = shape
        self.characters = nn.Parameter(torch.empty(SYMBOLS - 1, shape.width))  # all symbols but 0, which is zero
        self.convolutions = nn.ModuleList(nn.Conv1d(shape.width, count, span) for span, count in shape.filters)
        self.highways = nn.ModuleList(Highway(shape.features) for _ in range(shape.highways))
        self.projection = nn.Linear(shape.features, projected)
        self.activation = ACTIVATIONS[shape.activation]
        nn.init.uniform_(self.characters, -1.0, 1.0)

    def forward(self, characters: Tensor) -> Tensor:
        """Map the characters of words, (…, symbols), to vectors (…, P)."""
        words = self._short(characters.reshape(-1, characters.shape[-1]))  # (W, symbols)
        table = torch.cat([self.characters.new_zeros(1, self.shape.width), self.characters])
        letters = embedding(words, table).transpose(1, 2)  # (W, width, symbols)
        found = [self.activation(convolution(letters).amax(dim=2)) for convolution in self.convolutions]
        features = torch.cat(found, dim=1)  # (W, F)
        for highway in self.highways:
            features = highway(features)
        projected: Tensor = self.projection(features)
        return projected.view(*characters.shape[:-1], projected.shape[-1])

    def _short(self, words: Tensor) -> Tensor:
        """Cut the filler that ends all words, except as much of it as the widest filter spans.

        Further positions on filler would give equal values, of which max pooling keeps one.
        """
        longest = int(((words != AFTER_WORD) & (words != 0)).any(dim=0).sum())
        return words[:, : longest + max(span for span, _ in self.shape.filters)]


class Highway(nn.Module):
    """x -> g relu(A x + a) + (1 - g) x, g = sigmoid(B x + b) (Srivastava et al. 2015, arXiv:1505.00387)."""

    def __init__(self, width: int):
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -2.0)  # an untrained highway passes most of x through

    def forward(self, x: Tensor) -> Tensor:
        """Map (W, F) to (W, F)."""
        return torch.lerp(x, self.transform(x).relu(), self.gate(x).sigmoid())
