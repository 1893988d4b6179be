"""Our attention among transformers' own: what a network of theirs is set to use must be known to them."""

from __future__ import annotations

from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

from graftwork.nn.short_attention import NAME, attend, visible_keys

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, visible_keys)


def with_our_attention(network: PreTrainedModel) -> PreTrainedModel:
    """A network of transformers' own, which attends as `attend` does from now on, if it can be told how."""
    if network.is_backend_compatible():
        network.set_attn_implementation(NAME)
    return network
