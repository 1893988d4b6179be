"""A random, untrained BERT of two blocks, built in milliseconds, for tests and first trials."""

from __future__ import annotations

import string
from dataclasses import replace
from itertools import product
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig

from graftwork.io.files import digest
from graftwork.nn.attention_interface import with_our_attention
from graftwork.pretrained.build_backbone import assemble
from graftwork.pretrained.layout import BERT
from graftwork.pretrained.load_folder import fresh
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import backbones

MAX_LENGTH = 64  # tokens
ARCHITECTURE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": MAX_LENGTH,
    "initializer_range": 0.2,  # with the usual 0.02 such a narrow network hardly distinguishes texts
}
OWN_SEED = 20240  # draws the weights of `tiny_text`; `random:tiny_text` draws others


class TinyText:
    """Implements `BackboneFamily` for this one network; `source` is not used."""

    model_types: tuple[str, ...] = ()

    def open(self, source: str, *, random_seed: int | None, bf16: bool) -> TransformerBackbone:
        """Build the network; nothing is read from disk or the internet."""
        tokenizer = tiny_tokenizer()
        config = BertConfig(vocab_size=tokenizer.get_vocab_size(), **ARCHITECTURE)
        module = fresh(config, OWN_SEED if random_seed is None else random_seed, bf16)
        return assemble(
            "tiny_text",
            with_our_attention(module),
            tokenizer,
            replace(BERT, pooling="mean"),
            pad_id=0,
            max_length=MAX_LENGTH,
            random_seed=random_seed,
            identity={"tokenizer": digest(tokenizer.to_str()), "own_seed": OWN_SEED, "architecture": ARCHITECTURE},
        )


def tiny_tokenizer() -> Tokenizer:
    """Build a lower-case tokenizer with pieces of one or two letters; it can encode every ASCII text."""
    letters, signs = string.ascii_lowercase + string.digits, string.punctuation
    pieces = [*letters, *("".join(pair) for pair in product(string.ascii_lowercase, repeat=2))]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *pieces, *(f"##{piece}" for piece in pieces)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


backbones.register("tiny_text")(TinyText())
