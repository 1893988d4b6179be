"""The text of a pre-training: the corpus, optional general text, and their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.errors import ConfigError, DataError
from graftwork.pretrain.corpus import Corpus, open_corpus
from graftwork.pretrain.corpus_files import SkippedFile
from graftwork.pretrain.corpus_tokens import TokenisedCorpus, tokenise
from graftwork.pretrain.objective import ByGradient, Crosses, InOrder, PretrainingRecipe, Rows, VariedRows
from graftwork.pretrain.replay import Replayed, general_rows
from graftwork.pretrain.validation_loss import HeldOut
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn


@dataclass(frozen=True)
class TextChoice:
    """The requested texts and their tokenisation."""

    corpus: Sequence[str | Path]
    validation: float
    general: Sequence[str | Path]  # empty: none
    replay: float  # share of the rows that are general text
    unit: str  # document unit of a text file
    field: str  # of a JSONL object that holds the text
    encoding: str
    tokenizer: str  # a registered name; unused if a backbone brings its own
    vocabulary: int | None  # size in tokens; None: the tokenizer's default
    lowercase: bool | None  # None: the tokenizer's default

    def __post_init__(self) -> None:
        if self.replay and not self.general:
            raise ConfigError("--replay needs general text to replay", do="name it with --general PATH")
        if not 0 <= self.replay < 1:
            raise ConfigError("--replay is a share of the rows", got=str(self.replay), expected="0 to below 1")


@dataclass(frozen=True)
class Corpora:
    """The opened corpora."""

    own: Corpus
    general: Corpus | None
    asked: TextChoice

    def cutting(self, vocabulary: Vocabulary | None) -> dict[str, Any]:
        """Return JSON that identifies the tokenisation."""
        if vocabulary is not None:
            return {"revision": vocabulary.revision}
        return {"name": self.asked.tokenizer, "size": self.asked.vocabulary, "lowercase": self.asked.lowercase}

    def identity(self, vocabulary: Vocabulary | None) -> dict[str, Any]:
        """Return JSON that identifies the texts and their tokenisation."""
        general = {"digest": self.general.digest(), "replay": self.asked.replay} if self.general else None
        return {"corpus": self.own.digest(), "general": general, "tokenizer": self.cutting(vocabulary)}


def open_texts(asked: TextChoice) -> Corpora:
    """Open the requested corpora. Raises `ConfigError`, `DataError` or `StorageError`."""

    def opened(paths: Sequence[str | Path]) -> Corpus:
        how = {"unit": asked.unit, "field": asked.field, "encoding": asked.encoding}
        return open_corpus(paths, validation=asked.validation, **how)

    return Corpora(opened(asked.corpus), opened(asked.general) if asked.general else None, asked)


def vocabulary_of(texts: Corpora, root: Path) -> Vocabulary:
    """Learn the vocabulary from the corpus's training split, or read it from the cache below `root`."""
    asked = texts.asked
    return learn(texts.own, asked.tokenizer, root, size=asked.vocabulary, lowercase=asked.lowercase)


@dataclass(frozen=True)
class Material:
    """The tokens of all texts, and their vocabulary."""

    vocabulary: Vocabulary
    own: TokenisedCorpus
    general: TokenisedCorpus | None
    replay: float
    skipped: str  # files of the corpus that are not read, with reasons, in words; or empty
    left_out: tuple[SkippedFile, ...]  # the same files

    def counted(self) -> dict[str, Any]:
        """Return the duplicates, unknown tokens and skipped files, for the receipt."""
        left_out = [{"path": str(one.path), "why": one.why} for one in self.left_out]
        return {"duplicates": self.own.duplicates, "unknown": self.own.unknown, "left_out": left_out}

    def notes(self) -> list[str]:
        """Return remarks on the text for a reader of the scores."""
        if not self.own.unknown:
            return []
        share = f"{100 * self.own.unknown:.2g} %"
        return [f"{share} of the tokens are unknown: the characters behind them are never predicted"]

    def ids_of_a_step(self, rows: Mapping[int, Rows], recipe: PretrainingRecipe) -> tuple[float, float]:
        """Return the ids of the corpus itself (no general text) in a step of short rows and in one of long rows."""
        own = recipe.batch - general_rows(recipe.batch, self.replay)

        def ids(length: int) -> float:
            found = rows[length]
            return found.ids(recipe.batch) if isinstance(found, VariedRows) else own * found.content

        return ids(recipe.short_length or recipe.length), ids(recipe.length)

    def rows(self, objective: ByGradient, recipe: PretrainingRecipe) -> dict[int, Rows]:
        """Return T -> training rows. Raises `DataError` for less text than a batch, `ConfigError` for bad settings."""
        if recipe.batch < _fewest(objective):
            raise ConfigError(
                "this objective needs more rows in a batch",
                got=f"--batch {recipe.batch}",
                expected=f"at least {_fewest(objective)}",
            )
        found: dict[int, Rows] = {}
        for length in sorted({recipe.short_length or recipe.length, recipe.length}):
            rows = objective.packed(self.own.train, length, self.vocabulary)
            if len(rows) < recipe.batch:
                raise DataError(
                    "the corpus is smaller than one batch",
                    got=f"{len(rows):,} rows of {length} tokens",
                    expected=f"at least {recipe.batch:,}",
                    do="give more text, a smaller --batch or a shorter --length",
                )
            if self.general is not None and self.replay:
                if isinstance(rows, InOrder):
                    raise ConfigError("each row of this objective continues the row before", do="leave --replay out")
                if isinstance(rows, VariedRows):
                    raise ConfigError("the rows of this objective are of varied lengths", do="leave --replay out")
                if not 0 < general_rows(recipe.batch, self.replay) < recipe.batch:
                    raise ConfigError(
                        "with this --replay a batch has rows of one text only",
                        got=f"{general_rows(recipe.batch, self.replay)} of {recipe.batch} rows of general text",
                        do="give a larger --batch, or another share",
                    )
                rows = Replayed(rows, objective.packed(self.general.train, length, self.vocabulary), self.replay)
            found[length] = rows
        return found

    def held(self, objective: ByGradient, recipe: PretrainingRecipe) -> Mapping[str, HeldOut]:
        """Return the validation splits. Raises `DataError` for one with fewer rows than the objective needs."""
        found = {}
        for name, corpus in (("validation", self.own), ("general", self.general)):
            if corpus is not None:
                all_short = recipe.short_length and recipe.short_share == 1
                length = recipe.short_length if all_short else recipe.length
                rows = objective.packed(corpus.validation, length, self.vocabulary)
                fewest = _fewest(objective)
                if len(rows) < fewest:
                    raise DataError(
                        f"{'only one' if len(rows) else 'no'} row of "
                        f"{'text' if name == 'validation' else 'general text'} is held out",
                        got=f"{len(corpus.validation.ids):,} tokens in {corpus.validation.documents:,} documents",
                        expected=f"at least {fewest * length:,} tokens",
                        do="give more text, a larger --validation or a shorter --length",
                    )
                size = min(max(fewest, recipe.rows_at_once or recipe.batch), len(rows))
                found[name] = HeldOut(rows, corpus.validation, size, length)
        return found


def _fewest(objective: ByGradient) -> int:
    """Return the fewest rows of a pass that the objective needs."""
    return objective.fewest if isinstance(objective, Crosses) else 1


def tokenise_texts(texts: Corpora, vocabulary: Vocabulary, root: Path) -> Material:
    """Tokenise the texts, or read their tokens from the cache below `root`. Raises `DataError` or `StorageError`."""
    own = tokenise(texts.own, vocabulary, root / "tokens")
    general = tokenise(texts.general, vocabulary, root / "tokens") if texts.general else None
    left_out = texts.own.skipped
    return Material(vocabulary, own, general, texts.asked.replay, texts.own.listed() if left_out else "", left_out)
