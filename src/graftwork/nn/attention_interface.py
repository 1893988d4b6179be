"""Registration of our attention and mask functions with transformers."""

from __future__ import annotations

from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

from graftwork.nn.short_attention import NAME, attend, visible_keys

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, visible_keys)


def with_our_attention(network: PreTrainedModel) -> PreTrainedModel:
    """Set a transformers network to use `attend`, if it can, and return it. Every encoder-decoder opened here can."""
    if network.is_backend_compatible() or type(network.config).is_encoder_decoder:
        network.set_attn_implementation(NAME)
    return network
