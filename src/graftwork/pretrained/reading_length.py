"""A backbone that reads fewer tokens of a text than it could, named with its length: `minilm@128`."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from graftwork.core.backbone import Backbone, BackboneCard, Encoded
from graftwork.core.writing import TextWriter, reading_part
from graftwork.errors import ConfigError
from graftwork.io.files import digest
from graftwork.pretrained.transformer import TransformerBackbone, as_encoder

SHORTEST = 8  # tokens
LONG = 100  # texts whose median has so many tokens are long
SHARE = 0.6  # the advised length is the highest power of 2 that is at most this share of the median


def at_length(backbone: Backbone, length: int, name: str) -> Backbone:
    """Return the backbone, called `name`, over the same modules, with texts truncated at `length` tokens.

    It is another backbone for runs, caches and modules. Texts of words (tagging, span) are read in shorter windows.
    Raises `ConfigError` if it reads no texts by a tokenizer of its own, and for a length that it does not take.
    """
    opened: Any = backbone
    reading = reading_part(backbone)
    if not isinstance(reading, TransformerBackbone):
        raise ConfigError("this backbone takes no length", where=backbone.card.id, expected="a Transformer of texts")
    if not SHORTEST <= length <= reading.card.max_length:
        raise ConfigError(
            f"{backbone.card.id} does not take this length",
            got=f"{length} tokens",
            expected=f"{SHORTEST} to {reading.card.max_length}",
        )
    cut = replace(reading, card=_card(reading, length, name), tokenizer=_truncating(reading.tokenizer, length))
    if not isinstance(backbone, TextWriter):
        return cut
    whole: Backbone = replace(
        opened, card=_card(opened, length, name), read_by=partial(as_encoder, cut), by_language={}
    )
    return whole


def shorter(backbone: Backbone, name: str, encoded: Encoded) -> str:
    """Return advice to read fewer tokens on the backbone `name`, if the texts are long; else an empty string.

    Empty too for a backbone with a length, whose user has chosen.
    """
    median = float(np.median(encoded.lengths))
    whole = backbone.card.id == name and isinstance(reading_part(backbone), TransformerBackbone)
    if not whole or encoded.words is not None or median < LONG:
        return ""
    length = 2 ** int(math.log2(SHARE * median))
    share = np.minimum(encoded.lengths, length).sum() / encoded.lengths.sum()
    return (
        f"half of the texts have {median:.0f} tokens or more; --backbone {name}@{length} reads "
        f"{100 * share:.0f} % of all tokens, in about that share of the time; linear_probe on both shows what it loses"
    )


def _card(backbone: Backbone, length: int, name: str) -> BackboneCard:
    revision = digest({"revision": backbone.card.revision, "length": length})
    return replace(backbone.card, id=name, revision=revision, max_length=length)


def _truncating(tokenizer: Tokenizer, length: int) -> Tokenizer:
    """Return a copy of a tokenizer that truncates at `length`, from the same side."""
    told = {key: value for key, value in (tokenizer.truncation or {}).items() if key != "max_length"}
    other = copy.deepcopy(tokenizer)
    other.enable_truncation(length, **told)
    return other
