"""A kind: the conversion of one type of task between targets, numbers and answers."""

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

    A kind whose examples have `words` has an answer per word: below, read W for N and B.
    """

    per_word: bool  # True: each word of an example has an answer; False: each example has one
    settings: type[Any]  # a frozen dataclass: the settings of its tasks beside those of every task, with defaults
    has_labels: bool  # its answers are among `Task.labels`, which a task may list
    mends: str  # the data report's name for the repairs that `settle` makes

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
        """Return (C,) logits of the best constant answer: the majority class, or the mean.

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
    """A kind whose logits share out one probability among the classes or choices of an example, by a softmax.

    Divided by a temperature, they give other probabilities and the same answers (Guo et al. 2017).
    """

    def right_class(self, targets: Numbers) -> NDArray[np.int64]:
        """Return (N,), the number of the right class or choice of each example, of encoded targets."""


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
    """A kind whose answers are in what is read: each can be written as a text, and a text be found again there."""

    def as_text(self, target: Any) -> str:
        """Return the first right answer of a target; "" for no answer."""

    def place_of(self, target: Any) -> tuple[int, int] | None:
        """Return the first and the last word of the first right answer of a target; None for no answer."""

    def may_be_silent(self, task: Task) -> bool:
        """Return whether an example of this task may have no answer."""

    def found(self, texts: Sequence[str], examples: Sequence[Example]) -> list[tuple[tuple[int, int], float] | None]:
        """Return the first and the last word where the text of each example is, with 1.

        Where it stands nowhere, they are those of what is most alike, with a likeness below 1; None where nothing is.
        """

    def likely(
        self,
        spans: Sequence[tuple[int, int] | None],
        chances: Sequence[float],
        silent: Sequence[float] | None,
        examples: Sequence[Example],
    ) -> Numbers:
        """Return the logits that give each example its span, None for none, with the log-probability of its text.

        `silent` are the log-probabilities of no answer; None where every example has one.
        """

    def answered(self, logits: Numbers, examples: Sequence[Example], task: Task) -> list[str]:
        """Return the text that each of these logits predicts, as it is in what is read; "" for no answer."""


@runtime_checkable
class SettlesTogether(Protocol):
    """A kind that sees all targets of a data set before it settles one: what a tag says depends on the others."""

    rewrites: str  # the data report's name for what `settle` writes in another way than the file; "" for none

    def having_seen(self, targets: Collection[str], task: Task) -> tuple[Kind, Task]:
        """Return the kind that settles targets with these labels, and the task with its labels written as it does."""


class TrainingLoss(Protocol):
    """The loss that a network with logits is trained with: that of its kind, or one with further targets."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of (B, C) logits and targets, a scalar: the mean over B."""

    def weight(self, targets: Tensor) -> float:
        """Return the count that the loss averages over."""

    def constant(self, targets: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (C,) logits of the best constant answer."""


@runtime_checkable
class LearnsFeatures(Protocol):
    """A `TrainingLoss` that also compares what the head reads with what a teacher's head reads (Romero et al. 2015)."""

    def loss_of_features(self, pooled: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss of (B, P), added to that of the logits: a scalar, the mean over B."""


@runtime_checkable
class LearnsFromLogits(Protocol):
    """A kind whose logits can be learnt from those of another model, its teacher (Hinton et al. 2015)."""

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Compute the loss of (B, C) logits towards those of the teacher (B, C), a scalar: the mean over B.

        At any temperature its gradient is of the size of that of `Kind.loss`.
        """


def tags_words(kind: Kind) -> bool:
    """Return whether each word has an answer of its own, as opposed to a share in the answer to a question."""
    return kind.per_word and not isinstance(kind, AsksPassages)


@runtime_checkable
class OfChoices(Protocol):
    """A kind whose examples have a text and `choices`, and a row per choice."""

    per_choice: Literal[True]


@runtime_checkable
class OwnOutputs(Protocol):
    """A kind whose outputs are no logits: arrays (N, …) of its own dtype, such as texts with their log-probabilities.

    `Fitted.logits` returns them, `predictions` and `decode` take them, `constant` returns one of them (1,), and files
    hold their `tolist`, which is JSON, where they hold logits of other kinds. An answer's "probability" is its
    confidence. The kind has no head and no loss, and only methods that name it fit its tasks (`core.method.unfit`).
    """

    def from_lists(self, rows: Sequence[Any]) -> Numbers:
        """Convert the `tolist` of outputs from JSON. Raises `ValueError` or `TypeError` for anything else."""

    def difference(self, found: Numbers, expected: Numbers) -> float:
        """Return how far outputs of the same examples are apart: 0 if equal, infinite if an answer is another.

        The self-test of a module allows what it allows of logits between -1 and 1, unless what was fitted `ReadsBack`.
        """


@runtime_checkable
class WritesTexts(Protocol):
    """A kind whose targets are texts: a tuple of references for each example, of which the first is trained on."""

    writes: Literal[True]


@runtime_checkable
class ScoresByInputs(Protocol):
    """A kind whose default metrics depend on what is read too."""

    def metrics_for(self, inputs: Sequence[Mapping[str, Any]], targets: Sequence[Any]) -> tuple[str, ...]:
        """Return the metrics of a task that names none, from its training rows, the headline first."""


@runtime_checkable
class NamesMistakes(Protocol):
    """A kind that says in which way an answer is wrong: what confusions, and the rows of a class, are counted by."""

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
    """Convert outputs from JSON: logits, or those of the kind's own."""
    return kind.from_lists(rows) if isinstance(kind, OwnOutputs) else from_lists(rows)


@runtime_checkable
class ChoosesThresholds(Protocol):
    """A kind whose answers depend on thresholds, which are chosen on validation in the same way for every method."""

    def shift(self, logits: Numbers, targets: Numbers, task: Task) -> NDArray[np.float64] | None:
        """Return the shift (C,) to add to all logits so that the threshold is 0, chosen on these; None for no shift.

        If examples have several rows, it is added to the first row of each: its "none of them".
        """
