"""What several processes know of each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from graftwork.pretrain.parallel import ALONE, JointWatch, Peers


class Busy(Peers):
    """Others, who spend 100 processor seconds between any two meetings."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "spent", [0.0])

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        spent: list[float] = self.__dict__["spent"]
        spent[0] += 100.0
        for tensor in tensors:
            tensor += spent[0]


def test_processor_seconds_are_of_all() -> None:
    watch, busy = JointWatch(), Busy()
    watch.meet(busy)
    watch.meet(busy)
    read = watch.read()
    assert read.cpu_seconds == pytest.approx(200, abs=5)
    assert read.wall_seconds < 100


def test_alone_they_are_its_own() -> None:
    watch = JointWatch()
    watch.meet(ALONE)
    assert watch.read().cpu_seconds < 100
