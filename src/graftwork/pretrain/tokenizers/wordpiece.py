"""WordPiece (Schuster & Nakajima 2012), as in BERT: split at white space and punctuation, then longest-match pieces."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as Decoder
from tokenizers.models import BPE, WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Metaspace, Sequence
from tokenizers.trainers import BpeTrainer

from graftwork.pretrain.alphabet import alphabet
from graftwork.pretrain.vocabulary import BERT, TokenizerKind, Vocabulary, with_frame_tokens
from graftwork.registry import tokenizers

BEGINNING = "\ue000"  # marks the beginning of words in training; a private-use character, not expected in text
INSIDE = "##"
LONGEST_WORD = 100  # characters; a longer word is unknown


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Train pieces merged from pairs that occur at least twice; pieces inside a word begin with `##`.

    The library's WordPiece trainer numbers the letters in a different order at every run, so that ties are broken
    differently. Its BPE trainer does not, and is used instead, with the beginning of a word as a letter of its own.
    """
    normalizer = BertNormalizer(lowercase=lowercase)
    letters = alphabet(texts, normalizer.normalize_str, most=size // 4)
    learner = Tokenizer(BPE())
    learner.normalizer = normalizer
    words = Metaspace(replacement=BEGINNING, prepend_scheme="always", split=False)
    learner.pre_tokenizer = Sequence([BertPreTokenizer(), words])
    trainer = BpeTrainer(
        vocab_size=size + len(letters),  # a word's first letter is a pair in BPE: BEGINNING and the letter
        min_frequency=2,
        initial_alphabet=[BEGINNING, *letters],
        limit_alphabet=len(letters) + 1,
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    learned = [token for token, _ in sorted(learner.get_vocab().items(), key=itemgetter(1))]
    tokens = [*BERT.listed, *letters, *(_written(piece) for piece in learned if piece != BEGINNING)]
    kept = list(dict.fromkeys(tokens))[:size]
    vocabulary = {token: number for number, token in enumerate(kept)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token=BERT.unk, max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, BertPreTokenizer()
    tokenizer.decoder = Decoder()
    return with_frame_tokens(tokenizer, BERT)


def _written(piece: str) -> str:
    return piece.removeprefix(BEGINNING) if piece.startswith(BEGINNING) else INSIDE + piece


tokenizers.register("wordpiece")(TokenizerKind(train, lowercase=True))
