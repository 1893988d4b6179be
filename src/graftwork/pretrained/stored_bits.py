"""Storage formats of the weights of a network written here: unchanged, in 16 bits, or as int8 with scales."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.errors import StorageError, clip

if TYPE_CHECKING:
    from torch import Tensor

BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "int8": 8}  # storage format -> bits per weight
STORED_AS = "stored_as"  # key of config.json's own settings
SCALES = ".row_scales"  # after the name of a matrix of int8: (rows,) fp32


def to_stored(tensors: dict[str, Tensor], how: str, matrices: Collection[str]) -> dict[str, Tensor]:
    """Convert tensors to the format `how`, a key of `BITS`; "int8" converts only `matrices`, with a scale per row."""
    import torch

    from graftwork.nn.int8_linear import quantised

    if how != "int8":
        kept = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[how]
        return {name: one.to(kept) if one.is_floating_point() else one for name, one in tensors.items()}
    found = {name: one.float() if one.is_floating_point() else one for name, one in tensors.items()}
    for name in matrices:
        found[name], scales = quantised(found[name])
        found[name + SCALES] = scales[:, 0]
    return found


def from_stored(tensors: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Convert the int8 matrices of a weights file back to fp32; other tensors are unchanged.

    Raises `StorageError` for scales that belong to no matrix of int8.
    """
    import torch

    scales = {name.removesuffix(SCALES): one for name, one in tensors.items() if name.endswith(SCALES)}
    if not scales:
        return tensors
    found = {name: one for name, one in tensors.items() if not name.endswith(SCALES)}
    for name, scale in scales.items():
        matrix = found.get(name)
        if matrix is None or matrix.dtype != torch.int8 or matrix.shape[:1] != scale.shape:
            raise StorageError(
                f"scales that belong to no matrix of int8: {clip(name)}", where=str(path), do="restore it from a copy"
            )
        found[name] = matrix * scale.float().view(-1, *[1] * (matrix.dim() - 1))
    return found
