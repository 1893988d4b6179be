"""Opening of the language model that prompting uses: a decoder with its head, or an encoder-decoder."""

from __future__ import annotations

from typing import Any, cast

from graftwork.core.backbone import Backbone, BackboneCard, ContinuesTexts
from graftwork.core.method import Setting
from graftwork.core.writing import TextWriter, share_encoder_weights
from graftwork.pretrained.open_backbone import can_write, opened_like
from graftwork.train.prompt_tokens import PromptedModel
from graftwork.train.prompted_decoder import PromptedDecoder
from graftwork.train.prompted_seq2seq import PromptedSeq2Seq

WITH_DECODER = "with the decoder"  # name of shared work: opening a network with its decoder


def no_model(card: BackboneCard) -> str:
    """Return the reason that a backbone cannot be prompted; "" if it can."""
    if card.continues or card.writes or can_write(card.id):
        return ""
    return f"{card.id} is no language model with its head: neither left to right, nor an encoder with a decoder"


def answers_prompts(backbone: Backbone) -> bool:
    """Return whether this open backbone can be prompted; if not, its network is opened again with its decoder."""
    return backbone.card.continues or isinstance(backbone, TextWriter)


def opened_to_write(setting: Setting) -> Backbone:
    """Open the backbone of a setting with its decoder; it shares the weights of the open encoder."""
    assert setting.backbone is not None
    network = opened_like(setting.backbone, setting.backbone.card.id, writes=True)
    share_encoder_weights(network, setting.backbone)
    return network


def prompted_model_of(network: Backbone) -> PromptedModel:
    """Return a network as a language model to be prompted, with an empty cache."""
    if isinstance(network, ContinuesTexts):
        return PromptedDecoder(network.language_model())
    from graftwork.pretrained.seq2seq_reader import Seq2SeqReader  # it needs transformers

    assert isinstance(network, TextWriter), f"{network.card.id} is no language model"
    return PromptedSeq2Seq(Seq2SeqReader(cast(Any, network)))
