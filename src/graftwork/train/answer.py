"""Inference: batches of near-equal lengths and bounded size, and one frozen forward pass shared where possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded, Inputs, StopsEarly
from graftwork.core.hidden_states import BatchStates
from graftwork.core.length_buckets import states_in_buckets
from graftwork.core.method import Logits, ReadsStates
from graftwork.machine.memory import answers_in_halves
from graftwork.train.answer_order import batches, in_example_order
from graftwork.train.dedup import equals_of


@torch.inference_mode()
def answer_together(backbone: Backbone, encoded: Encoded, fitted: Sequence[ReadsStates]) -> list[Logits]:
    """Return the logits of each of `fitted`, all on `backbone`; their shared hidden states are computed once.

    They equal bit for bit the logits that each computes alone: unless memory runs out, batches depend on texts only.
    """
    depths = [one.depth for one in fitted if one.depth is not None]
    order = batches(encoded)
    parts: list[list[NDArray[np.float64]]] = [[] for _ in fitted]

    def read(rows: Sequence[int]) -> list[NDArray[np.float64]]:
        inputs = backbone.collate(encoded, encoded.sequences(rows))
        states = frozen_states(backbone, inputs, max(depths), encoded.towers) if depths else ()
        seen = BatchStates(backbone, inputs, states, encoded.towers)
        return [one.read(seen).double().cpu().numpy() for one in fitted]  # each (B, C), or (W, C)

    for rows in order:
        for found in answers_in_halves(rows.tolist(), read):
            for answered, logits in zip(parts, found, strict=True):
                answered.append(logits)
    examples = np.concatenate(order)
    return [
        in_example_order(one.facts, encoded, np.concatenate(answered), examples)
        for one, answered in zip(fitted, parts, strict=True)
    ]


def states_up_to(backbone: Backbone, inputs: Inputs, depth: int, towers: int = 1) -> tuple[Tensor, ...]:
    """Return at least `depth + 1` states, skipping the blocks above if possible; two towers run bucket by bucket."""

    def states(some: Inputs) -> tuple[Tensor, ...]:
        return backbone.states_up_to(some, depth) if isinstance(backbone, StopsEarly) else backbone.states(some)

    return states_in_buckets(states, inputs, towers)


def frozen_states(backbone: Backbone, inputs: Inputs, depth: int, towers: int) -> tuple[Tensor, ...]:
    """Like `states_up_to` for a backbone without adapters: equal sequences are computed once."""
    equals = equals_of(inputs)
    if equals is None:
        return states_up_to(backbone, inputs, depth, towers)
    return tuple(state[equals.places] for state in states_up_to(backbone, equals.once(inputs), depth, towers))
