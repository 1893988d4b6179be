"""Size, weight and bias of a site: a linear layer of a network that adapters attach to."""

from __future__ import annotations

from torch import Tensor, nn


def site_size(site: nn.Module) -> tuple[int, int]:
    """Return (in, out) of `nn.Linear` or GPT-2's `Conv1D`, whose weight is transposed. Raises `TypeError`."""
    if isinstance(site, nn.Linear):
        return site.in_features, site.out_features
    from transformers.pytorch_utils import Conv1D

    if isinstance(site, Conv1D):
        return site.weight.shape[0], site.weight.shape[1]
    raise TypeError(f"not a linear map: {type(site).__name__}")


def map_weight(site: nn.Module) -> Tensor:
    """Return the weight of a linear layer as (out, in): a view, so that changing it changes the layer."""
    site_size(site)
    weight = site.weight
    assert isinstance(weight, Tensor)
    return weight.detach() if isinstance(site, nn.Linear) else weight.detach().T


def bias_of(site: nn.Module) -> Tensor | None:
    """Return the bias of a linear layer or norm, None without one: a view, so that changing it changes the site."""
    bias = getattr(site, "bias", None)  # RMS norms and the linear layers of some families have none
    return bias.detach() if isinstance(bias, Tensor) else None
