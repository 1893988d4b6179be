"""Multilabel classification: any number of labels per example, none included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.example import Example
from graftwork.core.kind_settings import IN_QUESTION
from graftwork.core.outcome import MISSED, NOTHING, Outcome
from graftwork.core.task import Task
from graftwork.data.readers.label_tables import WEIGHED
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
from graftwork.targets.label_costs import require_weights
from graftwork.targets.labels import label_indices, label_sentence, require_label, resolve_labels
from graftwork.targets.pooled_kind import PooledKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

SEPARATOR = "|"
METRICS = ("macro_f1", "accuracy")
CHOSEN = "validation"
ENOUGH_TO_CHOOSE = 10  # least validation rows of a label with a threshold of its own
FREQUENT = 10  # least rows of a combination of labels that is a stratum of its own


MARKS = frozenset(("0", "1", "0.0", "1.0", "false", "true", "False", "True"))  # of a vector with a place per label
_PYTHON_LIST = re.compile(r"\s*[\[(]\s*(?:(['\"]).*\1\s*,?\s*)?[\])]\s*")


@dataclass(frozen=True)
class MultilabelSettings:
    """The settings of multilabel classification."""

    thresholds: Literal["validation", "half"] | None = field(default=None, metadata=IN_QUESTION)
    # chosen on validation for the best F1, or half: a probability of 0.5; None: validation
    class_weights: Literal["balanced"] | Mapping[str, float] | None = field(default=None, metadata=WEIGHED)
    # weights in the training loss: balanced, or a file with the columns label and weight; None: all count alike


class Multilabel(PooledKind):
    """Targets are sorted tuples of str, encoded as (N, C) float32 0/1; a binary logit per label."""

    settings: type[Any] = MultilabelSettings
    has_labels = True
    right_means = "exactly the labels of the target"

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[str, ...]:
        """Parse `a|b`, a list, or nothing for an example without labels. White space is part of a label's name."""
        labels = text if isinstance(text, tuple) else tuple(text.split(SEPARATOR)) if text else ()
        if isinstance(text, str) and _PYTHON_LIST.fullmatch(text):
            raise DataError(
                "the labels are a list written as text",
                where=where,
                got=clip(text),
                expected=f"labels separated by {SEPARATOR!r}",
                do="write billing|urgent: in Python '|'.join(labels); or a list in JSONL",
            )
        if len(set(labels)) < len(labels) and MARKS.issuperset(labels):
            raise _marks(labels, where)
        for label in labels:
            require_label(label, task, where)
        if len(set(labels)) < len(labels):
            raise DataError(
                "a label occurs twice",
                where=where,
                got=clip(SEPARATOR.join(labels)),
                expected="each label once",
                do="remove one",
            )
        return tuple(sorted(labels))

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in labels and metrics. Raises `DataError` when no row has a label."""
        if not any(targets):
            raise DataError(
                "no row has a label",
                where=str(task.data),
                expected=f"labels separated by {SEPARATOR!r}, or a list in JSONL",
                do="choose another column with --label",
            )
        if all(len(target) == 2 and MARKS.issuperset(target) for target in targets):
            raise _marks(targets[0], str(task.data))
        labels = resolve_labels(task, targets)
        require_weights(task, labels)
        return task.resolved(
            labels=labels, metrics=task.metrics or METRICS, thresholds=task.settings.thresholds or CHOSEN
        )

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return each row's combination of labels if ten rows or more have it, else the rarest of its labels."""
        combinations = Counter(targets)
        rows = Counter(label for target in targets for label in target)
        return [
            target if combinations[target] >= FREQUENT or not target else min(target, key=lambda x: (rows[x], x))
            for target in targets
        ]

    def encode(self, targets: Sequence[Any], task: Task) -> NDArray[np.generic]:
        """Return (N, C) float32, 1 where an example has the label. Raises `DataError` naming an unknown label."""
        import numpy as np

        indices = label_indices(task)
        encoded = np.zeros((len(targets), len(indices)), dtype=np.float32)
        for row, target in enumerate(targets):
            for label in target:
                if label not in indices:
                    require_label(label, task, "")
                encoded[row, indices[label]] = 1
        return encoded

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Binary cross entropy of (B, C) logits and (B, C) labels, mean over both, in nats."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        return binary_cross_entropy_with_logits(logits, targets)

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Divergence of the label probabilities (B, C) at a temperature, mean over both, in nats."""
        from graftwork.nn.soft_targets import sigmoid_divergence

        return sigmoid_divergence(logits, teacher, temperature)

    def constant(self, targets: NDArray[np.generic], task: Task) -> NDArray[np.float64]:
        """Return (C,) log odds of the labels."""
        import numpy as np

        share = np.clip(targets.astype(np.float64).mean(axis=0), 1e-9, 1 - 1e-9)
        return np.asarray(np.log(share / (1 - share)))

    def predictions(self, logits: NDArray[np.float64], task: Task) -> NDArray[np.generic]:
        """(B, C) -> (B, C) float32, 1 where the probability is above 0.5."""
        import numpy as np

        return (logits > 0).astype(np.float32)

    def shift(
        self, logits: NDArray[np.float64], targets: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64] | None:
        """Return (C,) negated thresholds of highest F1 on these; None where the task uses a probability of 0.5.

        A label of ten rows or more gets its own threshold, the others one that is best for all labels together.
        """
        import numpy as np

        if task.settings.thresholds != CHOSEN:
            return None
        wanted = np.asarray(targets, dtype=np.float64) > 0  # (N, C)
        if not wanted.any():
            return None
        together = best_threshold(logits.ravel(), wanted.ravel())
        own = [
            best_threshold(logits[:, label], wanted[:, label])
            if wanted[:, label].sum() >= ENOUGH_TO_CHOOSE
            else together
            for label in range(logits.shape[1])
        ]
        return -np.array(own, dtype=np.float64)

    def decode(self, logits: NDArray[np.float64], task: Task, examples: Sequence[Example] = ()) -> list[dict[str, Any]]:
        """(B, C) -> `{"label": [labels above 0.5], "probabilities": {label: probability}}` per example."""
        from scipy.special import expit

        return [
            {
                "label": [label for label, logit in zip(task.labels, row, strict=True) if logit > 0],
                "probabilities": dict(zip(task.labels, expit(row).tolist(), strict=True)),
            }
            for row in logits
        ]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the labels, and the three most probable ones."""
        return label_sentence(self.brief(answer), answer["probabilities"])

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"label": [labels]}`."""
        return {"label": list(example.target)}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the labels, separated by |."""
        return " | ".join(answer["label"]) or "(none)"

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return an outcome for every label of target or answer: in both, missed, or predicted by mistake."""
        wanted, found = set(expected["label"]), set(answer["label"])
        both = [Outcome(label, label, True) for label in sorted(wanted & found)]
        missed = [Outcome(label, MISSED, False) for label in sorted(wanted - found)]
        return [*both, *missed, *(Outcome(NOTHING, label, False) for label in sorted(found - wanted))]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the labels."""
        return task.labels


def best_threshold(logits: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    """Return the threshold between (N,) logits with the highest F1; of equally good ones that nearest to 0.

    `wanted` (N,) has at least one True.
    """
    import numpy as np

    order = np.argsort(-logits, kind="stable")
    values = logits[order]
    hits = np.cumsum(wanted[order])
    f1 = 2.0 * hits / (np.arange(1, len(values) + 1) + wanted.sum())  # with the first 1, 2, … predicted positive
    ends = np.append(values[1:] < values[:-1], True)  # equal logits are predicted alike
    below = np.append(values[1:], values[-1] - 1.0)
    cuts = (values + below) / 2
    open_to_zero = (below < 0) & (values > 0)
    cuts = np.where(open_to_zero, 0.0, cuts)
    best = np.flatnonzero(ends & (f1 >= f1[ends].max() - 1e-12))
    return float(cuts[best[np.abs(cuts[best]).argmin()]])


def _marks(labels: Sequence[str], where: str) -> DataError:
    """Return the error of a target that is a vector of 0 and 1."""
    return DataError(
        "the list looks like a vector of 0 and 1, with a place for each label",
        where=where,
        got=clip(SEPARATOR.join(labels)),
        expected="the names of the labels that hold",
        do='write them: ["billing", "urgent"] in JSONL, billing|urgent in CSV',
    )


kinds.register("multilabel")(Multilabel())
