"""Registration of our attention and mask functions with transformers."""

from __future__ import annotations

from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

from graftwork.nn.short_attention import NAME, attend, visible_keys

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, visible_keys)


def with_our_attention(network: PreTrainedModel) -> PreTrainedModel:
    """Set a transformers network to use `attend`, if it supports attention backends, and return it."""
    if network.is_backend_compatible():
        network.set_attn_implementation(NAME)
    return network
