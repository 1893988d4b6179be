"""Log-likelihoods of fixed answers under a network that writes texts: they serve as logits, and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded
from graftwork.core.model import Model
from graftwork.machine.memory import answers_in_halves
from graftwork.train.answer_order import EXAMPLES_AT_ONCE, TOKENS_AT_ONCE
from graftwork.train.batches import by_length
from graftwork.train.text_loop import writer_of


@torch.no_grad()
def answer_likelihoods(model: Model, encoded: Encoded, answers: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return (N, A): for each example the log-likelihood of each of A answers, given as tokens with an end token.

    The encoder runs once per example, the decoder once per answer.
    """
    writer = writer_of(model)
    found = np.empty((len(encoded), len(answers)), dtype=np.float64)

    def read(rows: Sequence[int]) -> NDArray[Any]:
        inputs = model.backbone.collate(encoded, encoded.sequences(rows))
        states, mask = model.read(inputs), inputs["attention_mask"]
        told = (torch.tensor([answer], device=model.device).expand(len(rows), -1) for answer in answers)
        chances = [writer.log_probabilities(states, mask, tokens).double().sum(dim=1) for tokens in told]
        scores: NDArray[Any] = torch.stack(chances, dim=1).cpu().numpy()
        return scores

    for rows in by_length(encoded.lengths, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE):
        found[rows] = np.concatenate(answers_in_halves(rows.tolist(), read))
    return found
