"""Assembly of a frozen backbone and its card from a network and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer
from torch import nn

from graftwork.core.backbone import ROLES, BackboneCard
from graftwork.errors import ConfigError, IncompatibleModule, clip
from graftwork.io.files import digest
from graftwork.nn.int8_linear import use_int8_maps
from graftwork.nn.packed_linear import use_linear_maps
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.transformer import TransformerBackbone

if TYPE_CHECKING:
    from graftwork.pretrained.transformer_reader import HeadPlace

UNUSED = ("pooler", "masked_spec_embed", "decoder.project_out")  # next-sentence head, audio masking, OPT's word output
UNSTATED_LENGTH = 512  # tokens, if neither network nor tokenizer states a limit (XLNet)
NO_LENGTH = 10**9  # a tokenizer without a limit states at least this


def assemble(
    name: str,
    module: Any,
    tokenizer: Tokenizer,
    layout: Layout,
    *,
    pad_id: int,
    max_length: int,
    random_seed: int | None,
    identity: Mapping[str, Any],
    head: HeadPlace | None = None,
    int8: bool = False,
) -> TransformerBackbone:
    """Freeze a network and return it as a backbone with its card, which describes sizes and settings.

    `identity` is JSON that identifies tokenizer, architecture and weights; `head` is the place of a language-model
    head. With `int8`, linear layers multiply in int8. Raises `ConfigError` or `IncompatibleModule`.
    """
    config = module.config
    _require_rows(tokenizer, config.vocab_size, name)
    drop_unused(module)
    use_int8_maps(module) if int8 else use_linear_maps(module)
    module.eval().requires_grad_(False)
    layout = replace(layout, token_types=layout.token_types and getattr(config, "type_vocab_size", 2) > 1)
    max_length = min(max_length, layout.most_tokens or max_length, _positions(config, layout, name) or NO_LENGTH)
    max_length = max_length if max_length < NO_LENGTH else UNSTATED_LENGTH
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    reading: dict[str, Any] = {"pooling": layout.pooling, "towers": layout.towers, "max_length": max_length}
    if layout.lower_case:
        reading["lower_case"] = True
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
        biased=any(name.endswith(".bias") for name, _ in module.named_parameters()),
        continues=head is not None,
    )
    opened = TransformerBackbone(card, module, tokenizer, pad_id, layout, head)
    opened.card = replace(card, lacks=tuple(role for role in ROLES if not opened.sites(role)))
    return opened


def _require_rows(tokenizer: Tokenizer, rows: int, name: str) -> None:
    """Raise `IncompatibleModule` unless every token id is below `rows`, the rows of the network's embedding."""
    token, number = max(tokenizer.get_vocab().items(), key=lambda item: item[1], default=("", -1))
    if number >= rows:
        raise IncompatibleModule(
            f"the tokenizer of {name!r} knows more tokens than its network",
            got=f"token {clip(token)} with the number {number:,}",
            expected=f"numbers below {rows:,}, one per row of the network's embedding",
            do="use the tokenizer that was saved with the network",
        )


def drop_unused(module: nn.Module) -> None:
    """Remove the modules that `UNUSED` names from a network."""
    for path in UNUSED:
        inside, _, name = path.rpartition(".")
        owner = getattr(module, inside, None) if inside else module
        if getattr(owner, name, None) is not None:
            setattr(owner, name, None)


def _positions(config: Any, layout: Layout, name: str) -> int | None:
    """Return the number of positions of the network, None if it has no limit.

    Raises `ConfigError` if positions begin after the padding id and config.json states none.
    """
    positions: int = getattr(config, "max_position_embeddings", -1)
    if positions <= 0:
        return None
    if not layout.positions_after_padding:
        return positions
    if config.pad_token_id is None:
        raise ConfigError(
            "config.json does not say which token is padding, after whose number positions begin",
            where=name,
            got="pad_token_id null",
            expected="pad_token_id, the number of a token",
            do="use the config.json that belongs to the weights",
        )
    return positions - layout.first_position(int(config.pad_token_id))
