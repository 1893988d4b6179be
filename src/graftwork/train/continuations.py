"""Log-likelihoods of given continuations of texts. What all texts begin with is encoded once, then each text once.

The continuations of a text are a tree: tokens that begin several are encoded once, and the tree is one row of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from graftwork.core.language_model import Earlier, NextTokenModel, TokenTree
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_batches
from graftwork.train.batches import by_length
from graftwork.train.prompt_tokens import PromptTokens, require_numbers

ROWS_AT_ONCE = 256  # of logits over the whole vocabulary, computed at once


@torch.inference_mode()
def read_before(model: NextTokenModel, tokens: Sequence[int]) -> Earlier:
    """Encode the tokens that all prompts begin with; return their keys and values."""
    return model.read(*model.padded([tokens]))[1]


class DecoderCursor:
    """A `Cursor` over contexts of a decoder, which continue from the cache `before`."""

    def __init__(self, model: NextTokenModel, contexts: Sequence[list[int]], before: Earlier | None):
        self.model, self.rows, self.read = model, list(range(len(contexts))), [0] * len(contexts)
        ids, real = model.padded(contexts)
        states, self.kept = model.read(ids, real, before)
        self.last = states[torch.arange(len(contexts), device=ids.device), real.sum(dim=1) - 1]  # (B, D)

    def __call__(self, rows: Sequence[int], written: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the next token of each of these rows, after those it has `written`."""
        new = [list(tokens[self.read[row] :]) for row, tokens in zip(rows, written, strict=True)]
        places = [self.rows.index(row) for row in rows]
        if places != list(range(len(self.rows))):
            self.rows, self.last, self.kept = list(rows), self.last[places], self.kept.some(places)
        if any(new):
            ids, real = self.model.padded(new)
            states, self.kept = self.model.read(ids, real, self.kept)
            counts = real.sum(dim=1)
            found = states[torch.arange(len(rows), device=ids.device), (counts - 1).clamp(min=0)]
            self.last = torch.where(counts[:, None] > 0, found, self.last)
            for row, tokens in zip(rows, written, strict=True):
                self.read[row] = len(tokens)
        return self.model.logits(self.last)


@torch.inference_mode()
def log_likelihoods(
    model: NextTokenModel, asked: Sequence[PromptTokens], before: Earlier | None = None
) -> list[list[float]]:
    """Return the log-likelihood of every continuation of each context; contexts continue from the cache `before`.

    A continuation of one token costs nothing extra. Raises `IncompatibleModule` for one that is not finite.
    """
    sizes = np.array([len(one.context) for one in asked], dtype=np.int64)
    found = in_batches(sizes, lambda rows: _of_batch(model, [asked[row] for row in rows], before), buckets=True)
    require_numbers(found, model.name)
    return found


def _of_batch(model: NextTokenModel, asked: Sequence[PromptTokens], before: Earlier | None) -> list[list[float]]:
    ids, real = model.padded([one.context for one in asked])
    states, kept = model.read(ids, real, before)
    last = states[torch.arange(len(asked), device=ids.device), real.sum(dim=1) - 1]  # (B, D)
    trees = [TokenTree.of(one.continuations) for one in asked]
    firsts = _log_probabilities(model, last, [tree.wanted[0] for tree in trees])
    found = [[first] for first in firsts]
    longer = [row for row, tree in enumerate(trees) if tree.tokens]
    sizes = np.array([len(trees[row].tokens) for row in longer], dtype=np.int64)
    for part in by_length(sizes, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE):
        rows = [longer[place] for place in part]
        states = model.read_trees([trees[row] for row in rows], kept.some(rows))  # (n, D)
        told = iter(_log_probabilities(model, states, [one for row in rows for one in trees[row].wanted[1:]]))
        for row in rows:
            found[row] += [next(told) for _ in trees[row].tokens]
    return [tree.sums(chances) for tree, chances in zip(trees, found, strict=True)]


def _log_probabilities(model: NextTokenModel, states: Tensor, tokens: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return the log-probabilities of the listed `tokens` after each of the states (N, D)."""
    found: list[list[float]] = []
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        logits = model.logits(states[start : start + ROWS_AT_ONCE])  # (n, V)
        chances = logits - logits.logsumexp(dim=1, keepdim=True)
        found += chances_among(chances, tokens[start : start + ROWS_AT_ONCE])
    return found


def chances_among(chances: Tensor, tokens: Sequence[Sequence[int]]) -> list[list[float]]:
    """Select from the log-probabilities `chances` (n, V) those of the listed `tokens` of each row."""
    rows = torch.tensor([row for row, listed in enumerate(tokens) for _ in listed], device=chances.device)
    columns = torch.tensor(list(chain.from_iterable(tokens)), device=chances.device)
    values = iter(chances[rows, columns].double().cpu().tolist())
    return [[next(values) for _ in listed] for listed in tokens]
