"""Image backbones from any transformers folder or hub name: `hf:<folder or hub name>`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from graftwork.pretrained.chained_network import Architecture, Chain, Step, alone, as_maps, as_sequence
from graftwork.pretrained.layout import VIT_ROLES
from graftwork.pretrained.load_media import ImageFamily
from graftwork.registry import backbones

NO_ROLES: Mapping[str, str] = {}


def on_maps(*modules: nn.Module) -> Step:
    """Wrap modules on feature maps (S, D, H, W), applied in order, as a step on sequences."""

    def step(state: Tensor, beside: Any) -> Tensor:
        maps = as_maps(state)
        for module in modules:
            maps = module(maps)
        return as_sequence(maps)

    return step


def mobilenet_v2(network: Any) -> Chain:
    """Sixteen inverted residuals and the last convolution (Sandler et al. 2018, arXiv:1801.04381)."""
    blocks = {f"layer.{number}": on_maps(layer) for number, layer in enumerate(network.layer)}
    return Chain(
        embed=lambda inputs: as_sequence(network.conv_stem(inputs["pixel_values"])),
        blocks=blocks | {"conv_1x1": on_maps(network.conv_1x1)},
        finish=lambda state: state,
    )


def resnet(network: Any) -> Chain:
    """Residual layers, stage after stage (He et al. 2016, arXiv:1512.03385)."""
    return Chain(
        embed=lambda inputs: as_sequence(network.embedder(inputs["pixel_values"])),
        blocks={
            f"encoder.stages.{place}.layers.{number}": on_maps(layer)
            for place, stage in enumerate(network.encoder.stages)
            for number, layer in enumerate(stage.layers)
        },
        finish=lambda state: state,
    )


def convnext(network: Any) -> Chain:
    """Layers; the downsampling between stages belongs to the next layer (Liu et al. 2022, arXiv:2201.03545).

    The final norm follows the mean over positions, so the output is a single position.
    """
    return Chain(
        embed=lambda inputs: as_sequence(network.embeddings(inputs["pixel_values"])),
        blocks={
            f"encoder.stages.{place}.layers.{number}": on_maps(*([] if number else stage.downsampling_layer), layer)
            for place, stage in enumerate(network.encoder.stages)
            for number, layer in enumerate(stage.layers)
        },
        finish=lambda state: network.layernorm(state.mean(dim=1, keepdim=True)),
    )


def vit(network: Any) -> Chain:
    """Layers over patches and a class token (Dosovitskiy et al. 2021, arXiv:2010.11929)."""
    return Chain(
        embed=lambda inputs: network.embeddings(inputs["pixel_values"]),
        blocks={f"layers.{number}": alone(layer) for number, layer in enumerate(network.layers)},
        finish=network.layernorm,
    )


def swin(network: Any) -> Chain:
    """Layers over shifted windows; patch merging belongs to the layer before it (Liu et al. 2021, arXiv:2103.14030)."""
    return Chain(
        embed=lambda inputs: network.embeddings(inputs["pixel_values"])[0],
        blocks={
            f"encoder.layers.{place}.blocks.{number}": partial(
                _windowed, block, stage.downsample if block is stage.blocks[-1] else None
            )
            for place, stage in enumerate(network.encoder.layers)
            for number, block in enumerate(stage.blocks)
        },
        finish=network.layernorm,
    )


def _windowed(block: nn.Module, merge: nn.Module | None, state: Tensor, beside: Any) -> Tensor:
    side = round(state.shape[1] ** 0.5)
    after: Tensor = block(state, (side, side))[0]
    return after if merge is None else merge(after, (side, side))


ARCHITECTURES: Mapping[str, Architecture] = {
    "mobilenet_v2": Architecture(mobilenet_v2, "conv_stem", NO_ROLES, "mean"),
    "resnet": Architecture(resnet, "embedder", NO_ROLES, "mean"),
    "convnext": Architecture(convnext, "embeddings", {"mlp.up": "pwconv1", "mlp.down": "pwconv2"}, "mean"),
    "vit": Architecture(vit, "embeddings", VIT_ROLES, "first"),
    "swin": Architecture(swin, "embeddings", VIT_ROLES, "mean"),
}

backbones.register("hf_image")(ImageFamily(ARCHITECTURES))
