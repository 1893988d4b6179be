"""The linear maps of a network that adapters attach to."""

from __future__ import annotations

from torch import nn


def site_size(site: nn.Module) -> tuple[int, int]:
    """Return (in, out) of a linear map: `nn.Linear` or GPT-2's `Conv1D`, whose weight is transposed."""
    if isinstance(site, nn.Linear):
        return site.in_features, site.out_features
    from transformers.pytorch_utils import Conv1D

    if isinstance(site, Conv1D):
        return site.weight.shape[0], site.weight.shape[1]
    raise TypeError(f"not a linear map: {type(site).__name__}")
