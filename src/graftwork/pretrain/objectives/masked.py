"""Masked language modelling: BERT (Devlin et al. 2018, arXiv:1810.04805) or, by options, RoBERTa (arXiv:1907.11692)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining

from graftwork.errors import ConfigError
from graftwork.nn.attention_interface import with_our_attention
from graftwork.pretrain import architecture
from graftwork.pretrain.architecture import POSITIONS, bert_size, check_word
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import IGNORED, Batch, ContinuedNetwork, Loss, PretrainingRecipe, Rows
from graftwork.pretrain.packing import PackedRows
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.registry import objectives

MASKINGS, UNITS, SECONDS = ("dynamic", "static"), ("tokens", "words"), ("none", "next_sentence", "sentence_order")
HEADS = {  # architecture -> head from the states of masked positions to logits
    "bert": "cls.predictions", "roberta": "lm_head", "xlm-roberta": "lm_head", "mpnet": "lm_head",
    "albert": "predictions",
}  # fmt: skip
TABLE = "embeddings.position_embeddings"
OTHERS = ("distilbert", "deberta-v2", "electra", "modernbert")  # architectures whose head runs on every position
HEAD_TENSORS = (
    "cls.", "lm_head.", "predictions.", "vocab_", "generator_", "head.", "decoder.", "bert.pooler.", "pooler.",
)  # fmt: skip


@objectives.register("masked")
@dataclass(frozen=True)
class Masked:
    """Masked language modelling, optionally with a second loss."""

    share: float = 0.15  # of a row's tokens, predicted
    masked: float = 0.8  # of these, replaced by [MASK]
    random: float = 0.1  # of these, replaced by a random token; the rest are unchanged
    masking: str = "dynamic"  # drawn at every step, or "static": equal rows have equal masks
    unit: str = "tokens"  # or "words": all pieces of a word, or none
    second: str = "none"  # a second loss: "next_sentence" (BERT) or "sentence_order" (ALBERT)
    positions: str = "learned"  # or "sinusoidal"

    VERSION: ClassVar[int] = 2
    tokenizer: ClassVar[str] = "wordpiece"
    scores_of: ClassVar[str] = "masked tokens"
    recipe: ClassVar[PretrainingRecipe] = PretrainingRecipe(learning_rate=1e-3, batch=64, length=128)
    continuing: ClassVar[PretrainingRecipe] = replace(recipe, learning_rate=1e-4)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": bert_size(2, 128),
        "mini": bert_size(4, 256),
        "small": bert_size(4, 512),
        "medium": bert_size(8, 512),
        "base": bert_size(12, 768, dropout=0.1),
    }

    def __post_init__(self) -> None:
        check_word("masking", self.masking, MASKINGS)
        check_word("unit of masking", self.unit, UNITS)
        check_word("second loss", self.second, SECONDS)
        check_word("sort of positions", self.positions, POSITIONS)
        if not (0 < self.share < 1 and self.masked >= 0 and self.random >= 0 and self.masked + self.random <= 1):
            raise ConfigError(
                "these shares of tokens are not possible",
                got=f"share {self.share}, masked {self.masked}, random {self.random}",
                expected="0 < share < 1, and masked + random at most 1",
            )
        if self.masking == "static" and self.second != "none":
            raise ConfigError(
                "masking=static does not go with second=: pairs are cut anew at every step",
                got=f"masking=static:second={self.second}",
                do="leave one of them out",
            )

    @property
    def fewest(self) -> int:
        """The fewest rows of a pass: a false pair takes its second part from another row."""
        return 2 if self.second == "next_sentence" else 1

    def network(self, size: Mapping[str, Any], vocabulary: Vocabulary, length: int, seed: int) -> nn.Module:
        """Build a transformers encoder with its masked-LM head."""
        config = architecture.fresh_config(size, "bert", (*HEADS, *OTHERS), vocabulary, length)
        network = architecture.draw_network(self._auto(config.model_type), config, seed)
        if self.positions == "sinusoidal":
            architecture.with_sinusoids(network, TABLE)
        return with_our_attention(network)

    def opened(self, folder: Path, seed: int) -> ContinuedNetwork:
        """Load a transformers encoder with its heads."""
        network, missing = architecture.load_network(AutoModelForMaskedLM, folder, (*HEADS, *OTHERS), seed)
        if self.second != "none":
            network, missing = architecture.load_network(self._auto(network.config.model_type), folder, ("bert",), seed)
        architecture.require_heads_only(missing, HEAD_TENSORS, folder)
        if self.positions == "sinusoidal":
            architecture.with_sinusoids(network, TABLE, folder)
        second = [name for name in missing if "seq_relationship" in name or "pooler" in name]
        added = ["a masked-LM head"] if len(missing) > len(second) else []
        added += [f"a head for {self.second.replace('_', ' ')}"] if second else []
        return ContinuedNetwork(
            with_our_attention(network), Vocabulary.open(folder), _longest(network.config), added, missing
        )

    def _auto(self, model_type: str) -> Any:
        if self.second != "none" and model_type != "bert":
            raise ConfigError(
                f"second={self.second} needs an architecture with a head for it",
                got=model_type,
                do="take a BERT or leave second= out",
            )
        return AutoModelForMaskedLM if self.second == "none" else AutoModelForPreTraining

    def packed(self, tokens: SplitTokens, length: int, vocabulary: Vocabulary) -> Rows:
        """Cut full rows across documents; with a second loss, 3 tokens shorter, for [CLS] A [SEP] B [SEP]."""
        if self.second != "none":
            return PackedRows(tokens, length - 3)
        return PackedRows(tokens, length, start=vocabulary.start, end=vocabulary.end)

    def prepare(self, rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator) -> Batch:
        """Turn ids (B, T) into "ids", "labels" (B, T), and with a second loss "types" (B, T) and "second" (B,)."""
        if vocabulary.mask is None:
            raise ConfigError("the tokenizer has no mask token", do="choose another --tokenizer")
        tensors: dict[str, Tensor] = {}
        if self.second != "none":
            rows, tensors["types"], tensors["second"] = pairs(rows, vocabulary, draw, self.second)
        order, kind, other = (self._numbers(rows, purpose, draw) for purpose in ("order", "kind", "other"))
        chosen = self._chosen(rows, vocabulary, order)
        labels = torch.where(chosen, rows, IGNORED)
        ordinary = torch.ones(vocabulary.size, dtype=torch.bool)
        ordinary[list(vocabulary.special_ids)] = False
        texts = ordinary.nonzero()[:, 0]  # (N,) the ids of ordinary tokens
        others = texts[(other * len(texts)).long().clamp(max=len(texts) - 1)]
        shown = torch.where(chosen & (kind < self.masked + self.random), others, rows)
        shown = torch.where(chosen & (kind < self.masked), vocabulary.mask, shown)
        tensors |= {"ids": shown, "labels": labels}
        return Batch(tensors, predicted=int(chosen.sum()), rows=len(rows))

    def _numbers(self, rows: Tensor, purpose: str, draw: torch.Generator) -> Tensor:
        """Return random numbers (B, T) in [0, 1)."""
        return repeatable(rows, purpose) if self.masking == "static" else torch.rand(rows.shape, generator=draw)

    def _chosen(self, rows: Tensor, vocabulary: Vocabulary, order: Tensor) -> Tensor:
        """Return (B, T) bool, True for `share` of every row's tokens, rounded to whole tokens or words.

        The tokens with the smallest `order` (B, T) are chosen, special tokens never.
        """
        text = ~torch.isin(rows, torch.tensor(vocabulary.special_ids))
        wanted = (self.share * text.sum(dim=1)).round().clamp(min=1)[:, None]  # (B, 1)
        if self.unit == "tokens":
            rank = order.masked_fill(~text, 2.0).argsort(dim=1).argsort(dim=1)
            return text & (rank < wanted)
        begins = ~torch.from_numpy(vocabulary.inside)[rows] | ~text  # a special token is a word by itself
        begins[:, 1:] |= ~text[:, :-1]  # so the piece after it begins a word, even if a row begins inside a word
        word = begins.cumsum(dim=1) - begins[:, :1].long()  # (B, T) index of each token's word
        order = order.gather(1, begins.long().cumsum(1).sub(1).clamp(min=0)).masked_fill(~text, 2.0)
        rank = order.argsort(dim=1, stable=True).argsort(dim=1)  # the pieces of a word have adjacent ranks
        last = torch.zeros_like(rank).scatter_reduce(1, word, rank, "amax").gather(1, word)
        first = torch.full_like(rank, rows.shape[1]).scatter_reduce(1, word, rank, "amin").gather(1, word)
        return text & ((last < wanted) | (first == 0))

    def loss(self, network: nn.Module, batch: Batch) -> Loss:
        """Compute the loss over the masked tokens, with the head on these alone; a second loss is added unweighted."""
        own: Any = network
        ids, labels, types = batch.tensors["ids"], batch.tensors["labels"], batch.tensors.get("types")
        named = {} if types is None else {"token_type_ids": types}
        chosen = labels != IGNORED
        head = HEADS.get(own.config.model_type)
        output = own.base_model(input_ids=ids, **named) if head else own(input_ids=ids)
        logits = own.get_submodule(head)(output[0][chosen]) if head else output.logits[chosen]  # (N, V)
        nats = cross_entropy(logits.float(), labels[chosen], reduction="sum")
        total, terms = nats / batch.predicted, {}
        if "second" in batch.tensors:
            answer = own.cls.seq_relationship(output.pooler_output)  # (B, 2)
            second = cross_entropy(answer.float(), batch.tensors["second"], reduction="sum") / batch.rows
            total, terms = total + second, {self.second: second.detach()}
        return Loss(total, nats.detach(), int(chosen.sum()), terms)

    def save(self, network: nn.Module, vocabulary: Vocabulary, folder: Path) -> None:
        """Write the backbone, pooled by the mean; with a second loss, which trains the first token, at that token."""
        own: Any = network
        architecture.save(own, vocabulary, folder, "mean" if self.second == "none" else "first", _longest(own.config))


def _longest(config: Any) -> int:
    first = architecture.layout_of(config.model_type).first_position(config.pad_token_id)
    return int(config.max_position_embeddings) - first


def pairs(rows: Tensor, vocabulary: Vocabulary, draw: torch.Generator, sort: str) -> tuple[Tensor, Tensor, Tensor]:
    """Ids (B, T - 3) -> [CLS] A [SEP] B [SEP] (B, T), segments (B, T), and labels (B,), 1 if B does not follow A.

    A row is cut at a random place in its middle half. In half of the rows, on average, the second part comes from
    another row ("next_sentence") or both parts are swapped ("sentence_order"). Raises `ConfigError` for "next_sentence"
    with a batch of one row.
    """
    count, content = rows.shape
    if sort == "next_sentence" and count == 1:
        raise ConfigError("next_sentence takes its false pairs from the same batch: --batch must be 2 or more")
    false = torch.rand(count, generator=draw) < 0.5
    cuts = torch.randint(content // 4, content - content // 4, (count,), generator=draw)
    others = (torch.arange(count) + torch.randint(1, max(2, count), (count,), generator=draw)) % count
    start, end = rows.new_tensor([vocabulary.start]), rows.new_tensor([vocabulary.end])
    made, types = [], torch.zeros(count, content + 3, dtype=torch.int64)
    for place, (row, cut) in enumerate(zip(rows, cuts.tolist(), strict=True)):
        one, two = row[:cut], row[cut:]
        if false[place]:
            one, two = (one, rows[others[place], cut:]) if sort == "next_sentence" else (two, one)
        made.append(torch.cat([start, one, end, two, end]))
        types[place, len(one) + 2 :] = 1
    return torch.stack(made), types, false.long()


def repeatable(rows: Tensor, purpose: str) -> Tensor:
    """Return pseudo-random numbers (B, T) in [0, 1) that depend on each row's ids and the purpose only."""
    found = []
    for row in rows:
        key = hashlib.sha256(purpose.encode() + row.numpy().tobytes()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(key[:8], "big") >> 1)
        found.append(torch.rand(len(row), generator=generator))
    return torch.stack(found)
