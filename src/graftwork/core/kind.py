"""A kind: one type of task, such as classification, with its targets, arrays, loss, predictions and answers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.outcome import Outcome
from graftwork.core.ragged import Numbers, from_lists
from graftwork.core.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn


class Kind(Protocol):
    """A stateless task type. Targets are str, tuple[str, ...], float or `Golds`; encoded (N,) or (N, C), or `Ragged`.

    A kind whose examples have `words` has a target per word: N and B are then W. An answer is a prediction as JSON.
    """

    per_word: bool  # True: a target per word; False: a target per example
    settings: type[Any]  # a frozen dataclass with defaults: the settings that only its tasks have
    has_labels: bool  # its predictions are among `Task.labels`, which a task may list
    repairs: str  # the data report's name for the repairs that `settle` makes; empty if it makes none

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> Any:
        """Parse a target, `text` in the file (a tuple for a list in JSONL).

        `where` is `file:line` for the `DataError`.
        """

    def settle(self, target: Any, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Any, int]:
        """Check a parsed target against its inputs; return the repaired target and the number of repairs.

        Raises `DataError` if the two are inconsistent.
        """

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Return `task` with labels, positive class, scale and metrics filled in from the training targets."""

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return a stratum key per target; a stratified split draws the same share of every key."""

    def encode(self, targets: Sequence[Any], task: Task) -> Numbers:
        """Encode targets as numbers. Raises `DataError` naming a label that the task does not have."""

    def outputs(self, task: Task) -> int:
        """Return C, the number of logits."""

    def build_head(self, task: Task, width: int) -> nn.Module:
        """Return a module `Features -> logits (B, C)`."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of (B, C) logits and encoded targets, a scalar: the mean over B."""

    def weight(self, targets: Tensor) -> float:
        """Return the count that the loss averages over: B, or W for words. The weight of a part of a batch."""

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (C,) logits of the best constant prediction: the majority class, or the mean.

        For choices (places, C): a row for the first choice, one for the second, …
        """

    def predictions(self, logits: Numbers, task: Task) -> Numbers:
        """Convert (B, C) logits to encoded predictions, as `encode` would return them; metrics compare these."""

    def decode(self, logits: Numbers, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Convert (B, C) logits to one JSON answer per example: `{"label", "probabilities"}`, `{"value"}`, …

        Its first entry is the prediction. `label` is a list if an example may have several.
        """

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format an answer of `decode` for people: one line, or for a ranking one line per choice."""


@runtime_checkable
class OneClass(Protocol):
    """A kind whose examples have one label each: encoded as (N,) int64 classes, with a logit per label."""

    one_class: Literal[True]


@runtime_checkable
class SharesProbability(Protocol):
    """A kind whose probabilities are a softmax of the logits over the classes or choices of an example.

    Dividing them by a temperature changes the probabilities but no prediction (Guo et al. 2017, arXiv:1706.04599).
    """

    def right_class(self, targets: Numbers) -> NDArray[np.int64]:
        """Return (N,), the index of the right class or choice of each example, from encoded targets."""


@runtime_checkable
class Scales(Protocol):
    """A kind that encodes targets in the scale of the training targets, a setting that `resolve` derives."""

    scales: Literal[True]


@runtime_checkable
class AsksPassages(Protocol):
    """A kind whose examples are questions about passages: a row for "no answer", then one per word."""

    longest: int  # maximum number of words in an answer


@runtime_checkable
class FindsTexts(Protocol):
    """A kind whose answers are spans of the input: a span can be written as text, and a text be located as a span."""

    def as_text(self, target: Any) -> str:
        """Return the first right answer of a target; "" for no answer."""

    def place_of(self, target: Any) -> tuple[int, int] | None:
        """Return the first and the last word of the first right answer of a target; None for no answer."""

    def may_be_silent(self, task: Task) -> bool:
        """Return whether an example of this task may have no answer."""

    def found(self, texts: Sequence[str], examples: Sequence[Example]) -> list[tuple[tuple[int, int], float] | None]:
        """Locate each text in its example: return its first and last word, and 1.0.

        If it does not occur, return the most similar span and its similarity below 1; None if nothing is similar.
        """

    def likely(
        self,
        spans: Sequence[tuple[int, int] | None],
        chances: Sequence[float],
        silent: Sequence[float] | None,
        examples: Sequence[Example],
    ) -> Numbers:
        """Return logits that predict the span of each example, None for "no answer".

        `chances` (N,) are the log-probabilities of the spans' texts, `silent` (N,) those of "no answer"; None if every
        example has an answer.
        """

    def answered(self, logits: Numbers, examples: Sequence[Example], task: Task) -> list[str]:
        """Return the text that the logits predict for each example, as it is in the input; "" for no answer."""


@runtime_checkable
class SettlesTogether(Protocol):
    """A kind that sees all targets of a data set before it settles one: the meaning of a tag depends on the others."""

    rewrites: str  # the data report's name for targets that `settle` rewrites; "" for none

    def having_seen(self, targets: Collection[str], task: Task) -> tuple[Kind, Task]:
        """Return the kind that settles targets with these labels, and the task with its labels rewritten alike."""


class TrainingLoss(Protocol):
    """The loss that a network is trained with: its kind's, or one with class weights or a teacher's targets."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of (B, C) logits and targets, a scalar: the mean over B."""

    def weight(self, targets: Tensor) -> float:
        """Return the count that the loss averages over."""

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (C,) logits of the best constant prediction."""


@runtime_checkable
class LearnsFeatures(Protocol):
    """A `TrainingLoss` that also compares the input of the head with that of a teacher's head (Romero et al. 2015)."""

    def loss_of_features(self, pooled: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of (B, P), added to that of the logits: a scalar, the mean over B."""


@runtime_checkable
class LearnsFromLogits(Protocol):
    """A kind whose logits can be learnt from those of another model, its teacher (Hinton et al. 2015)."""

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Compute the loss of (B, C) logits towards those of the teacher (B, C), a scalar: the mean over B.

        Its gradient is scaled to the size of that of `Kind.loss` at any temperature.
        """


def tags_words(kind: Kind) -> bool:
    """Return whether each word has a target of its own, and is not only a candidate for the answer to a question."""
    return kind.per_word and not isinstance(kind, AsksPassages)


@runtime_checkable
class OfChoices(Protocol):
    """A kind whose examples have a text and `choices`, and a row per choice."""

    per_choice: Literal[True]


@runtime_checkable
class OwnOutputs(Protocol):
    """A kind whose outputs are not logits but arrays (N, …) of its own dtype, such as texts with log-probabilities.

    `Fitted.logits` returns them, `predictions` and `decode` take them, and `constant` returns one of them, (1,). Files
    store their `tolist`, which is JSON, in the place of logits. An answer's "probability" is its confidence. The kind
    has no head and no loss, and only methods that name it fit its tasks (`core.method.unfit`).
    """

    def from_lists(self, rows: Sequence[Any]) -> Numbers:
        """Convert the `tolist` of outputs from JSON. Raises `ValueError` or `TypeError` for anything else."""

    def difference(self, found: Numbers, expected: Numbers) -> float:
        """Return the difference of two outputs for the same examples: 0 if equal, infinite if a prediction differs.

        A self-test allows what it allows for logits between -1 and 1, unless the `Fitted` is a `ReadsBack`.
        """


@runtime_checkable
class WritesTexts(Protocol):
    """A kind whose targets are texts: a tuple of references for each example, of which the first is trained on."""

    writes: Literal[True]


@runtime_checkable
class ScoresByInputs(Protocol):
    """A kind whose default metrics depend on the inputs too."""

    def metrics_for(self, inputs: Sequence[Mapping[str, Any]], targets: Sequence[Any]) -> tuple[str, ...]:
        """Return the metrics of a task that names none, from its training rows, the headline first."""


@runtime_checkable
class NamesMistakes(Protocol):
    """A kind that says in which way an answer is wrong; tables of confusions and of classes count these outcomes."""

    right_means: str  # when an outcome counts as right, for people

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return the target of an example in the form of an answer of `decode`, without probabilities."""

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Format an answer in a few words, without probabilities."""

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Compare the target, as `expected` returns it, with an answer; the example is right if all outcomes are."""

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the names that outcomes have, in the order of a table; others come last."""


def outputs_from(kind: Kind | None, rows: Sequence[Any]) -> Numbers:
    """Convert outputs from JSON: logits, or the arrays of a kind with `OwnOutputs`."""
    return kind.from_lists(rows) if isinstance(kind, OwnOutputs) else from_lists(rows)


@runtime_checkable
class ChoosesThresholds(Protocol):
    """A kind whose predictions depend on thresholds, chosen on validation in the same way for every method."""

    def shift(self, logits: Numbers, targets: Numbers, task: Task) -> NDArray[np.float64] | None:
        """Return the shift (C,) of all logits that makes 0 the best threshold for these targets; None for no shift.

        If examples have several rows, it is added to the first row of each: its "none of them".
        """
