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
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
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


class Classification(PooledKind):
    """Targets are str, encoded as (N,) int64 classes; a logit per class; trained by cross entropy."""

    per_word = False
    one_class: Literal[True] = True
    settings: type[Any] = ClassificationSettings
    has_labels = True
    mends = ""
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

    def settle(self, target: Any, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Any, int]:
        """Return the target unchanged, with no repairs: it does not depend on the inputs."""
        return target, 0

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in labels, the positive class and metrics. Raises `DataError` for fewer than two classes."""
        labels, counts = resolve_labels(task, targets), Counter(targets)
        if len(counts) < 2:
            raise DataError(
                "all rows have the same label: there is nothing to learn",
                where=str(task.data),
                got=", ".join(f"{clip(label)} in {rows:,} rows" for label, rows in counts.items()) or "no rows",
                expected="two classes or more",
                do="add rows of another class, or choose another column with --label",
            )
        metrics = task.metrics or (METRICS_OF_TWO if len(labels) == 2 else METRICS)
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
        """(B, C) -> (B,) class of the highest logit, the first of ties."""
        import numpy as np

        return np.asarray(logits.argmax(axis=1), dtype=np.int64)

    def decode(self, logits: NDArray[np.float64], task: Task, examples: Sequence[Example] = ()) -> list[dict[str, Any]]:
        """(B, C) -> `{"label": …, "probabilities": {label: probability}}` per example."""
        import numpy as np

        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = exponentials / exponentials.sum(axis=1, keepdims=True)  # (B, C)
        return [
            {"label": task.labels[index], "probabilities": dict(zip(task.labels, row.tolist(), strict=True))}
            for index, row in zip(logits.argmax(axis=1), shares, strict=True)
        ]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the label, and the three most probable ones."""
        return label_sentence(answer["label"], answer["probabilities"])

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


kinds.register("classification")(Classification())
