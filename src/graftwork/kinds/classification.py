"""Classification: one label per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.example import Example
from graftwork.core.kind_settings import IN_QUESTION
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.data.readers.label_tables import COSTS, WEIGHED
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
from graftwork.targets.label_costs import cost_matrix, require_costs, require_weights
from graftwork.targets.labels import label_indices, label_sentence, positive_label, require_label, resolve_labels
from graftwork.targets.pooled_kind import PooledKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

METRICS = ("accuracy", "macro_f1")
METRICS_OF_TWO = (*METRICS, "f1", "matthews")


@dataclass(frozen=True)
class ClassificationSettings:
    """The settings of classification."""

    positive: str | None = field(default=None, metadata=IN_QUESTION)
    # the class that f1 is of; None: the rarer one of two
    class_weights: Literal["balanced"] | Mapping[str, float] | None = field(default=None, metadata=WEIGHED)
    # weights in the training loss: balanced, or a file with the columns label and weight; None: all count alike
    costs: Mapping[str, Mapping[str, float]] | None = field(default=None, metadata=COSTS)
    # file of what answers cost: a row for each true label, a column for each answer; None: every mistake costs the same


class Classification(PooledKind):
    """Targets are str, encoded as (N,) int64 classes; a logit per class; trained by cross entropy."""

    one_class: Literal[True] = True
    settings: type[Any] = ClassificationSettings
    has_labels = True
    right_means = "the class of the target"

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> str:
        """Return the label unchanged; a list of one label, as annotation tools write it, is that label."""
        if isinstance(text, tuple) and len(text) == 1:
            text = text[0]
        if isinstance(text, tuple):
            raise DataError(
                "a list of labels, but in a classification an example has one label",
                where=where,
                got=clip(", ".join(text)) if text else "an empty list",
                expected="a string",
                do="write one label, or use --kind multilabel",
            )
        require_label(text, task, where)
        return text

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in labels, the positive class and metrics. Raises `DataError` for fewer than two classes."""
        labels, counts = resolve_labels(task, targets), Counter(targets)
        if len(counts) < 2:
            raise DataError(
                "all rows have the same label: there is nothing to learn",
                where=str(task.data),
                got=", ".join(f"{clip(label)} in {rows:,} rows" for label, rows in counts.items()) or "no rows",
                expected="two classes or more",
                do="add rows of another class: where only one is known, some hundred of whatever else may come; or "
                "choose another column with --label",
            )
        require_weights(task, labels)
        require_costs(task, labels)
        metrics = task.metrics or (METRICS_OF_TWO if len(labels) == 2 else METRICS)
        if task.settings.costs is not None and not task.metrics:
            metrics = ("saved_cost", *metrics)
        return task.resolved(labels=labels, positive=positive_label(task, labels, counts), metrics=metrics)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return the labels themselves."""
        return list(targets)

    def encode(self, targets: Sequence[Any], task: Task) -> NDArray[np.generic]:
        """Return (N,) int64 classes. Raises `DataError` naming a label that the task does not have."""
        import numpy as np

        indices = label_indices(task)
        for target in targets:
            if target not in indices:
                require_label(target, task, "")
        return np.array([indices[target] for target in targets], dtype=np.int64)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of (B, C) logits and (B,) classes, mean over B, in nats."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, targets)

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Divergence of the class probabilities (B, C) at a temperature, mean over B, in nats."""
        from graftwork.nn.soft_targets import softmax_divergence

        return softmax_divergence(logits, teacher, temperature)

    def constant(self, targets: NDArray[np.generic], task: Task) -> NDArray[np.float64]:
        """Return (C,) log shares of the classes."""
        import numpy as np

        counts = np.bincount(targets.astype(np.int64), minlength=self.outputs(task))
        return np.asarray(np.log(np.maximum(counts / max(1, len(targets)), 1e-9)))

    def right_class(self, targets: NDArray[np.generic]) -> NDArray[np.int64]:
        """Return the classes (N,) themselves."""
        return targets.astype("int64")

    def predictions(self, logits: NDArray[np.float64], task: Task) -> NDArray[np.generic]:
        """(B, C) -> (B,) class of the highest logit, the first of ties; for a task with costs, the class of least
        expected cost under the softmax of the logits (Elkan 2001)."""
        import numpy as np

        if task.settings.costs is None:
            return np.asarray(logits.argmax(axis=1), dtype=np.int64)
        return np.asarray(_expected_costs(_shares(logits), task).argmin(axis=1), dtype=np.int64)

    def decode(self, logits: NDArray[np.float64], task: Task, examples: Sequence[Example] = ()) -> list[dict[str, Any]]:
        """(B, C) -> `{"label": …, "probabilities": {label: probability}}` per example; for a task with costs also the
        `expected_cost` of the label."""
        shares, chosen = _shares(logits), self.predictions(logits, task).tolist()
        answers: list[dict[str, Any]] = [
            {"label": task.labels[index], "probabilities": dict(zip(task.labels, row.tolist(), strict=True))}
            for index, row in zip(chosen, shares, strict=True)
        ]
        if task.settings.costs is not None:
            for answer, index, row in zip(answers, chosen, _expected_costs(shares, task), strict=True):
                answer["expected_cost"] = float(row[index])
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the label, and the three most probable ones; for a task with costs also the expected cost."""
        told = label_sentence(answer["label"], answer["probabilities"])
        return told if "expected_cost" not in answer else f"{told}   expected cost {answer['expected_cost']:.3g}"

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"label": …}`."""
        return {"label": example.target}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the label."""
        return str(answer["label"])

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return one outcome: the two labels."""
        return [Outcome(expected["label"], answer["label"], expected["label"] == answer["label"])]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the labels."""
        return task.labels


def _shares(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax of (B, C) logits."""
    import numpy as np

    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def _expected_costs(shares: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
    """Return what each answer is expected to cost, (B, C), under probabilities (B, C) of the true label."""
    found: NDArray[np.float64] = shares @ cost_matrix(task)
    return found


kinds.register("classification")(Classification())
