"""Training of a vocabulary on a corpus, cached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tokenizers as library

from graftwork.errors import ConfigError
from graftwork.io.cache_folder import touch
from graftwork.io.files import digest
from graftwork.pretrain.corpus import Corpus
from graftwork.pretrain.vocabulary import CONFIG, Vocabulary
from graftwork.registry import tokenizers

FORMAT = 1
SAMPLE_BYTES = 200_000_000  # of text; more changes a vocabulary little, and its words must fit into memory
SMALLEST = 32  # tokens; fewer cannot hold an alphabet


@dataclass(frozen=True)
class TextSample:
    """The texts of the train split, or a sample of them if the corpus is large; can be iterated repeatedly."""

    corpus: Corpus
    limit: int = SAMPLE_BYTES

    def __iter__(self) -> Iterator[str]:
        share = min(1.0, self.limit / max(1, self.corpus.bytes_about()))
        for document in self.corpus.documents("train"):
            # The split depends on the upper bits of the key, the sample on the lower ones.
            if (document.key & 0xFFFFFFFF) < share * 2**32:
                yield document.text


def learn(
    corpus: Corpus, tokenizer: str, root: Path, *, size: int | None = None, lowercase: bool | None = None
) -> Vocabulary:
    """Train the registered `tokenizer` on the train split, or read its vocabulary from the cache below `root`.

    `size` and `lowercase` default to the tokenizer's; a default size may be reduced to what the corpus supports. Raises
    `UnknownName`, `DataError`, `StorageError`, and `ConfigError` for a `size` that the corpus does not support.
    """
    kind = tokenizers.get(tokenizer)
    if size is not None and size < SMALLEST:
        raise _too_small(size, SMALLEST)
    wanted, lower = size or kind.size, kind.lowercase if lowercase is None else lowercase
    key = {
        "format": FORMAT,
        "library": library.__version__,
        "corpus": corpus.digest(),
        "tokenizer": tokenizer,
        "size": wanted,
        "lowercase": lower,
    }
    folder = root / "vocabularies" / digest(key)
    if (folder / CONFIG).is_file():  # written last
        vocabulary = Vocabulary.open(folder)
        touch(folder / CONFIG)
    else:
        vocabulary = kind.train(TextSample(corpus), wanted, lower)
        corpus.require_unchanged()
        vocabulary.save(folder)
    if vocabulary.size > wanted:
        raise _too_small(wanted, vocabulary.size)
    if size is not None and vocabulary.size < size:
        raise ConfigError(
            "the corpus does not support so large a vocabulary",
            got=f"{vocabulary.size:,} tokens",
            expected=f"{size:,} tokens, as was asked for",
            do=f"give more text, or ask for {vocabulary.size:,} tokens or fewer",
        )
    return vocabulary


def _too_small(size: int, least: int) -> ConfigError:
    return ConfigError(
        "the vocabulary is too small for the characters of the corpus", got=f"{size:,}", expected=f"{least:,} or more"
    )
