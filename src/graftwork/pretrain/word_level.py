"""Word-level vocabularies: the most frequent words are tokens, all others are the unknown token."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFC, Lowercase, Sequence
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordLevelTrainer

from graftwork.pretrain.vocabulary import Specials, Vocabulary, with_frame_tokens

# Tokens of pre-tokenised corpora stay whole: WikiText's <unk> and @-@. Other text is cut into words, apostrophes
# included, and single punctuation characters.
WORD = r"<unk>|@[-.,]@|\w+(?:['’]\w+)*|[^\w\s]"


def word_level(texts: Iterable[str], size: int, lowercase: bool, specials: Specials, at_least: int) -> Vocabulary:
    """Train a vocabulary of the words that occur at least `at_least` times, by frequency, ties alphabetically."""
    learner = Tokenizer(WordLevel(unk_token=specials.unk))
    learner.normalizer = Sequence([NFC(), Lowercase()] if lowercase else [NFC()])
    learner.pre_tokenizer = Split(Regex(WORD), "removed", invert=True)
    trainer = WordLevelTrainer(vocab_size=size, min_frequency=at_least, show_progress=False)
    learner.train_from_iterator(texts, trainer)
    learned = [token for token, _ in sorted(learner.get_vocab().items(), key=itemgetter(1))]
    kept = list(dict.fromkeys([*specials.listed, *learned]))[:size]  # <unk> may be a word of the corpus
    tokenizer = Tokenizer(WordLevel({token: number for number, token in enumerate(kept)}, unk_token=specials.unk))
    tokenizer.normalizer, tokenizer.pre_tokenizer = learner.normalizer, learner.pre_tokenizer
    return with_frame_tokens(tokenizer, specials)
