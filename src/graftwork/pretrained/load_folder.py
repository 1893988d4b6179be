"""Loading of a frozen text backbone from a transformers folder or a bare configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as InTurn
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import (
    MODEL_FOR_TEXT_ENCODING_MAPPING,
    AutoModel,
    AutoModelForTextEncoding,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from graftwork.errors import IncompatibleModule
from graftwork.nn.attention_interface import with_our_attention
from graftwork.pretrained.build_backbone import UNUSED, assemble
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.model_folder import (
    locate,
    model_type,
    own_settings,
    read_as_trained,
    reading_files,
    stored_weights,
    weight_digests,
)
from graftwork.pretrained.model_json import require_modest
from graftwork.pretrained.network_config import configuration, require_room
from graftwork.pretrained.stored_bits import STORED_AS
from graftwork.pretrained.tokenizer_folder import open_tokenizer
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.transformer_reader import head_place
from graftwork.pretrained.transformers_errors import transformers_errors


class TransformerFamily:
    """A `BackboneFamily` for the architectures of one table, `model_type` -> layout."""

    def __init__(self, layouts: Mapping[str, Layout]):
        self.layouts = layouts
        self.model_types = tuple(layouts)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """Load a folder or hub name whose `model_type` is in the table."""
        folder = locate(source)
        layout = self.layouts[model_type(folder)]
        return open_folder(folder, f"hf:{source}", layout, random_seed=random_seed, bf16=bf16)


def open_folder(folder: Path, name: str, layout: Layout, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
    """Open the network of a transformers folder, or with `random_seed` its architecture with fresh weights.

    Raises `StorageError` for weights that are missing, pickled or corrupt, `IncompatibleModule` for incomplete ones.
    """
    layout, max_length = read_as_trained(folder, layout)
    identity = {"files": reading_files(folder)}
    if random_seed is None:
        identity["weights"] = weight_digests(folder)
    with transformers_errors(folder):
        config = configuration(folder)
        if has_decoder(config):
            config.decoder_layers = 0  # BART's class would build a decoder too
        require_modest({"num_hidden_layers": getattr(config, "num_hidden_layers", 0)}, folder / "config.json")
        tokenizer, pad_id, tokenizer_length = tokenizer_of(folder, layout)
        if random_seed is None:
            module = pretrained(folder, config, bf16)
        else:
            module = fresh_of_folder(folder, config, random_seed, bf16)
    module = with_our_attention(module)
    return assemble(
        name,
        encoder_of(module) if has_decoder(config) else module,
        tokenizer,
        layout,
        pad_id=pad_id,
        max_length=min(max_length or tokenizer_length, tokenizer_length),
        random_seed=random_seed,
        identity=identity,
        head=head_place(folder, layout.head, config, fresh_weights=random_seed is not None),
        int8=own_settings(folder).get(STORED_AS) == "int8",
    )


def has_decoder(config: PreTrainedConfig) -> bool:
    """Return whether the architecture is an encoder-decoder, even if the folder holds its encoder alone."""
    return type(config).is_encoder_decoder


def auto_class(config: PreTrainedConfig) -> Any:
    """Return transformers' Auto class for a network without a head, or for its encoder alone if there is one."""
    alone = has_decoder(config) and type(config) in MODEL_FOR_TEXT_ENCODING_MAPPING
    return AutoModelForTextEncoding if alone else AutoModel


def encoder_of(network: Any) -> PreTrainedModel:
    """Return the encoder of an encoder-decoder, without the token embedding that only a decoder would use."""
    network.shared = None
    encoder: PreTrainedModel = network.encoder if hasattr(network, "decoder") else network
    return encoder


def fresh(config: PreTrainedConfig, seed: int, bf16: bool, make: Any = None) -> PreTrainedModel:
    """Build the architecture with weights drawn from `seed`, the same ones in either precision.

    `make` is the Auto class of transformers, by default that of `auto_class`.
    """
    make = make or auto_class(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: PreTrainedModel = make.from_config(config, dtype=torch.float32, attn_implementation="eager")
        if not bf16:
            return module
        half: PreTrainedModel = make.from_config(config, dtype=torch.bfloat16, attn_implementation="eager")
    half.load_state_dict(module.state_dict())
    return in_bf16(half)


def fresh_of_folder(folder: Path, config: PreTrainedConfig, seed: int, bf16: bool, make: Any = None) -> PreTrainedModel:
    """Apply `fresh` to a folder's configuration. Raises `StorageError` if it is too large to be drawn."""
    make = make or auto_class(config)
    require_room(partial(make.from_config, config, attn_implementation="eager"), None, folder / "config.json")
    return fresh(config, seed, bf16, make)


def require_whole(missing: Sequence[str], folder: Path) -> None:
    """Raise `IncompatibleModule` where tensors of a network are missing from its folder."""
    if missing:
        raise IncompatibleModule(
            "the weights are not whole",
            where=str(folder),
            got=f"{len(missing)} tensors are missing: {', '.join(missing[:3])}",
            do="use a folder that holds the whole network",
        )


def in_bf16(module: PreTrainedModel) -> PreTrainedModel:
    """Cast parameters to bf16, including those that were built in fp32 regardless (XLNet's).

    Buffers are not cast: rotary frequencies stay in fp32. Nor are batch norms: bf16 cannot hold their statistics.
    """
    for part in module.modules():
        if not isinstance(part, nn.modules.batchnorm._BatchNorm):
            for parameter in part.parameters(recurse=False):
                parameter.data = parameter.data.to(torch.bfloat16)
    return module


def pretrained(folder: Path, config: PreTrainedConfig, bf16: bool) -> PreTrainedModel:
    """Load the network of a folder. Raises `IncompatibleModule` where tensors are missing."""
    module, missing_keys = load_weights(auto_class(config), folder, config, torch.bfloat16 if bf16 else torch.float32)
    unused = (*UNUSED, "decoder") if has_decoder(config) else UNUSED
    missing = sorted(key for key in missing_keys if not any(f"{key}.".startswith(f"{path}.") for path in unused))
    require_whole(missing, folder)
    return in_bf16(module) if bf16 else module


def load_weights(
    make: Any, folder: Path, config: PreTrainedConfig, dtype: torch.dtype
) -> tuple[PreTrainedModel, list[str]]:
    """Load the weights of a folder with `make`, one of transformers' Auto classes; return network and missing tensors.

    Only tensors are passed on: transformers sees no file. Raises `StorageError` for weights that cannot be read or are
    far fewer than the configuration's, `IncompatibleModule` for ones that are not finite.
    """
    stored = stored_weights(folder)
    build = partial(make.from_config, config, attn_implementation="eager")
    made: Any = type(require_room(build, sum(tensor.numel() for tensor in stored.values()), folder / "config.json"))
    module: PreTrainedModel
    with torch.random.fork_rng(devices=[]):  # missing weights are drawn at random
        module, report = made.from_pretrained(
            None,
            config=config,
            state_dict=stored,
            generation_config=GenerationConfig(),
            dtype=dtype,
            attn_implementation="eager",
            local_files_only=True,
            output_loading_info=True,
        )
    computed = {name for name, part in module.named_modules() if hasattr(part, "create_weight")}  # tables of sinusoids
    for name in computed:  # they are not stored, and loading makes them trainable
        module.get_submodule(name).requires_grad_(False)
    return module, sorted(set(report["missing_keys"]) - {f"{name}.weight" for name in computed})


def tokenizer_of(folder: Path, layout: Layout) -> tuple[Tokenizer, int, int]:
    """Return the tokenizer, the padding token's id, and the maximum length it states."""
    outer = open_tokenizer(folder)
    tokenizer: Tokenizer = outer.backend_tokenizer
    if layout.lower_case:
        own = tokenizer.normalizer
        tokenizer.normalizer = Lowercase() if own is None else InTurn([Lowercase(), own])
    end, end_id = outer.eos_token, outer.eos_token_id
    if layout.separate_by_end and end is not None and tokenizer.num_special_tokens_to_add(True) == 0:
        tokenizer.post_processor = TemplateProcessing(
            single=["$A"], pair=["$A", end, "$B:1"], special_tokens=[(end, end_id)]
        )
    pad_id = next((token for token in (outer.pad_token_id, end_id) if token is not None), 0)
    return tokenizer, pad_id, outer.model_max_length
