"""Unigram (Kudo 2018), as in SentencePiece and ALBERT: the most probable segmentation of a word, spaces kept as `▁`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Metaspace as Decoder
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC, Lowercase, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace

from graftwork.pretrain.alphabet import alphabet
from graftwork.pretrain.unigram_pieces import learn_pieces
from graftwork.pretrain.vocabulary import ROBERTA, TokenizerKind, Vocabulary, with_frame_tokens
from graftwork.registry import tokenizers

SPACE = "▁"


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Train pieces that occur at least twice; the common characters are always pieces."""
    spaces = Replace(Regex(r"\s+"), " ")
    normalizer = Sequence([NFKC(), Lowercase(), spaces] if lowercase else [NFKC(), spaces])
    letters = sorted({SPACE, *alphabet(texts, normalizer.normalize_str, most=size // 4)})
    words: Counter[str] = Counter()
    for text in texts:
        words.update(normalizer.normalize_str(text).split())
    counted = {SPACE + word: count for word, count in words.items()}
    pieces = learn_pieces(counted, letters, size - len(ROBERTA.listed))
    # The other special tokens are added after the pieces, so that the model cannot match them in a text.
    tokenizer = Tokenizer(Unigram([(ROBERTA.unk, 0.0), *pieces], unk_id=0, byte_fallback=False))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, Metaspace(), Decoder()
    return with_frame_tokens(tokenizer, ROBERTA)


tokenizers.register("unigram")(TokenizerKind(train, lowercase=False))
