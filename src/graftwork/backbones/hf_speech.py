"""Speech and audio backbones from any transformers folder or hub name: `hf:<folder or hub name>`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from graftwork.core.backbone import Inputs
from graftwork.pretrained.chained_network import Architecture, Chain, alone
from graftwork.pretrained.layout import VIT_ROLES
from graftwork.pretrained.load_media import SoundFamily
from graftwork.pretrained.whisper_encoder import WHISPER_ENCODER
from graftwork.registry import backbones

MLP_ROLES: Mapping[str, str] = {"mlp.up": "feed_forward.intermediate_dense", "mlp.down": "feed_forward.output_dense"}
WAV2VEC2_ROLES: Mapping[str, str] = {
    "attention.query": "attention.q_proj",
    "attention.key": "attention.k_proj",
    "attention.value": "attention.v_proj",
    "attention.output": "attention.out_proj",
    **MLP_ROLES,
}


def wav2vec2(network: Any) -> Chain:
    """wav2vec 2.0 (Baevski et al. 2020, arXiv:2006.11477) and HuBERT (Hsu et al. 2021, arXiv:2106.07447)."""
    return Chain(
        embed=partial(_from_waves, network),
        blocks={f"encoder.layers.{n}": partial(_masked, layer) for n, layer in enumerate(network.encoder.layers)},
        finish=_last_norm(network),
        beside=partial(_padding, network),
        learns_like=_last_learns_like(network),
    )


def wavlm(network: Any) -> Chain:
    """WavLM (Chen et al. 2022, arXiv:2110.13900). All layers share the first layer's relative position bias.

    Recordings of equal length run together, so that no mask is needed: torch would warn of a mask together with the
    bias.
    """
    return Chain(
        embed=partial(_from_waves, network),
        blocks={
            f"encoder.layers.{n}": partial(_by_length, network.encoder.layers[0].attention, layer)
            for n, layer in enumerate(network.encoder.layers)
        },
        finish=_last_norm(network),
        beside=lambda inputs: inputs["attention_mask"].sum(dim=1),
        learns_like=_last_learns_like(network),
    )


def spectrogram_transformer(network: Any) -> Chain:
    """Layers over spectrogram patches, pooled at a class and a distillation token (Gong et al. 2021,
    arXiv:2104.01778)."""
    return Chain(
        embed=lambda inputs: network.embeddings(inputs["input_values"]),
        blocks={f"layers.{n}": alone(layer) for n, layer in enumerate(network.layers)},
        finish=network.layernorm,
    )


def _from_waves(network: Any, inputs: Inputs) -> Tensor:
    """Return the embedding (S, T, D). The convolutions run without padding, as some normalise over the length."""
    real = inputs["attention_mask"].bool()[:, :, None]  # (S, T, 1)
    heard = [
        network.feature_extractor(wave[None, :length])[0].transpose(0, 1)  # (T of the recording, channels)
        for wave, length in zip(inputs["input_values"], inputs["samples"].tolist(), strict=True)
    ]
    projected = network.feature_projection(nn.utils.rnn.pad_sequence(heard, batch_first=True))
    state: Tensor = (projected[0] if isinstance(projected, tuple) else projected) * real
    state = state + _of_places(network.encoder.pos_conv_embed, state, real)
    return state if network.config.do_stable_layer_norm else network.encoder.layer_norm(state)


def _of_places(convolution: Any, state: Tensor, real: Tensor) -> Tensor:
    """Return position embeddings (S, T, D). Padding is zeroed again after a batch norm before the convolution."""
    norm = getattr(convolution, "batch_norm", None)
    if norm is None:
        said: Tensor = convolution(state)
    else:
        normed = norm(state.transpose(1, 2)) * real.transpose(1, 2)  # (S, D, T)
        said = convolution.activation(convolution.padding(convolution.conv(normed))).transpose(1, 2)
    return said


def _last_norm(network: Any) -> Any:
    return network.encoder.layer_norm if network.config.do_stable_layer_norm else nn.Identity()


def _last_learns_like(network: Any) -> Mapping[str, str]:
    """Map a stable layer norm to the highest layer, which it follows; it is registered before the lowest."""
    highest = f"encoder.layers.{len(network.encoder.layers) - 1}"
    return {"encoder.layer_norm": highest} if network.config.do_stable_layer_norm else {}


def _padding(network: Any, inputs: Inputs) -> Tensor:
    """Return the additive attention mask (S, 1, 1, T)."""
    dtype = next(network.parameters()).dtype
    unseen = ~inputs["attention_mask"].bool()[:, None, None, :]
    return torch.zeros(unseen.shape, dtype=dtype, device=unseen.device).masked_fill(unseen, torch.finfo(dtype).min)


def _masked(layer: nn.Module, state: Tensor, padding: Tensor) -> Tensor:
    after: Tensor = layer(state, attention_mask=padding)
    return after


def _by_length(first: Any, layer: nn.Module, state: Tensor, lengths: Tensor) -> Tensor:
    after = torch.zeros_like(state)
    for length in sorted(set(lengths.tolist())):
        rows = torch.nonzero(lengths == length).flatten()
        distances = first.compute_bias(length, length).repeat(len(rows), 1, 1)  # (rows x heads, T, T)
        after[rows, :length] = layer(state[rows, :length], position_bias=distances)[0]
    return after


ARCHITECTURES: Mapping[str, Architecture] = {
    "wav2vec2": Architecture(wav2vec2, "feature_extractor", WAV2VEC2_ROLES, "mean"),
    "hubert": Architecture(wav2vec2, "feature_extractor", WAV2VEC2_ROLES, "mean"),
    # Its attention uses the projections' weights directly, so hooks on them do not run.
    "wavlm": Architecture(wavlm, "feature_extractor", MLP_ROLES, "mean", splits_rows=True),
    "whisper": WHISPER_ENCODER,
    "audio-spectrogram-transformer": Architecture(spectrogram_transformer, "embeddings", VIT_ROLES, "first two"),
}

backbones.register("hf_speech")(SoundFamily(ARCHITECTURES))
