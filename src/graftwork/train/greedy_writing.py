"""Greedy decoding: the likeliest token each time, of the vocabulary or of those that continue one of given answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

Cursor = Callable[[Sequence[int], Sequence[Sequence[int]]], Tensor]
"""Maps n rows of a batch of encoded prompts, and the tokens written after each, to (n, V) fp32: the logits of the next
token of each. From call to call rows may drop out, and what the others have written becomes longer."""


def margins_of(cursor: Cursor, answers: Sequence[Sequence[list[int]]]) -> list[list[float]]:
    """Write one of its answers for each of B prompts, as `PromptedModel.margins`; none may be a prefix of another.

    The network runs only where the answers differ: a token that all of them share needs no prediction.
    """
    margins = [[0.0] * len(ways) for ways in answers]
    left = [list(range(len(ways))) for ways in answers]
    written: list[list[int]] = [[] for _ in answers]
    rows = list(range(len(answers)))
    while True:
        for row in rows:
            first = answers[row][left[row][0]]
            while len(written[row]) < len(first) and len(_next(answers[row], left[row], len(written[row]))) == 1:
                written[row].append(first[len(written[row])])
        rows = [row for row in rows if len(written[row]) < len(answers[row][left[row][0]])]
        if not rows:
            return margins
        logits = cursor(rows, [written[row] for row in rows]).double().cpu()
        for row, of_row in zip(rows, logits, strict=True):
            place = len(written[row])
            tokens = _next(answers[row], left[row], place)
            found = dict(zip(tokens, of_row[tokens].tolist(), strict=True))
            chosen = max(tokens, key=lambda token: found[token])
            for way in left[row]:
                margins[row][way] = found[answers[row][way][place]] - found[chosen]
            left[row] = [way for way in left[row] if answers[row][way][place] == chosen]
            written[row].append(chosen)


def _next(answers: Sequence[list[int]], left: Sequence[int], place: int) -> list[int]:
    """Return the distinct tokens at index `place` of the answers that are left."""
    return list(dict.fromkeys(answers[way][place] for way in left))


def written_by(
    cursor: Cursor, rows: int, longest: int, ends: Collection[int], over: Callable[[Sequence[int]], bool]
) -> list[tuple[list[int], float, bool]]:
    """Write up to `longest` tokens after each of B prompts, until a token of `ends` or until `over(tokens)`.

    Returns the tokens of each, the sum of their log-probabilities, and whether they were cut at `longest`.
    """
    written: list[list[int]] = [[] for _ in range(rows)]
    chances, cut, going = [0.0] * rows, [True] * rows, list(range(rows))
    while going and len(written[going[0]]) < longest:
        log_chances = cursor(going, [written[row] for row in going]).log_softmax(dim=1)
        best, tokens = torch.max(log_chances, dim=1)
        for row, chance, token in zip(going, best.double().tolist(), tokens.tolist(), strict=True):
            written[row].append(token)
            chances[row] += chance
            cut[row] = token not in ends and not over(written[row])
        going = [row for row in going if cut[row]]
    return list(zip(written, chances, cut, strict=True))
