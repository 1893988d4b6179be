"""Tokens that the texts do not use are dropped, with their rows of the embedding (Abdaoui et al. 2020,
arXiv:2010.05609)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from tokenizers import Tokenizer
from torch import nn

from graftwork.core.example import Example
from graftwork.core.method import Entries
from graftwork.core.progress import Progress, silent
from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.smaller_vocabulary import fewer_tokens
from graftwork.pretrained.tokenising import TextReader
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.write_folder import as_transformer, config_of
from graftwork.registry import compressions
from graftwork.ship.compression import CompressionData
from graftwork.ship.fewer_blocks import tell
from graftwork.ship.folding import own_network, unchangeable
from graftwork.ship.standalone import save_standalone

UNCUT = 1 << 20  # tokens: longer than any text


@compressions.register("vocabulary")
@dataclass(frozen=True)
class FewerTokens:
    """Keeps the tokens of the train texts and of the texts given, and those that other words are cut into."""

    common: int = 0  # further tokens that are kept, those of the lowest ids: in most vocabularies the most frequent

    EXACT: ClassVar[bool] = False  # exact on the given texts only: words of others may be split into smaller tokens
    STORES: ClassVar[bool] = False
    ORDER: ClassVar[int] = 70
    LADDER: ClassVar[Entries] = ({}, {"common": 8000})  # the strongest first

    def unfit(self, module: TaskModule) -> str:
        """Return why tokens of `module` can't be dropped, or an empty string."""
        if self.common < 0:
            return f"common is a number of tokens, 0 or more, not {self.common}"
        reason = unchangeable(module)
        return reason or _other_tables(as_transformer(module.backbone))

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Collect the tokens of all texts, untruncated, and write the smaller network. Raises `ConfigError`."""
        network, head = own_network(module)
        texts = [*data.train.examples, *data.unlabelled]
        used = _tokens(network, texts) | set(range(min(self.common, network.tokenizer.get_vocab_size())))
        used |= set(range(network.pad_id + 1))  # positions may be counted from the padding token's id
        try:
            tokenizer, kept = fewer_tokens(network.tokenizer, used)
        except ValueError as error:
            raise ConfigError(
                "tokens of this tokenizer can't be dropped",
                where=str(module.folder),
                got=f"a model {error}",
                expected="WordPiece, BPE, Unigram or WordLevel",
            ) from None
        before = network.tokenizer.get_vocab_size()
        smaller = _with_tokens(network, tokenizer, kept)
        made = save_standalone(module, folder, smaller, head=head)
        facts = {"tokens": before, "tokens_kept": len(kept)}
        for name, backbone in (("before", module.backbone), ("after", made.backbone)):
            assert backbone is not None
            encoded = backbone.encode(data.validation.examples)
            facts |= {f"unknown_{name}": encoded.unknown, f"read_{name}": sum(map(len, encoded.ids))}
        return facts | {"of": "the validation texts, in tokens"}


def _tokens(network: TransformerBackbone, examples: Sequence[Example]) -> set[int]:
    """Return the ids of all tokens of the examples, those beyond the length limit included."""
    tokenizer = copy.deepcopy(network.tokenizer)
    tokenizer.no_truncation()
    card = network.card
    reader = TextReader(tokenizer, network.pad_id, UNCUT, card.towers, network.layout.token_types)
    return {number for ids in reader.encode(examples).ids for number in ids} if examples else set()


def _other_tables(network: TransformerBackbone) -> str:
    """Return a reason if another tensor has a row for each token, or an empty string."""
    (path, table), *_ = network.sites("embedding").items()
    if not isinstance(table, nn.Embedding):
        return "its tokens are embedded by no table"
    rows, known = table.num_embeddings, (f"{path}.", *(f"{block}." for block in network.sites("block")))
    named = network.module.named_parameters()
    odd = [name for name, one in named if one.shape[:1] == (rows,) and not name.startswith(known)]
    return f"{odd[0]} has a row for each token too" if odd else ""


def _with_tokens(network: TransformerBackbone, tokenizer: Tokenizer, kept: list[int]) -> TransformerBackbone:
    """Return the network, changed in place, with only the rows of the `kept` old ids."""
    table: Any = next(iter(network.sites("embedding").values()))
    new = {old: place for place, old in enumerate(kept)}
    table.weight = nn.Parameter(table.weight.detach()[torch.tensor(kept)].clone(), requires_grad=False)
    table.num_embeddings = len(kept)
    table.padding_idx = None if table.padding_idx is None else new[table.padding_idx]
    told = config_of(network).items()
    numbers = {name: new[one] for name, one in told if name.endswith("_token_id") and type(one) is int and one in new}
    tell(network.module, {"vocab_size": len(kept)} | numbers)
    return dataclasses.replace(network, tokenizer=tokenizer, pad_id=new[network.pad_id])
