"""Deduplication of equal sequences in a batch (a premise of three hypotheses, a question with candidates)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graftwork.core.backbone import Inputs


@dataclass(frozen=True)
class Equals:
    """The distinct sequences of a batch (S,), and the map from each sequence to its distinct one."""

    firsts: list[int]  # (F,) the first sequence of every group of equal ones
    places: list[int]  # (S,) index into `firsts` of each sequence

    def once(self, inputs: Inputs) -> Inputs:
        """Return the inputs of the distinct sequences, each (F, T)."""
        return {name: tensor[self.firsts] for name, tensor in inputs.items()}


def equals_of(inputs: Inputs) -> Equals | None:
    """Find the equal sequences; None where there are none, for inputs read word by word, images and sounds.

    Valid only if the network treats equal sequences alike: no dropout, nothing that depends on the row.
    """
    if "words" in inputs or any(tensor.is_floating_point() for tensor in inputs.values()):
        return None
    read = [tensor.cpu().numpy() for tensor in inputs.values()]
    known: dict[bytes, int] = {}
    places = [known.setdefault(b"".join(one.tobytes() for one in row), len(known)) for row in zip(*read, strict=True)]
    if len(known) == len(places):
        return None
    return Equals(np.unique(places, return_index=True)[1].tolist(), places)
