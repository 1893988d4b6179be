"""Coverage and precision of a module that abstains, counted over the labelled rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from graftwork.core.kind import Kind, SharesProbability
from graftwork.core.method import Logits
from graftwork.core.ragged import Numbers
from graftwork.errors import ConfigError
from graftwork.module.abstaining import ANSWER_ALL, Abstaining, area_under_risk
from graftwork.module.calibration import ClassRows, temperature_of
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds


class Coverage:
    """The probabilities of a module's predictions, and whether they are right, collected in windows of rows."""

    def __init__(self, module: TaskModule, abstaining: Abstaining):
        """Choose the threshold. Raises `ConfigError` for a kind without one right class or choice."""
        if abstaining != ANSWER_ALL and not isinstance(kinds.get(module.task.kind), SharesProbability):
            raise ConfigError(
                f"tasks of kind {module.task.kind} have no coverage: it needs one right class or choice for each row",
                do="score it without a threshold",
            )
        self._threshold = abstaining.threshold(module.description)
        self._temperature = temperature_of(module.description)
        self._sure: list[Any] = [np.zeros(0)]
        self._right: list[Any] = [np.zeros(0, bool)]

    def count(self, kind: Kind, logits: Logits, targets: Numbers) -> None:
        """Add the rows of a window, with logits (N, C), ragged for choices, and encoded targets."""
        if self._threshold is not None and isinstance(kind, SharesProbability):
            rows = ClassRows.of(kind, logits, targets)
            self._sure.append(rows.surest(self._temperature))
            self._right.append(rows.hits)

    def as_json(self) -> dict[str, Any]:
        """Return the threshold, the coverage, the precision (null if nothing is answered) and the area under the
        risk-coverage curve, as JSON; {} without a threshold."""
        if self._threshold is None:
            return {}
        sure, right = np.concatenate(self._sure), np.concatenate(self._right)
        answered = sure >= self._threshold.least
        return {
            "abstaining": {
                "below": self._threshold.least,
                "coverage": float(answered.mean()),
                "precision": float(right[answered].mean()) if answered.any() else None,
                "answered": int(answered.sum()),
                "right": int(right[answered].sum()),
                "area_under_risk": area_under_risk(sure, right),
            }
        }
