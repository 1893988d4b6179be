"""Writing: backbones that answer with a text, token by token, and how they search for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from graftwork.core.task import Task

Tell = Callable[[int, str], None]  # told the place of an example, and its text as far as it is written
TellTokens = Callable[[int, list[int]], None]  # the same as tokens

TOKENS = "tokens"  # among the inputs of a model: those of the texts that are to be written, (S, U)
NOTHING = -100  # in place of a token, where a shorter text of a batch has none


@dataclass(frozen=True)
class TextSearch:
    """The search for a text: settings of a task whose answers are texts."""

    beams: int  # 1: the likeliest token each time
    length_penalty: float  # power of the length that a beam's log-probability is divided by
    no_repeat: int  # length of token n-grams that may not come twice; 0: any may
    longest: int  # maximum number of tokens

    @classmethod
    def of(cls, task: Task) -> TextSearch:
        """Read the settings of a task."""
        settings = task.settings
        return cls(settings.beams, settings.length_penalty, settings.no_repeat, settings.longest)


@dataclass(frozen=True)
class Instruction:
    """The source and target language and the prefix of the source, from the settings of a task that writes texts."""

    source_language: str | None = None  # a tag of its tokenizer
    target_language: str | None = None
    source_prefix: str | None = None  # is before every text that is read

    @classmethod
    def of(cls, task: Task) -> Instruction | None:
        """Read the settings of a task; None of one whose answers are no texts."""
        settings = task.settings
        if not hasattr(settings, "source_prefix"):
            return None
        return cls(settings.source_language, settings.target_language, settings.source_prefix)

    @classmethod
    def of_question(cls, question: Mapping[str, Any]) -> Instruction | None:
        """Read the question of a task as JSON, which has the settings that were given; None where none was."""
        given = cls(*(question.get(item.name) for item in fields(cls)))
        return None if given == cls() else given

    @property
    def languages(self) -> str:
        """The languages that are told, by the names of the settings; "" if none is."""
        told = {"source_language": self.source_language, "target_language": self.target_language}
        return ", ".join(f"{name} {tag!r}" for name, tag in told.items() if tag is not None)

    @property
    def direction(self) -> str:
        """` from en_XX to de_DE`, without what is not told."""
        told = {"from": self.source_language, "to": self.target_language}
        return "".join(f" {word} {tag}" for word, tag in told.items() if tag is not None)


@dataclass(frozen=True)
class WrittenTokens:
    """The tokens written for one sequence."""

    tokens: list[int]  # with the end's, if it ended
    ended: bool  # False: it was cut at the longest length
    others: tuple[WrittenTokens, ...] = ()  # what the search's other beams end with, best first


@runtime_checkable
class TextWriter(Protocol):
    """A backbone that reads with its encoder and writes with its decoder (U tokens of a text).

    Its `card.blocks` counts the blocks of both: `sites("block")` has those of the encoder, then those of the decoder.
    `states`, `features` and `pool` are those of `reading`. Sites of the decoder see (S, U, …).
    """

    @property
    def reading(self) -> Backbone:
        """The encoder as a backbone of its own, over the same modules: its output enters the decoder."""

    @property
    def below_top(self) -> Mapping[str, int]:
        """Path of a block -> the number of blocks above it in the encoder or in the decoder, whichever has it."""

    def instructed(self, given: Instruction) -> Backbone:
        """Return this network, over the same modules and with the same card, as it reads and writes when told this.

        Raises `ConfigError` for what it can't be told, and where it has to be told more.
        """

    def encode_texts(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], int]:
        """Tokenise texts to be written, the end's token included; also count those cut, which have no end."""

    def log_probabilities(self, states: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
        """Return (S, U) fp32: of each of `tokens` (S, U), given the ones before it; 0 where it is `NOTHING`.

        `states` (S, T, D) are the output of `reading`, with mask (S, T).
        """

    def write(
        self, states: Tensor, mask: Tensor, search: TextSearch, tell: TellTokens | None = None
    ) -> list[WrittenTokens]:
        """Write a text for each sequence; `states` and `mask` as above, computed once.

        `tell` is told each token as it is chosen; a search by several beams has no text until its end.
        """

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""


def with_instruction(backbone: Backbone, given: Instruction | None) -> Backbone:
    """Return an open backbone as it answers a task of this instruction.

    Raises `ConfigError` for what the backbone can't be told, and where it has to be told more.
    """
    if given is not None and isinstance(backbone, TextWriter):
        return backbone.instructed(given)
    if given is not None and given.languages:
        raise no_tags(backbone.card.id, given)
    return backbone


def no_tags(name: str, given: Instruction) -> ConfigError:
    """Return the error of languages that are told to the backbone `name`, which knows no tags of them."""
    return ConfigError(
        "this backbone takes no language tags",
        where=name,
        got=given.languages,
        expected="a translator with tags, such as mBART-50, M2M100 or NLLB",
        do='leave both languages out; T5 takes a prefix instead: --source-prefix "translate English to German: "',
    )


def share_reading(writer: Backbone, reader: Backbone) -> None:
    """Let a backbone that writes use the weights of `reader`, its encoder opened by itself, so that memory has one."""
    from graftwork.nn.packed_linear import LinearMap

    own, theirs = (dict(one.module.named_modules()) for one in (reading_part(writer), reader))
    equal = {
        id(weight): theirs[path]._parameters[name]
        for path, part in own.items()
        for name, weight in part._parameters.items()
    }
    for part in writer.module.modules():
        part._parameters |= {name: equal.get(id(weight), weight) for name, weight in part._parameters.items()}
    for path, part in own.items():
        if isinstance(part, LinearMap):
            part.pack_with(theirs[path])


def reading_part(backbone: Backbone) -> Backbone:
    """Return the encoder of a backbone that writes, whose states can be kept; else the backbone itself."""
    return backbone.reading if isinstance(backbone, TextWriter) else backbone
