"""Portions: a corpus in an order drawn for every pass, cut into pieces between which training can be resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.train.seeds import derive


@dataclass(frozen=True)
class Portion:
    """Tokens `start … end - 1` of all training tokens, with the passes end to end."""

    start: int
    end: int
    parts: tuple[tuple[int, int, int], ...]  # (document, start, end) in tokens of the document, end exclusive


def portions(tokens: SplitTokens, seed: int, count: int, size: int) -> Iterator[Portion]:
    """Yield `count` tokens in portions of `size`, documents reshuffled in every pass; a pure function of the seed."""
    start, end, parts, epoch = 0, 0, [], 0
    lengths = np.diff(tokens.starts)
    while end < count:
        order = np.random.default_rng(derive(seed, f"pass {epoch}")).permutation(tokens.documents)
        for document in order.tolist():
            place, length = 0, int(lengths[document])
            while place < length and end < count:
                taken = min(length - place, size - (end - start), count - end)
                parts.append((document, place, place + taken))
                place, end = place + taken, end + taken
                if end - start == size:
                    yield Portion(start, end, tuple(parts))
                    start, parts = end, []
        epoch += 1
    if parts:
        yield Portion(start, end, tuple(parts))
