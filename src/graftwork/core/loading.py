"""From a transformers folder, or a bare configuration, to a frozen backbone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from graftwork.core.attention import NAME as ATTENTION
from graftwork.core.backbone import BackboneCard
from graftwork.core.layout import Layout
from graftwork.core.linear_map import use_linear_maps
from graftwork.core.model_folder import locate, model_type, read_as_trained, reading_files, weight_files
from graftwork.core.transformer import TransformerBackbone
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.files import digest, file_digest

UNSTATED_LENGTH = 512  # tokens, where neither network nor tokenizer names a limit (XLNet)


class TransformerFamily:
    """Implements `BackboneFamily` for the architectures of one table, `model_type` -> layout."""

    def __init__(self, layouts: Mapping[str, Layout]):
        self.layouts = layouts
        self.model_types = tuple(layouts)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """Load a folder or hub name whose `model_type` is in the table."""
        folder = locate(source)
        layout = self.layouts[model_type(folder)]
        return open_folder(folder, f"hf:{source}", layout, random_seed=random_seed, bf16=bf16)


def open_folder(folder: Path, name: str, layout: Layout, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
    """The network of a transformers folder, or with `random_seed` its architecture with fresh weights.

    Raises `StorageError` for weights that are missing, pickled or torn, `IncompatibleModule` for incomplete ones.
    """
    layout, max_length = read_as_trained(folder, layout)
    identity = {"files": reading_files(folder)}
    if random_seed is None:
        identity["weights"] = {path.name: file_digest(path) for path in weight_files(folder)}
    with transformers_errors(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer, pad_id, tokenizer_length = _tokenizer(folder, layout)
        module = pretrained(folder, config, bf16) if random_seed is None else fresh(config, random_seed, bf16)
    return assemble(
        name,
        module,
        tokenizer,
        layout,
        pad_id=pad_id,
        max_length=min(max_length or tokenizer_length, tokenizer_length),
        random_seed=random_seed,
        identity=identity,
    )


def assemble(
    name: str,
    module: PreTrainedModel,
    tokenizer: Tokenizer,
    layout: Layout,
    *,
    pad_id: int,
    max_length: int,
    random_seed: int | None,
    identity: Mapping[str, Any],
) -> TransformerBackbone:
    """Freeze a network and write its card; `identity` is JSON that decides tokenizer, architecture and weights."""
    config = module.config
    if tokenizer.get_vocab_size() > config.vocab_size:
        raise IncompatibleModule(
            f"the tokenizer of {name!r} knows more tokens than its network",
            got=f"{tokenizer.get_vocab_size():,} tokens",
            expected=f"at most {config.vocab_size:,}",
        )
    if getattr(module, "pooler", None) is not None:
        module.add_module("pooler", None)  # made for next-sentence prediction: nothing here reads it
    use_linear_maps(module)
    module.eval().requires_grad_(False)
    if module.is_backend_compatible():
        module.set_attn_implementation(ATTENTION)
    layout = replace(layout, token_types=layout.token_types and getattr(config, "type_vocab_size", 2) > 1)
    max_length = min(max_length, _positions(config, layout))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    reading = {"pooling": layout.pooling, "towers": layout.towers, "max_length": max_length}
    card = BackboneCard(
        id=name if random_seed is None else f"random:{name}",
        revision=digest({**identity, "random_seed": random_seed, "reading": reading}),
        family=config.model_type,
        modality="text",
        width=config.hidden_size,
        blocks=config.num_hidden_layers * getattr(config, "inner_group_num", 1),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        pooling=layout.pooling,
        max_length=max_length,
        towers=layout.towers,
        shared_blocks=layout.shared_blocks,
    )
    return TransformerBackbone(card, module, tokenizer, pad_id, layout)


def fresh(config: PreTrainedConfig, seed: int, bf16: bool) -> PreTrainedModel:
    """The architecture with weights drawn from `seed`, the same ones in either precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: PreTrainedModel = AutoModel.from_config(config, dtype=torch.float32, attn_implementation="eager")
        if not bf16:
            return module
        half: PreTrainedModel = AutoModel.from_config(config, dtype=torch.bfloat16, attn_implementation="eager")
    half.load_state_dict(module.state_dict())
    return _in_bf16(half)


def require_whole(missing: Sequence[str], folder: Path) -> None:
    """Raise `IncompatibleModule` where tensors of a network are missing from its folder."""
    if missing:
        raise IncompatibleModule(
            "the weights are not whole",
            where=str(folder),
            got=f"{len(missing)} tensors are missing: {', '.join(missing[:3])}",
            do="use a folder that holds the whole network",
        )


def _in_bf16(module: PreTrainedModel) -> PreTrainedModel:
    """Cast parameters that were built in fp32 regardless (XLNet's). Not buffers: rotary frequencies stay in fp32."""
    for parameter in module.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    return module


def pretrained(folder: Path, config: PreTrainedConfig, bf16: bool) -> PreTrainedModel:
    """The network of a folder. Raises `IncompatibleModule` where tensors are missing."""
    module: PreTrainedModel
    with torch.random.fork_rng(devices=[]):  # weights that the file lacks are drawn at random
        module, report = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=torch.bfloat16 if bf16 else torch.float32,
            attn_implementation="eager",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    missing = sorted(key for key in report["missing_keys"] if not key.startswith(("pooler.", "masked_spec_embed")))
    require_whole(missing, folder)
    return _in_bf16(module) if bf16 else module


def _tokenizer(folder: Path, layout: Layout) -> tuple[Tokenizer, int, int]:
    """The tokenizer, the token to pad with, and the length it was made for."""
    outer = AutoTokenizer.from_pretrained(folder, use_fast=True, local_files_only=True, trust_remote_code=False)
    if not outer.is_fast:
        raise ConfigError("the tokenizer has no tokenizer.json, nor files that one can be made of", where=str(folder))
    tokenizer: Tokenizer = outer.backend_tokenizer
    end, end_id = outer.eos_token, outer.eos_token_id
    if layout.separate_by_end and end is not None and tokenizer.num_special_tokens_to_add(True) == 0:
        tokenizer.post_processor = TemplateProcessing(
            single=["$A"], pair=["$A", end, "$B:1"], special_tokens=[(end, end_id)]
        )
    pad_id = next((token for token in (outer.pad_token_id, end_id) if token is not None), 0)
    return tokenizer, pad_id, outer.model_max_length


def _positions(config: PreTrainedConfig, layout: Layout) -> int:
    """Tokens that the network has positions for."""
    positions: int = getattr(config, "max_position_embeddings", -1)
    if positions <= 0:
        return UNSTATED_LENGTH
    return positions - (config.pad_token_id + 1 if layout.positions_after_padding else 0)


@contextlib.contextmanager
def transformers_errors(folder: Path) -> Iterator[None]:
    """Turns what transformers raises over a bad folder into a `StorageError`, and keeps it quiet meanwhile."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise StorageError(f"transformers can't open this folder: {reason[0]}", where=str(folder)) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
