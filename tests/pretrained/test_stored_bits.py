"""Weights as int8 with scales, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graftwork.errors import StorageError
from graftwork.pretrained.stored_bits import SCALES, from_stored, to_stored

TENSORS = {"map.weight": torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), "map.bias": torch.ones(6)}


def test_each_row_has_the_accuracy_of_its_largest_number() -> None:
    packed = to_stored(TENSORS, "int8", ["map.weight"])
    assert packed["map.weight"].dtype == torch.int8 and packed["map.bias"].dtype == torch.float32
    back = from_stored(packed, Path("model.safetensors"))
    most = TENSORS["map.weight"].abs().amax(dim=1, keepdim=True) / 254
    assert back.keys() == TENSORS.keys() and bool(
        ((back["map.weight"] - TENSORS["map.weight"]).abs() <= most * 1.01).all()
    )
    again = to_stored(back, "int8", ["map.weight"])
    assert torch.equal(again["map.weight"], packed["map.weight"])  # what runs is what was stored


@pytest.mark.parametrize("scales", [torch.ones(5), None])
def test_scales_of_no_matrix_are_refused(scales: torch.Tensor | None) -> None:
    packed = to_stored(TENSORS, "int8", ["map.weight"])
    packed = (
        packed | {"map.weight" + SCALES: scales} if scales is not None else packed | {"other" + SCALES: torch.ones(6)}
    )
    with pytest.raises(StorageError, match="belong to no matrix"):
        from_stored(packed, Path("model.safetensors"))
