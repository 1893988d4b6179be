"""A backbone from a transformers encoder-decoder: reads with the encoder, writes with the decoder and its head."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_TEXT_ENCODING_MAPPING,
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    GenerationMixin,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutput

from graftwork.core.backbone import BackboneCard, Encoded, Features, Inputs, default_rates
from graftwork.core.example import Example
from graftwork.core.writing import NOTHING, Instruction, TellTokens, TextSearch, WrittenTokens
from graftwork.nn.token_chances import token_chances
from graftwork.pretrained.chained_network import ChainedBackbone
from graftwork.pretrained.layout import Layout
from graftwork.pretrained.transformer import TransformerBackbone

TEXTS_AT_ONCE = 4096  # per tokenizer call: an encoding takes ten times the memory of its tokens
POSITIONS_AT_ONCE = 1024  # scored at once without a gradient: each has a logit per token of the vocabulary
# fields of `SpecialTokens` that every revision includes
ALWAYS_IN_REVISION = ("start", "first", "ends", "pad", "banned")
Reading = TransformerBackbone | ChainedBackbone  # an encoder as a backbone by itself, for texts or sounds


@dataclass(frozen=True)
class Seq2SeqLayout:
    """One row of a family's table: the paths of encoder and decoder, and of the parts of each."""

    encoder: str  # path of the encoder in the network
    decoder: str
    embedding: str  # path of the token embedding
    writing: Layout  # of the decoder's self-attention and feed-forward layers
    crossing: Layout  # of the decoder's cross-attention, which has the roles of attention too
    learns_like: Mapping[str, str] = field(default_factory=dict)  # as `PlacesParts.learns_like`


@dataclass(frozen=True)
class SpecialTokens:
    """The tokens with which a decoder begins and ends texts."""

    start: tuple[int, ...]  # enter the decoder before the first token of a text, one or more
    first: tuple[int, ...]  # none or one, the first of every text: a start of sentence, or a language tag
    ends: tuple[int, ...]  # each ends a text; the first of them ends the targets of training
    pad: int
    banned: tuple[tuple[int, ...], ...] = ()  # sequences of tokens that are never written
    banned_first: tuple[int, ...] = ()  # tokens that no text begins with
    languages: tuple[int, ...] = ()  # to detect: the likeliest enters after the first of `start`, for each sequence
    lead: str = ""  # put before every text when it is tokenised, removed when decoded: a space

    @property
    def identity(self) -> str:
        """The text that identifies them in a backbone's revision; new fields with default values do not change it."""
        told: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        told["start"] = self.start[0] if len(self.start) == 1 else self.start
        defaults = {one.name: one.default for one in fields(self) if one.default is not MISSING}
        kept = [name for name in told if name in ALWAYS_IN_REVISION or told[name] != defaults[name]]
        return f"SpecialTokens({', '.join(f'{name}={told[name]!r}' for name in kept)})"


class KeysOfInput(DynamicCache):
    """A cache of cross-attention keys and values, which are the same for all beams of a text."""

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Do nothing: copying them at every step would take a sixth of the time of a search with four beams."""


@dataclass
class TokenStreamer:
    """A streamer for transformers' `generate`: it calls `tell` with each of S texts that has a new token."""

    tell: TellTokens
    ends: tuple[int, ...]
    written: dict[int, list[int]] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)

    def put(self, tokens: Tensor) -> None:
        """Receive the start tokens (S, K), which are no part of the texts, and then one token (S,) per step."""
        if tokens.dim() > 1:
            return
        for row, token in enumerate(tokens.tolist()):
            if token in self.ends:
                self.over.add(row)
            elif row not in self.over:
                self.written.setdefault(row, []).append(token)
                self.tell(row, self.written[row])

    def end(self) -> None:
        """Do nothing: every token has been passed on."""


@dataclass
class Seq2SeqBackbone:
    """Implements `Backbone`, `PlacesParts`, `OwnRates` and `TextWriter`.

    It searches with transformers' own `generate`.
    """

    card: BackboneCard
    module: PreTrainedModel  # with its language-model head
    read_by: Callable[[Any], Reading]  # encoder module -> the encoder as a backbone
    tokenizer: Tokenizer  # without truncation
    layout: Seq2SeqLayout
    special: SpecialTokens
    most: int | None  # maximum number of tokens of a text; None: no limit
    instruct: Callable[[Seq2SeqBackbone, Instruction], Seq2SeqBackbone]  # with no instruction -> with this one
    untold: Seq2SeqBackbone | None = None  # the backbone before an instruction was applied; None: this one has none
    by_language: dict[str, tuple[Tokenizer, Tokenizer]] = field(default_factory=dict)
    # source tag -> tokenizers with and without truncation; shared by all instructed backbones

    def __post_init__(self) -> None:
        self.learns_like = {path: like for path, like in self.layout.learns_like.items() if _has(self.module, path)}

    @property
    def rows_apart(self) -> bool:
        """False: the decoder's states have another length, and a search has several rows for a sequence."""
        return False

    @property
    def default_rates(self) -> Mapping[str, float]:
        """The default learning rates of methods that its encoder has too, by name."""
        return default_rates(self.reading)

    def instructed(self, given: Instruction) -> Seq2SeqBackbone:
        """Return the backbone with these languages and this prefix, over the same modules. Raises `ConfigError`."""
        return self.instruct(self.untold or self, given)

    @cached_property
    def reading(self) -> Reading:
        """The encoder as a backbone; its parts have the same names as when it is opened without the decoder."""
        return self.read_by(encoder_alone(self.module, self.layout.encoder))

    @cached_property
    def _views(self) -> list[tuple[str, Reading]]:
        """Pairs (name prefix, backbone that finds parts by role): encoder, decoder, cross-attention."""
        layout = self.layout
        decoder, encoder = self.module.get_submodule(layout.decoder), self.module.get_submodule(layout.encoder)
        parts = (
            TransformerBackbone(self.card, decoder, self.tokenizer, self.special.pad, one)
            for one in (layout.writing, layout.crossing)
        )
        before = f"{layout.encoder}." if encoder_alone(self.module, layout.encoder) is encoder else ""
        return [(before, self.reading), *((f"{layout.decoder}.", one) for one in parts)]

    @property
    def below_top(self) -> Mapping[str, int]:
        """Path of a block -> the number of blocks above it in its stack: rates decay from the top of each stack."""
        stacks = [[f"{path}{name}" for name in view.sites("block")] for path, view in self._views[:2]]
        return {path: len(stack) - 1 - place for stack in stacks for place, path in enumerate(stack)}

    def encode(self, examples: Sequence[Example]) -> Encoded:
        """Tokenise the encoder's inputs."""
        return self.reading.encode(examples)

    def collate(self, encoded: Encoded, sequences: Sequence[int]) -> Inputs:
        """Collate a batch of the encoder's inputs."""
        return self.reading.collate(encoded, sequences)

    def states(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Return the encoder's states, (S, T, D) each: the input of every block, then the output."""
        return self.reading.states(inputs)

    def features(self, inputs: Inputs, start: int = 0, entering: Tensor | None = None) -> Features:
        """Run the encoder from block `start` on the states `entering` (S, T, D)."""
        return self.reading.features(inputs, start, entering)

    def pool(self, sequence: Tensor, mask: Tensor, words: Tensor | None = None) -> Tensor:
        """Pool states (S, T, D) of the encoder."""
        return self.reading.pool(sequence, mask, words)

    def sites(self, role: str) -> dict[str, nn.Module]:
        """Map qualified names to submodules: the encoder's, then the decoder's with its cross-attention."""
        if role == "embedding":
            return {self.layout.embedding: self.module.get_submodule(self.layout.embedding)}
        found = {f"{path}{name}": site for path, view in self._views for name, site in view.sites(role).items()}
        order = {name: place for place, (name, _) in enumerate(self.module.named_modules())}
        return dict(sorted(found.items(), key=lambda item: order[item[0]]))

    def copy(self) -> Seq2SeqBackbone:
        """Return a backbone with its own weights; the immutable tokenizers are shared."""
        return replace(self, module=copy.deepcopy(self.module))

    def twin(self) -> Seq2SeqBackbone:
        """Return new modules that share the weights: hooks on them do not affect other users of the weights."""
        shared = {id(tensor): tensor for tensor in (*self.module.parameters(), *self.module.buffers())}
        return replace(self, module=copy.deepcopy(self.module, shared))

    def encode_texts(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], int]:
        """Tokenise target texts with their end tokens; also return how many are cut and so lack an end."""
        limit = min(longest, self.most or longest)
        found: list[list[int]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = [self.special.lead + text for text in texts[start : start + TEXTS_AT_ONCE]]
            for encoding in self.tokenizer.encode_batch_fast(part, add_special_tokens=False):
                found.append([*self.special.first, *encoding.ids, self.special.ends[0]])
        return [tokens[:limit] for tokens in found], sum(len(tokens) > limit for tokens in found)

    def log_probabilities(self, states: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
        """Return (S, U) fp32: the log-probability of each of `tokens` (S, U) after those before it; 0 at `NOTHING`."""
        if not torch.is_grad_enabled():  # a few sequences at a time, to hold fewer logits
            size = max(1, POSITIONS_AT_ONCE // max(1, tokens.shape[1]))
            parts = zip(states.split(size), mask.split(size), tokens.split(size), strict=True)
            return torch.cat([self._chances(*part) for part in parts])
        return self._chances(states, mask, tokens)

    def _chances(self, states: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
        begun = self._entering_tokens(states, mask)  # (S, K)
        before = torch.cat([begun, tokens[:, :-1]], dim=1)  # (S, K + U - 1)
        logits = self._logits(states, mask, before.masked_fill(before == NOTHING, self.special.pad))
        logits = logits[:, begun.shape[1] - 1 :]  # (S, U, V)
        return token_chances(logits.flatten(0, 1), tokens.flatten(), NOTHING).view(tokens.shape)

    def _entering_tokens(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the tokens (S, K) that enter the decoder before each text."""
        special = self.special
        begun = torch.tensor([special.start], device=states.device).expand(len(states), -1)
        if not special.languages:
            return begun
        with torch.no_grad():
            likely = self._logits(states, mask, begun[:, :1])[:, -1, list(special.languages)].argmax(dim=1)  # (S,)
        spoken = torch.tensor(special.languages, device=states.device)[likely]
        return torch.cat([begun[:, :1], spoken[:, None], begun[:, 1:]], dim=1)

    def _logits(self, states: Tensor, mask: Tensor, entering: Tensor) -> Tensor:
        """Return the logits (S, U, V) after each of the decoder's input tokens `entering` (S, U)."""
        logits: Tensor = self.module(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=entering,
            decoder_attention_mask=torch.ones_like(entering),  # it is causal: padding after a text reaches no token
            use_cache=False,
        ).logits
        return logits

    def write(
        self, states: Tensor, mask: Tensor, search: TextSearch, tell: TellTokens | None = None
    ) -> list[WrittenTokens]:
        """Write a text for each sequence, from states (S, T, D) of the encoder with mask (S, T)."""
        special, begun = self.special, self._entering_tokens(states, mask)  # (S, K)
        generate: Any = GenerationMixin.generate  # not Whisper's own, which reads the sound again
        found = generate(
            self.module,
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=begun,
            streamer=None if tell is None or search.beams > 1 else TokenStreamer(tell, special.ends),
            past_key_values=EncoderDecoderCache(DynamicCache(), KeysOfInput()),  # T5's default counts encoder blocks
            generation_config=GenerationConfig(
                do_sample=False,
                num_beams=search.beams,
                num_return_sequences=search.beams,
                length_penalty=search.length_penalty if search.beams > 1 else 1.0,
                no_repeat_ngram_size=search.no_repeat,
                max_new_tokens=min(search.longest, self.most or search.longest),
                decoder_start_token_id=special.start[0],
                forced_bos_token_id=special.first[0] if special.first else None,
                eos_token_id=list(special.ends),
                pad_token_id=special.pad,
                bad_words_ids=[list(banned) for banned in special.banned] or None,
                begin_suppress_tokens=list(special.banned_first) or None,
            ),
        )  # (S x beams, K + U), the beams of a sequence best first
        rows = found[:, begun.shape[1] :].tolist()
        return [
            replace(self._up_to_end(row), others=tuple(map(self._up_to_end, rows[place + 1 : place + search.beams])))
            for place, row in list(enumerate(rows))[:: search.beams]
        ]

    def _up_to_end(self, row: list[int]) -> WrittenTokens:
        """Return the tokens up to and including the first that ends a text."""
        before = list(takewhile(lambda token: token not in self.special.ends, row))
        return WrittenTokens(row[: len(before) + 1], ended=len(before) < len(row))

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True).removeprefix(self.special.lead)


def encoder_alone(network: PreTrainedModel, path: str) -> nn.Module:
    """Return the encoder at `path`, the same modules, in transformers' class for the encoder alone, if any."""
    encoder = network.get_submodule(path)
    alone: Any = MODEL_FOR_TEXT_ENCODING_MAPPING.get(type(network.config), None)
    if alone is None:
        return encoder
    config = copy.deepcopy(network.config)
    config.num_hidden_layers = 0
    with torch.device("meta"):
        outer: Any = alone(config)  # T5's has one more level; what it was built with is replaced
    outer.shared, outer.encoder, outer.config = None, encoder, network.config
    return cast(nn.Module, outer.eval())


def _has(network: nn.Module, path: str) -> bool:
    return any(name == path for name, _ in network.named_modules())
