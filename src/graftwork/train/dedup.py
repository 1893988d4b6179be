"""Equal sequences of a batch: a premise with three hypotheses, a question with its candidates. They are read once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graftwork.core.backbone import Inputs


@dataclass(frozen=True)
class Equals:
    """The sequences of a batch (S,) without those that repeat an earlier one."""

    firsts: list[int]  # (F,) of every group of equal ones the first
    places: list[int]  # (S,) which of these each one is

    def once(self, inputs: Inputs) -> Inputs:
        """Each (F, T)."""
        return {name: tensor[self.firsts] for name, tensor in inputs.items()}


def equals_of(inputs: Inputs) -> Equals | None:
    """None where there are none, and for what is read word by word, images and sounds.

    Whoever uses it must know that the network treats equal sequences alike: no dropout, nothing that hangs on rows.
    """
    if "words" in inputs or any(tensor.is_floating_point() for tensor in inputs.values()):
        return None
    read = [tensor.cpu().numpy() for tensor in inputs.values()]
    known: dict[bytes, int] = {}
    places = [known.setdefault(b"".join(one.tobytes() for one in row), len(known)) for row in zip(*read, strict=True)]
    if len(known) == len(places):
        return None
    return Equals(np.unique(places, return_index=True)[1].tolist(), places)
