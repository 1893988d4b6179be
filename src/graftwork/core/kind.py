"""A kind: how one sort of question becomes numbers and back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.ragged import Numbers
from graftwork.core.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn


class Kind(Protocol):
    """Stateless. Targets are str, tuple[str, ...], float or `Golds`; encoded (N,) or (N, C) arrays, or `Ragged`.

    A kind whose examples have `words` answers each of them: below, W then stands for N and B.
    """

    per_word: bool  # its examples are words, and each has an answer; otherwise texts, and an example has one
    settings: tuple[str, ...]  # of a task, which of `OF_SOME_KINDS` it has a use for
    mends: str  # what `settle` may change about a target, as the data report calls it

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> Any:
        """The target that stands in the file as `text` (a tuple: a list in JSONL).

        `where` is `file:line` for the `DataError`.
        """

    def settle(self, target: Any, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Any, int]:
        """A parsed target beside its inputs: what it is to be, and in how many places that was mended.

        Raises `DataError` where the two don't belong together.
        """

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """`task` with labels, positive class, scale and metrics filled in from the training targets."""

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """A key per target; a stratified split draws the same share of every key."""

    def encode(self, targets: Sequence[Any], task: Task) -> Numbers:
        """Targets as numbers. Raises `DataError` naming a label that the task does not have."""

    def outputs(self, task: Task) -> int:
        """C, the number of logits."""

    def build_head(self, task: Task, width: int) -> nn.Module:
        """A module `Features -> logits (B, C)`."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(B, C) logits and encoded targets -> scalar, the mean over B."""

    def weight(self, targets: Tensor) -> float:
        """What the loss of these encoded targets is the mean over: B, of words W. A batch in parts adds up by it."""

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """(C,) logits of the best answer that never looks at the input: the majority class, or the mean.

        Of choices (places, C): a row for the first, one for the second, …
        """

    def predictions(self, logits: Numbers, task: Task) -> Numbers:
        """(B, C) logits -> what `encode` would return for the predicted targets. What metrics compare."""

    def decode(self, logits: Numbers, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(B, C) logits of these examples -> of each the answer as JSON: `{"label", "probabilities"}`, `{"value"}`, …

        Its first entry is the prediction. `label` is a list where an example may have several.
        """

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """An answer of `decode` as a person reads it, in a line; of a ranking in a line for each choice."""


@runtime_checkable
class OneClass(Protocol):
    """What a kind is too whose examples have one label each: encoded (N,) int64 classes, and a logit for each label."""

    one_class: Literal[True]


@runtime_checkable
class AsksPassages(Protocol):
    """What a kind is too whose examples are questions about passages: a row for "no answer", then one for each word."""

    longest: int  # words of an answer, at most


def tags_words(kind: Kind) -> bool:
    """Whether each word has an answer of its own, rather than a part in that of a question."""
    return kind.per_word and not isinstance(kind, AsksPassages)


@runtime_checkable
class OfChoices(Protocol):
    """What a kind is too whose examples have a text and `choices`, and a row for each choice."""

    per_choice: Literal[True]


@runtime_checkable
class ChoosesThresholds(Protocol):
    """What a kind is too whose answers hang on thresholds: they are chosen on validation, for every method alike."""

    def shift(self, logits: Numbers, targets: Numbers, task: Task) -> NDArray[np.float64] | None:
        """(C,) to add to all logits, so that a threshold of 0 serves, chosen on these; None for nothing.

        Where examples have rows of their own it is added to the first of each: its "none of them".
        """
