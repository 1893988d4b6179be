"""Writing of an open text backbone as a transformers folder, which `hf:FOLDER` opens with the same outputs."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError
from graftwork.io.files import write_json, write_tensors, write_text
from graftwork.nn.bert import BertShape
from graftwork.pretrained.model_folder import OWN_SETTINGS, WEIGHTS
from graftwork.pretrained.stored_bits import STORED_AS, to_stored
from graftwork.pretrained.transformer import TransformerBackbone

ENCODER = "encoder."  # prefix of tensor names if only the encoder of an encoder-decoder is open
ARCHITECTURES = {"bert": "BertModel"}  # of our own networks, whose configurations do not name a class


def as_transformer(backbone: Backbone | None) -> TransformerBackbone:
    """Return `backbone` if it can be saved. Raises `ConfigError` for images, sounds, None, or one that writes."""
    if isinstance(backbone, TransformerBackbone) and not backbone.card.writes:
        return backbone
    named = "a module without a backbone" if backbone is None else f"a backbone of type {backbone.card.family}"
    raise ConfigError(
        f"{named} can't be written as a folder of its own",
        expected="a text encoder or decoder of transformers' architectures, or minilm",
        do="compress a module on such a backbone",
    )


def write_backbone(backbone: Backbone, folder: Path, *, stored_as: str | None = None) -> None:
    """Write config.json, model.safetensors and the tokenizer's files to `folder`.

    Weights are `stored_as` "fp32", "fp16", "bf16" or "int8" (matrices only), by default in the dtype they have.
    config.json states that, and how texts are read: pooling, sequences per pair, length.

    Raises `ConfigError` as `as_transformer` does, and `StorageError`.
    """
    opened = as_transformer(backbone)
    card, tensors = opened.card, tensors_of(opened)
    own: dict[str, Any] = {"pooling": card.pooling, "towers": card.towers, "max_length": card.max_length}
    if stored_as is not None:
        tensors, own = to_stored(tensors, stored_as, matrices_of(opened)), own | {STORED_AS: stored_as}
    write_tensors(folder / WEIGHTS, tensors)
    write_json(folder / "config.json", config_of(opened) | {OWN_SETTINGS: own})
    write_tokenizer(opened, folder)


def matrices_of(backbone: TransformerBackbone) -> list[str]:
    """Return the names, as in `tensors_of`, of the weights of linear layers and embedding tables."""
    kinds, before = (nn.Linear, nn.Embedding), _before(backbone)
    return [f"{before}{path}.weight" for path, part in backbone.module.named_modules() if isinstance(part, kinds)]


def tensors_of(backbone: TransformerBackbone) -> dict[str, Tensor]:
    """Return name -> weight of the network, under transformers' names, each with memory of its own."""
    before = _before(backbone)
    return {f"{before}{name}": tensor.detach().clone() for name, tensor in backbone.module.state_dict().items()}


def _before(backbone: TransformerBackbone) -> str:
    """Return `ENCODER` for the encoder of an encoder-decoder, else ""."""
    module: Any = backbone.module
    inner = getattr(module.config, "is_encoder_decoder", False) or type(module).__name__.endswith("Encoder")
    return ENCODER if inner and not hasattr(module, "encoder") else ""


def config_of(backbone: TransformerBackbone) -> dict[str, Any]:
    """Return the network's configuration, as config.json has it."""
    config: Any = backbone.module.config
    told = asdict(config) if isinstance(config, BertShape) else json.loads(json.dumps(config.to_dict()))
    plain = {key: value for key, value in told.items() if not key.startswith("_") and value is not None}
    return plain | {"architectures": [ARCHITECTURES.get(told["model_type"], type(backbone.module).__name__)]}


def write_tokenizer(backbone: TransformerBackbone, folder: Path) -> None:
    """Write tokenizer.json, without truncation and padding, and the settings that transformers needs to open it."""
    tokenizer = copy.deepcopy(backbone.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    write_text(folder / "tokenizer.json", tokenizer.to_str())
    told: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": backbone.card.max_length}
    padding = tokenizer.id_to_token(backbone.pad_id)
    types = ["token_type_ids"] if backbone.layout.token_types else []  # others would refuse them
    names = {"model_input_names": ["input_ids", *types, "attention_mask"]}
    write_json(folder / "tokenizer_config.json", told | names | ({"pad_token": padding} if padding else {}))
