"""Word vectors: skip-gram and CBOW with negative sampling (Mikolov et al. 2013, arXiv:1310.4546), by gensim.

With `ngrams` a word also includes the vectors of its character n-grams, as in fastText (Bojanowski et al. 2017,
arXiv:1607.04606).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.meter import Stopwatch
from graftwork.data.readers.word_vector_folder import write_folder
from graftwork.errors import ConfigError, DataError
from graftwork.io.extras import extra
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import Bench, LearnedBackbone
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.registry import objectives
from graftwork.train.seeds import derive
from graftwork.units import with_prefix

ALGORITHMS = ("skip_gram", "cbow")
PORTION = 400_000  # tokens between two points at which training can be resumed
LAST_RATE = 1e-4  # final learning rate
MOST_WORDS = 10_000  # gensim's limit on the words of a text
COUNTED = 1 << 22  # tokens counted at once
SHORTEST, LONGEST = 3, 6  # characters of an n-gram


@objectives.register("word_vectors")
@dataclass(frozen=True)
class WordVectorObjective:
    """Word vectors trained with negative sampling."""

    algorithm: str = "skip_gram"  # a word predicts each of its neighbours; "cbow": their mean predicts it
    window: int = 5  # most words on either side; the number is drawn for every word
    negative: int = 5  # negative samples per positive one
    sample: float = 1e-3  # words with a higher frequency are randomly subsampled
    min_count: int = 5  # rarer words have no vector
    epochs: int = 5  # default passes over the corpus
    learning_rate: float = 0.025  # initial; falls to 0.0001
    ngrams: bool = False  # character n-grams of length 3 to 6 have vectors too, which make up those of words
    buckets: int = 200_000  # number of n-gram vectors; n-grams with the same hash share one

    VERSION: ClassVar[int] = 1
    tokenizer: ClassVar[str] = "words"
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"width": 50},
        "small": {"width": 100},
        "base": {"width": 300},
    }

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ConfigError(f"no algorithm {self.algorithm!r}", expected=f"one of {', '.join(ALGORITHMS)}")
        least = {"window": 1, "negative": 1, "min_count": 1, "epochs": 1, "buckets": 1, "learning_rate": LAST_RATE}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ConfigError(f"{name} must be at least {value}", got=str(getattr(self, name)))
        if not 0 < self.sample <= 1:
            raise ConfigError("sample is a share of the words", got=str(self.sample), expected="above 0, at most 1")

    def learn(self, bench: Bench) -> LearnedBackbone:
        """Train on one thread, by portions. Raises `ConfigError` without gensim, `DataError` for too few words."""
        width = _width(bench.size)
        words = _Words.of(bench, self.min_count)
        with _quiet():
            model = self._model(words, width)
            cost = self._flops(model, words, width)
            tokens = bench.tokens(self.epochs, cost, lambda: self._speed(self._model(words, width), words))
            done = self._train(model, words, tokens)
        vectors = WordVectors(tuple(model.wv.index_to_key), model.wv.vectors)
        write_folder(bench.folder, vectors, {"algorithm": self.algorithm, "ngrams": self.ngrams})
        trained = sum(array.size for array in _arrays(model).values())
        facts = {
            "tokens_seen": done,
            "passes": done / len(bench.train.ids),
            "vocabulary": len(vectors.words),
            "parameters": trained,
            "known": {"train": words.known(bench.train), "validation": words.known(bench.validation)},
            "library": f"gensim {_version()}",
        }
        return LearnedBackbone(facts, {}, trained, done * cost)

    def _model(self, words: _Words, width: int) -> Any:
        """Build an untrained model, words sorted by frequency here: gensim's sort of ties depends on the machine."""
        models = _gensim()
        of_ngrams = {"min_n": SHORTEST, "max_n": LONGEST, "bucket": self.buckets} if self.ngrams else {}
        model = (models.FastText if self.ngrams else models.Word2Vec)(
            vector_size=width,
            sg=int(self.algorithm == "skip_gram"),
            window=self.window,
            negative=self.negative,
            sample=self.sample if self.sample < 1 else 0,  # gensim reads 1 as a count of words; 0: no subsampling
            min_count=1,  # rarer words are already removed
            sorted_vocab=0,
            workers=1,  # with several, scheduling would make runs differ
            seed=derive(words.bench.seed, "init") % 2**32,
            **of_ngrams,
        )
        model.build_vocab_from_freq(words.frequencies(), corpus_count=words.bench.train.documents)
        return model

    def _train(self, model: Any, words: _Words, tokens: int) -> int:
        """Train and return the tokens seen, those of an interrupted attempt included."""
        bench = words.bench
        first = bench.resume(lambda tensors: _restore(model, tensors))
        done = began = min(first * PORTION, tokens)
        watch = Stopwatch()
        for number, portion in islice(enumerate(words.portions(tokens), start=1), first, None):
            if bench.is_spent():
                break
            self._step(model, words, portion, tokens)
            done = portion.end
            # gensim does not compute a loss with n-grams, and sums that of words in single precision
            loss = {} if self.ngrams else {"loss": float(model.get_latest_training_loss() / (done - portion.start))}
            bench.log({"step": number, **loss, "rate": self._rate(done / tokens)})
            speed = (done - began) / max(1e-9, watch.read().wall_seconds)
            bench.progress(done / tokens, f"{done:,} of {tokens:,} tokens · {with_prefix(speed, 'tokens/s')}")
            bench.keep(number, -(-tokens // PORTION), lambda: _state(model))
        return done

    def _step(self, model: Any, words: _Words, portion: Portion, tokens: int) -> None:
        """Train on a portion; random draws depend on the seed and its position alone, so any one can be resumed."""
        model.random = np.random.RandomState(derive(words.bench.seed, f"portion {portion.start}") % 2**32)
        texts = list(words.texts(portion))
        model.train(
            texts or [[]],
            total_examples=len(texts) or 1,
            epochs=1,
            start_alpha=self._rate(portion.start / tokens),
            end_alpha=self._rate(portion.end / tokens),
            compute_loss=True,
            report_delay=1e9,
        )

    def _rate(self, done: float) -> float:
        return self.learning_rate + (LAST_RATE - self.learning_rate) * done

    def _speed(self, model: Any, words: _Words) -> float:
        """Measure tokens per second on one portion, with a model that is discarded."""
        tokens = len(words.bench.train.ids)
        portion = next(words.portions(tokens))
        watch = Stopwatch()
        self._step(model, words, portion, tokens)
        return (portion.end - portion.start) / max(1e-9, watch.read().wall_seconds)

    def _flops(self, model: Any, words: _Words, width: int) -> float:
        """Return the expected FLOP per corpus token, 2 per multiply-add: products, gradients, and sums of rows."""
        counts = words.counts[words.counts > 0]
        ratio = self.sample / (counts / counts.sum())
        left = float((counts * np.minimum(1.0, np.sqrt(ratio) + ratio)).sum())  # words after subsampling
        share = left / len(words.bench.train.ids)  # of the corpus tokens
        neighbours = self.window + 1.0  # on both sides together, on average
        rows = 1.0 + (_ngrams_of_a_word(model) if self.ngrams else 0.0)
        decided = 6.0 * width * (1 + self.negative)  # the dot product, and the gradients of both vectors
        if self.algorithm == "skip_gram":
            return share * neighbours * (decided + 2.0 * width * rows)
        return share * (decided + 4.0 * width * neighbours * rows)


@dataclass(frozen=True)
class _Words:
    """The corpus as the words that have vectors; others are skipped."""

    bench: Bench
    counts: NDArray[np.int64]  # (vocabulary,) counts in the training split; 0 for words without a vector
    names: list[str]

    @classmethod
    def of(cls, bench: Bench, min_count: int) -> _Words:
        """Count the words. Raises `ConfigError` for a subword vocabulary, `DataError` for fewer than two words."""
        if type(bench.vocabulary.tokenizer.model).__name__ != "WordLevel":
            raise ConfigError(
                "the tokens of word vectors are whole words", do="leave --tokenizer out, or give --tokenizer words"
            )
        counts = np.zeros(bench.vocabulary.size, dtype=np.int64)
        for start in range(0, len(bench.train.ids), COUNTED):
            part = np.asarray(bench.train.ids[start : start + COUNTED], dtype=np.int64)
            counts += np.bincount(part, minlength=len(counts))
        counts[list(bench.vocabulary.special_ids)] = 0
        counts[counts < min_count] = 0
        if np.count_nonzero(counts) < 2:
            raise DataError(
                f"the corpus has no two words that occur at least {min_count} times",
                do="give more text, or a lower min_count: --objective word_vectors:min_count=1",
            )
        return cls(bench, counts, bench.vocabulary.tokens(range(bench.vocabulary.size)))

    def frequencies(self) -> dict[str, int]:
        """Return word -> count, the most frequent first."""
        order = np.argsort(-self.counts, kind="stable")[: np.count_nonzero(self.counts)].tolist()
        return {self.names[number]: int(self.counts[number]) for number in order}

    def portions(self, tokens: int) -> Iterator[Portion]:
        """Yield the training portions, in order."""
        return portions(self.bench.train, derive(self.bench.seed, "order"), tokens, PORTION)

    def texts(self, portion: Portion) -> Iterator[list[str]]:
        """Yield the words of a portion, text by text."""
        train = self.bench.train
        for document, start, end in portion.parts:
            at = int(train.starts[document])
            ids = np.asarray(train.ids[at + start : at + end], dtype=np.int64)
            words = [self.names[number] for number in ids[self.counts[ids] > 0].tolist()]
            for place in range(0, len(words), MOST_WORDS):
                yield words[place : place + MOST_WORDS]

    def known(self, tokens: SplitTokens) -> float:
        """Return the share of a split's tokens that have a vector."""
        return float((self.counts[np.asarray(tokens.ids, dtype=np.int64)] > 0).mean()) if len(tokens.ids) else 0.0


@dataclass(frozen=True)
class Portion:
    """Tokens `start … end - 1` of all training tokens, with the passes end to end."""

    start: int
    end: int
    parts: tuple[tuple[int, int, int], ...]  # (document, start, end) in tokens of the document, end exclusive


def portions(tokens: SplitTokens, seed: int, count: int, size: int) -> Iterator[Portion]:
    """Yield `count` tokens in portions of `size`, documents reshuffled in every pass; a pure function of the seed."""
    start, end, parts, epoch = 0, 0, [], 0
    lengths = np.diff(tokens.starts)
    while end < count:
        order = np.random.default_rng(derive(seed, f"pass {epoch}")).permutation(tokens.documents)
        for document in order.tolist():
            place, length = 0, int(lengths[document])
            while place < length and end < count:
                taken = min(length - place, size - (end - start), count - end)
                parts.append((document, place, place + taken))
                place, end = place + taken, end + taken
                if end - start == size:
                    yield Portion(start, end, tuple(parts))
                    start, parts = end, []
        epoch += 1
    if parts:
        yield Portion(start, end, tuple(parts))


def _width(size: Mapping[str, Any]) -> int:
    width = size.get("width")
    if not isinstance(width, int) or width < 1 or set(size) != {"width"}:
        raise ConfigError("the size of word vectors is their width", got=str(dict(size)), expected='{"width": 100}')
    return width


def _arrays(model: Any) -> dict[str, NDArray[np.float32]]:
    names = ("vectors_vocab", "vectors_ngrams") if hasattr(model.wv, "vectors_ngrams") else ("vectors",)
    return {name: getattr(model.wv, name) for name in names} | {"syn1neg": model.syn1neg}


def _state(model: Any) -> dict[str, Tensor]:
    """Return all state that the next portion depends on."""
    return {name: torch.from_numpy(array) for name, array in _arrays(model).items()}


def _restore(model: Any, tensors: Mapping[str, Tensor]) -> None:
    for name, array in _arrays(model).items():
        array[:] = tensors[name].numpy()
    model._clear_post_train()


def _ngrams_of_a_word(model: Any) -> float:
    """Return the mean number of n-grams per word, weighted by frequency."""
    sizes = np.array([len(buckets) for buckets in model.wv.buckets_word])
    counts = np.array([model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key])
    return float((sizes * counts).sum() / counts.sum())


def _gensim() -> Any:
    with extra("vectors", "training word vectors"):
        import gensim.models
    return gensim.models


def _version() -> str:
    import gensim

    return str(gensim.__version__)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence gensim's warnings of rates that rise between calls and of little text: both are intended here."""
    log = logging.getLogger("gensim")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
