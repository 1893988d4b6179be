"""Text generation: backbones that write a text token by token, and the settings of their search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from graftwork.core.task import Task

Tell = Callable[[int, str], None]  # called with the index of an example and its text so far
TellTokens = Callable[[int, list[int]], None]  # the same with the tokens so far

TOKENS = "tokens"  # key in the inputs of a model: the tokens of the target texts, (S, U)
NOTHING = -100  # padding of the shorter target texts of a batch


@dataclass(frozen=True)
class TextSearch:
    """The settings of the search for a text, in a task whose targets are texts."""

    beams: int  # 1: greedy search
    length_penalty: float  # a beam's log-probability is divided by its length to this power
    no_repeat: int  # length of token n-grams that may not repeat; 0: no limit
    longest: int  # maximum number of tokens

    @classmethod
    def of(cls, task: Task) -> TextSearch:
        """Take the settings from a task that writes texts."""
        settings = task.settings
        return cls(settings.beams, settings.length_penalty, settings.no_repeat, settings.longest)


@dataclass(frozen=True)
class Instruction:
    """The source and target language and the prefix of the source, from the settings of a task that writes texts."""

    source_language: str | None = None  # a language tag of the tokenizer
    target_language: str | None = None
    source_prefix: str | None = None  # put before every source text

    @classmethod
    def of(cls, task: Task) -> Instruction | None:
        """Take the settings from a task; return None if the task does not write texts."""
        settings = task.settings
        if not hasattr(settings, "source_prefix"):
            return None
        return cls(settings.source_language, settings.target_language, settings.source_prefix)

    @classmethod
    def of_question(cls, question: Mapping[str, Any]) -> Instruction | None:
        """Take the settings from `Task.question()`; return None if it has none of them."""
        given = cls(*(question.get(item.name) for item in fields(cls)))
        return None if given == cls() else given

    @property
    def languages(self) -> str:
        """The given languages, each after the name of its setting; "" if none is given."""
        told = {"source_language": self.source_language, "target_language": self.target_language}
        return ", ".join(f"{name} {tag!r}" for name, tag in told.items() if tag is not None)

    @property
    def direction(self) -> str:
        """` from en_XX to de_DE`, without a language that is not given."""
        told = {"from": self.source_language, "to": self.target_language}
        return "".join(f" {word} {tag}" for word, tag in told.items() if tag is not None)


@dataclass(frozen=True)
class WrittenTokens:
    """The tokens written for one sequence."""

    tokens: list[int]  # with the end token, if the text ended
    ended: bool  # False: cut at the maximum length
    others: tuple[WrittenTokens, ...] = ()  # the results of the other beams, best first


@runtime_checkable
class TextWriter(Protocol):
    """An encoder-decoder backbone: the encoder reads a source text, the decoder writes a target text of U tokens.

    `card.blocks` counts the blocks of both, and `sites("block")` has the encoder's, then the decoder's. `states`,
    `features` and `pool` are those of the encoder, `reading`. Sites of the decoder have activations (S, U, …).
    """

    @property
    def reading(self) -> Backbone:
        """The encoder as a backbone of its own, over the same modules: its output enters the decoder."""

    @property
    def below_top(self) -> Mapping[str, int]:
        """Path of a block -> the number of blocks above it in its own stack, the encoder or the decoder."""

    def instructed(self, given: Instruction) -> Backbone:
        """Return this network with these languages and this prefix, over the same modules and with the same card.

        Raises `ConfigError` for a setting that the network does not take, and for one that it needs and lacks.
        """

    def encode_texts(self, texts: Sequence[str], longest: int) -> tuple[list[list[int]], int]:
        """Tokenise target texts, with end tokens; return them and the number of truncated texts, which have no end."""

    def log_probabilities(self, states: Tensor, mask: Tensor, tokens: Tensor) -> Tensor:
        """Return (S, U) fp32: the log-probability of each of `tokens` (S, U), given those before it; 0 at `NOTHING`.

        `states` (S, T, D) are the output of `reading`, with mask (S, T).
        """

    def write(
        self, states: Tensor, mask: Tensor, search: TextSearch, tell: TellTokens | None = None
    ) -> list[WrittenTokens]:
        """Generate a text for each sequence; `states` and `mask` are as above.

        `tell` is called after each token with the tokens so far; never in a search with several beams.
        """

    def text_of(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""


def with_instruction(backbone: Backbone, given: Instruction | None) -> Backbone:
    """Return an open backbone with the languages and the prefix of a task, if there are any.

    Raises `ConfigError` for a setting that the backbone does not take, and for one that it needs and lacks.
    """
    if given is not None and isinstance(backbone, TextWriter):
        return backbone.instructed(given)
    if given is not None and given.languages:
        raise no_tags(backbone.card.id, given)
    return backbone


def no_tags(name: str, given: Instruction) -> ConfigError:
    """Return the error for languages given to the backbone `name`, which takes no language tags."""
    return ConfigError(
        "this backbone takes no language tags",
        where=name,
        got=given.languages,
        expected="a translator with tags, such as mBART-50, M2M100 or NLLB",
        do='leave both languages out; T5 takes a prefix instead: --source-prefix "translate English to German: "',
    )


def share_encoder_weights(writer: Backbone, reader: Backbone) -> None:
    """Let the encoder of `writer` use the weights of `reader`, the same encoder opened separately, to save memory."""
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
    """Return the encoder of a `TextWriter`, whose states can be cached; return any other backbone unchanged."""
    return backbone.reading if isinstance(backbone, TextWriter) else backbone
