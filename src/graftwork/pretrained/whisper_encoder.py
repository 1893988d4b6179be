"""Whisper's encoder, unrolled: two convolutions over log-mel frames, then layers (Radford et al. 2022,
arXiv:2212.04356)."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import gelu

from graftwork.core.backbone import Inputs
from graftwork.pretrained.chained_network import Architecture, Chain
from graftwork.pretrained.layout import WHISPER_ROLES


def whisper_encoder(network: Any) -> Chain:
    """Return the chain of a transformers `WhisperEncoder`. Nothing is masked: silence after a sound is read too."""
    return Chain(
        embed=partial(_from_frames, network),
        blocks={f"layers.{n}": partial(_unmasked, layer) for n, layer in enumerate(network.layers)},
        finish=network.layer_norm,
    )


def _from_frames(network: Any, inputs: Inputs) -> Tensor:
    """Compute the embedding (S, T, D) of log-mel frames (S, bands, 2 T)."""
    heard = gelu(network.conv2(gelu(network.conv1(inputs["input_features"])))).transpose(1, 2)
    embedded: Tensor = heard + network.embed_positions.weight
    return embedded


def _unmasked(layer: nn.Module, state: Tensor, beside: None) -> Tensor:
    after: Tensor = layer(state, None)
    return after


WHISPER_ENCODER = Architecture(whisper_encoder, "conv1", WHISPER_ROLES, "mean")
