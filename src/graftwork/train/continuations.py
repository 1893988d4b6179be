"""How likely texts go on in given ways: what all share is read once, what each has of its own once, and then the ways.

The rule is that of lm-evaluation-harness (Gao et al. 2024, doi:10.5281/zenodo.12608602): a continuation is scored by
the sum of log p over its tokens, which are those of context + continuation without those of the context; spaces at the
end of the context belong to the continuation. Where a continuation's tokens begin those of another one, it would
never be the less likely: there, what follows an answer is scored too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from graftwork.core.language_model import Earlier, NextTokenModel
from graftwork.errors import ConfigError, clip
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE, in_batches
from graftwork.train.asked import Asked, begins_another, require_numbers, without_tokens
from graftwork.train.batches import by_length

ROWS_AT_ONCE = 256  # of logits over the whole vocabulary


def asked_of(
    model: NextTokenModel, contexts: Sequence[str], continuations: Sequence[Sequence[str]], end: str = ""
) -> list[Asked]:
    """Tokenise contexts, each with its continuations.

    Where one continuation begins another, `end` stands behind each or, if it has no token, the one that ends texts.
    Raises `ConfigError` for a continuation without a token, and where continuations need an end and there is none.
    """
    found = _tokenised(model, contexts, continuations)
    unclear = [row for row, one in enumerate(found) if begins_another(one.continuations)]
    if not unclear:
        return found
    ended = [[way + end for way in continuations[row]] for row in unclear]
    for row, one in zip(unclear, _tokenised(model, [contexts[row] for row in unclear], ended), strict=True):
        found[row] = _ended(model, found[row], continuations[row]) if begins_another(one.continuations) else one
    return found


def _ended(model: NextTokenModel, asked: Asked, ways: Sequence[str]) -> Asked:
    if not model.ends:
        raise ConfigError(
            "an answer begins another one, and nothing tells where it ends",
            got=", ".join(map(clip, ways[:3])),
            expected="a text behind every answer",
            do="give the template a separator, or end its answer in a full stop",
        )
    return Asked(asked.context, [[*way, model.ends[0]] for way in asked.continuations])


def _tokenised(model: NextTokenModel, contexts: Sequence[str], continuations: Sequence[Sequence[str]]) -> list[Asked]:
    moved = [(context.rstrip(), context[len(context.rstrip()) :]) for context in contexts]
    heads = model.tokens([head for head, _ in moved])
    whole = iter(
        model.tokens(
            [head + spaces + way for (head, spaces), ways in zip(moved, continuations, strict=True) for way in ways]
        )
    )
    found = []
    for head, ways in zip(heads, continuations, strict=True):
        followed = [next(whole)[len(head) :] for _ in ways]
        if not head or not all(followed):
            without_tokens("" if not head else ways[followed.index([])], prompt=not head)
        found.append(Asked(head, followed))
    return found


@torch.inference_mode()
def read_before(model: NextTokenModel, tokens: Sequence[int]) -> Earlier:
    """Read what prompts share."""
    return model.read(*model.padded([tokens]))[1]


class DecoderCursor:
    """A `Cursor` behind contexts, which follow what was read `before`."""

    def __init__(self, model: NextTokenModel, contexts: Sequence[list[int]], before: Earlier | None):
        self.model, self.rows, self.read = model, list(range(len(contexts))), [0] * len(contexts)
        ids, real = model.padded(contexts)
        states, self.kept = model.read(ids, real, before)
        self.last = states[torch.arange(len(contexts), device=ids.device), real.sum(dim=1) - 1]  # (B, D)

    def logits(self, rows: Sequence[int], written: Sequence[Sequence[int]]) -> Tensor:
        """Return (n, V) fp32: the logits of the token behind all that each of these rows has written."""
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
def log_likelihoods(model: NextTokenModel, asked: Sequence[Asked], before: Earlier | None = None) -> list[list[float]]:
    """Return the log-likelihood of every continuation of each context, which follows what was read `before`.

    A continuation of one token costs nothing more than its context. Raises `IncompatibleModule` for what is no number.
    """
    sizes = np.array([len(one.context) for one in asked], dtype=np.int64)
    found = in_batches(sizes, lambda rows: _of_batch(model, [asked[row] for row in rows], before))
    require_numbers(found, model.name)
    return found


def _of_batch(model: NextTokenModel, asked: Sequence[Asked], before: Earlier | None) -> list[list[float]]:
    ids, real = model.padded([one.context for one in asked])
    states, kept = model.read(ids, real, before)
    last = states[torch.arange(len(asked), device=ids.device), real.sum(dim=1) - 1]  # (B, D)
    firsts = [[way[0] for way in one.continuations] for one in asked]
    scores = _log_probabilities(model, last, firsts)
    longer = [(row, place) for row, one in enumerate(asked) for place, way in enumerate(one.continuations) if way[1:]]
    rests = [asked[row].continuations[place] for row, place in longer]
    for part in by_length(np.array([len(way) - 1 for way in rests], dtype=np.int64), TOKENS_AT_ONCE, EXAMPLES_AT_ONCE):
        chosen = part.tolist()
        ids, real = model.padded([rests[i][:-1] for i in chosen])
        states, _ = model.read(ids, real, kept.some([longer[i][0] for i in chosen]))
        followed = [[token] for i in chosen for token in rests[i][1:]]
        added = iter(_log_probabilities(model, states[real], followed))
        for i in chosen:
            row, place = longer[i]
            scores[row][place] += sum(next(added)[0] for _ in rests[i][1:])
    return scores


def _log_probabilities(model: NextTokenModel, states: Tensor, tokens: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return log p of the tokens that may follow each of the states (N, D), of which some are asked for each."""
    found: list[list[float]] = []
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        logits = model.logits(states[start : start + ROWS_AT_ONCE])  # (n, V)
        chances = logits - logits.logsumexp(dim=1, keepdim=True)
        wanted = tokens[start : start + ROWS_AT_ONCE]
        rows = torch.tensor([row for row, listed in enumerate(wanted) for _ in listed], device=logits.device)
        columns = torch.tensor(list(chain.from_iterable(wanted)), device=logits.device)
        values = iter(chances[rows, columns].double().cpu().tolist())
        found += [[next(values) for _ in listed] for listed in wanted]
    return found
