"""Loading of a frozen encoder-decoder, with its language-model head, from a transformers folder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForSeq2SeqLM, PreTrainedConfig, PreTrainedModel

from graftwork.core.backbone import ROLES
from graftwork.core.writing import Instruction
from graftwork.errors import ConfigError, clip
from graftwork.io.files import digest
from graftwork.nn.attention_interface import with_our_attention
from graftwork.nn.packed_linear import use_linear_maps
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.language_tags import instructed_texts
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.load_folder import fresh_of_folder, in_bf16, load_weights, require_whole, tokenizer_of
from graftwork.pretrained.model_folder import (
    GENERATION,
    locate,
    model_type,
    read_as_trained,
    reading_files,
    weight_digests,
)
from graftwork.pretrained.model_json import checked_json, require_modest
from graftwork.pretrained.network_config import configuration
from graftwork.pretrained.seq2seq import Reading, Seq2SeqBackbone, Seq2SeqLayout, SpecialTokens, encoder_alone
from graftwork.pretrained.transformer import as_encoder
from graftwork.pretrained.transformers_errors import transformers_errors


class Seq2SeqFamily:
    """A `BackboneFamily` and `WritingFamily` for the encoder-decoders of one table, `model_type` -> layout."""

    writes: Literal[True] = True

    def __init__(self, layouts: Mapping[str, tuple[Layout, Seq2SeqLayout]]):
        self.layouts = layouts
        self.model_types = tuple(layouts)

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> Seq2SeqBackbone:
        """Load a folder or hub name whose `model_type` is in the table.

        Raises `StorageError` for weights that are missing, pickled or corrupt, `IncompatibleModule` for incomplete
        ones, `ConfigError` where the folder does not say how a text begins and ends.
        """
        folder = locate(source)
        of_encoder, layout = self.layouts[model_type(folder)]
        reading, max_length = read_as_trained(folder, of_encoder)
        identity: dict[str, Any] = {"files": reading_files(folder)}
        if random_seed is None:
            identity["weights"] = weight_digests(folder)
        with transformers_errors(folder):
            config = _configuration(folder)
            tokenizer, pad, tokenizer_length = tokenizer_of(folder, reading)
            whole = copy.deepcopy(tokenizer)
            whole.no_truncation()
            special = special_tokens(folder, config, whole, pad)
            module = whole_network(AutoModelForSeq2SeqLM, folder, config, random_seed, bf16)
        encoder = assemble(
            f"hf:{source}",
            encoder_alone(module, layout.encoder),
            tokenizer,
            replace(reading, towers=1),
            pad_id=pad,
            max_length=min(max_length or tokenizer_length, tokenizer_length),
            random_seed=random_seed,
            identity=identity,
        )
        with_our_attention(module)
        read_by = partial(as_encoder, encoder)
        return writing_backbone(encoder, read_by, module, whole, layout, special, instructed_texts)


def whole_network(
    loader: Any, folder: Path, config: PreTrainedConfig, random_seed: int | None, bf16: bool
) -> PreTrainedModel:
    """Load a folder with `loader`, one of transformers' Auto classes, or with `random_seed` draw fresh weights.

    Raises `IncompatibleModule` where the folder lacks some of its weights.
    """
    if random_seed is not None:
        return fresh_of_folder(folder, config, random_seed, bf16, loader)
    module, missing = load_weights(loader, folder, config, torch.bfloat16 if bf16 else torch.float32)
    require_whole(missing, folder)
    return in_bf16(module) if bf16 else module


def writing_backbone(
    encoder: Reading,
    read_by: Callable[[Any], Reading],
    module: PreTrainedModel,
    tokenizer: Tokenizer,
    layout: Seq2SeqLayout,
    special: SpecialTokens,
    instruct: Callable[[Seq2SeqBackbone, Instruction], Seq2SeqBackbone],
) -> Seq2SeqBackbone:
    """Freeze a network whose encoder is already a backbone, and return it as a backbone with its card.

    `read_by` makes a backbone of the encoder of a copy; `instruct` sets languages and prefix.
    """
    use_linear_maps(module)
    module.eval().requires_grad_(False)
    config = module.config
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "max_target_positions", None)
    card = replace(
        encoder.card,
        revision=digest({"reading": encoder.card.revision, "special": special.identity}),
        blocks=encoder.card.blocks + _decoder_blocks(config),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        biased=any(name.endswith(".bias") for name, _ in module.named_parameters()),
        writes=True,
    )
    room = most - len(special.start) - bool(special.languages) + 1 if most else None
    opened = Seq2SeqBackbone(card, module, read_by, tokenizer, layout, special, room, instruct)
    opened.card = replace(card, lacks=tuple(role for role in ROLES if not opened.sites(role)))
    return opened


def _configuration(folder: Path) -> PreTrainedConfig:
    """Return the configuration; T5's head is scaled if it is tied to the embedding. Raises `ConfigError`."""
    config = modest_configuration(folder)
    content = checked_json(model_file(folder, "config.json"))
    if hasattr(config, "scale_decoder_outputs"):
        tied = content.get("tie_word_embeddings") is not False
        config.scale_decoder_outputs = content.get("scale_decoder_outputs", tied) is True
    if not getattr(config, "share_encoder_decoder_embeddings", True):
        raise ConfigError(
            "the decoder has a vocabulary of its own, which is not read here",
            where=str(folder / "config.json"),
            got="share_encoder_decoder_embeddings false",
            do="use a network whose two halves share their vocabulary",
        )
    return config


def modest_configuration(folder: Path) -> PreTrainedConfig:
    """Return the configuration of a folder. Raises `StorageError` where it states more blocks than any network has."""
    config = configuration(folder)
    for blocks in (_decoder_blocks(config), config.num_hidden_layers):
        require_modest({"num_hidden_layers": blocks}, folder / "config.json")
    return config


def _decoder_blocks(config: Any) -> int:
    blocks: int = config.num_decoder_layers if hasattr(config, "num_decoder_layers") else config.decoder_layers
    return blocks


def stated_of(folder: Path) -> dict[str, Any]:
    """Return the entries of config.json, overridden by those of generation_config.json."""
    stated = checked_json(model_file(folder, "config.json"))
    if (path := model_file(folder, GENERATION)).is_file():
        stated |= {name: value for name, value in checked_json(path).items() if value is not None}
    return stated


def special_tokens(folder: Path, config: PreTrainedConfig, tokenizer: Tokenizer, pad: int) -> SpecialTokens:
    """Return the tokens that begin and end texts, from generation_config.json, else config.json, else the architecture.

    Raises `ConfigError` if a required one is stated nowhere, or is not a token id.
    """
    stated = stated_of(folder)

    def tokens(name: str, needed: bool) -> tuple[int, ...]:
        value = stated.get(name)
        value = getattr(config, name, None) if value is None else value
        found = tuple(value) if isinstance(value, list) else () if value is None else (value,)
        size: int = config.vocab_size
        if (needed and not found) or not all(type(one) is int and 0 <= one < size for one in found):
            raise ConfigError(
                f"the folder does not say {name}, which its decoder begins or ends texts with",
                where=str(folder),
                got=repr(value),
                expected=f"the number of a token, below {size:,}, in {GENERATION} or config.json",
                do="state the one that the network was trained with",
            )
        return found

    banned = _sequences(stated.get("bad_words_ids") or [], config.vocab_size, folder)
    return SpecialTokens(
        start=tokens("decoder_start_token_id", needed=True)[:1],
        first=tokens("forced_bos_token_id", needed=False)[:1]
        or _front(tokenizer, tokens("bos_token_id", needed=False)),
        ends=tokens("eos_token_id", needed=True),
        pad=(tokens("pad_token_id", needed=False) or (pad,))[0],
        banned=(*banned, *((one,) for one in tokens("suppress_tokens", needed=False))),
        banned_first=tokens("begin_suppress_tokens", needed=False),
    )


def _sequences(stated: Any, size: int, folder: Path) -> tuple[tuple[int, ...], ...]:
    """Return `bad_words_ids`, token sequences that are never written. Raises `ConfigError` for anything else."""
    found = [tuple(one) if isinstance(one, list) else () for one in stated] if isinstance(stated, list) else [()]
    if not all(one and all(type(token) is int and 0 <= token < size for token in one) for one in found):
        raise ConfigError(
            "bad_words_ids are no sequences of tokens",
            where=str(folder),
            got=clip(str(stated)),
            expected=f"lists of numbers of tokens, below {size:,}, in {GENERATION} or config.json",
            do="state those that the network is never to write, or remove the line",
        )
    return tuple(found)


def _front(tokenizer: Tokenizer, bos: tuple[int, ...]) -> tuple[int, ...]:
    """Return the token that begins sentences, if the tokenizer's template puts it first, as BART's does."""
    ids = tokenizer.encode("a").ids
    return bos[:1] if ids and ids[0] in bos[:1] else ()
