"""Regression: one number per example."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.example import Example
from graftwork.core.kind_settings import DERIVED
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
from graftwork.targets.labels import is_number
from graftwork.targets.pooled_kind import PooledKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

METRICS = ("pearson", "spearman")
STRATUM_ROWS = 10  # least rows of a stratum, which is at most a tenth of the rows


@dataclass(frozen=True)
class RegressionSettings:
    """The settings of regression."""

    scale: tuple[float, float] = field(default=(0.0, 1.0), metadata=DERIVED)  # mean and sd of the training targets


class Regression(PooledKind):
    """Targets are float, encoded as (N,) float32 standardised by the training targets; trained by squared error."""

    settings: type[Any] = RegressionSettings
    has_labels = False
    scales: Literal[True] = True
    right_means = "an error of at most half a standard deviation of the training targets"

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> float:
        """Parse a finite decimal number such as `3`, `-0.5` or `1e-3`. Raises `DataError` for anything else."""
        if isinstance(text, tuple) or not is_number(text):
            decimal_comma = "," in text and is_number(str(text).replace(",", ".", 1))
            raise DataError(
                "the target is not a finite number",
                where=where,
                got=clip(str(text) if isinstance(text, tuple) else text),
                expected="a number such as 3, -0.5 or 1e-3",
                do="write a decimal point instead of the comma"
                if decimal_comma
                else "remove the row or mend its target",
            )
        return float(text)

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in scale and metrics. Raises `DataError` for constant targets."""
        import numpy as np

        mean, sd = float(np.mean(targets)), float(np.std(targets))
        if min(targets) == max(targets) or not math.isfinite(sd) or sd == 0:
            raise DataError(
                "the targets have no usable spread: there is nothing to learn",
                where=str(task.data),
                got=f"numbers from {min(targets)!r} to {max(targets)!r}",
                do="choose another column with --label",
            )
        return task.resolved(scale=(mean, sd), metrics=task.metrics or METRICS)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return each target's decile; fewer and larger parts below a hundred rows."""
        import numpy as np

        parts = max(1, min(10, len(targets) // STRATUM_ROWS))
        edges = np.quantile(targets, np.arange(1, parts) / parts)
        return list(np.searchsorted(edges, targets, side="right").tolist())

    def encode(self, targets: Sequence[Any], task: Task) -> NDArray[np.generic]:
        """Return (N,) float32, (target - mean) / sd."""
        import numpy as np

        mean, sd = task.settings.scale
        return np.asarray((np.asarray(targets, dtype=np.float64) - mean) / sd, dtype=np.float32)

    def outputs(self, task: Task) -> int:
        """Return 1."""
        return 1

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean squared error of (B, 1) logits and (B,) targets, both standardised."""
        from torch.nn.functional import mse_loss

        return mse_loss(logits.squeeze(-1), targets)

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Mean squared difference from the teacher's numbers, (B, 1) each; numbers have no temperature."""
        from torch.nn.functional import mse_loss

        return mse_loss(logits, teacher)

    def constant(self, targets: NDArray[np.generic], task: Task) -> NDArray[np.float64]:
        """Return (1,) mean, standardised."""
        import numpy as np

        return np.asarray(targets.astype(np.float64).mean(keepdims=True))

    def predictions(self, logits: NDArray[np.float64], task: Task) -> NDArray[np.generic]:
        """(B, 1) -> (B,) standardised, as the encoded targets are."""
        return logits[:, 0]

    def decode(self, logits: NDArray[np.float64], task: Task, examples: Sequence[Example] = ()) -> list[dict[str, Any]]:
        """(B, 1) -> `{"value": …}` per example, in the file's units."""
        mean, sd = task.settings.scale
        return [{"value": value} for value in (logits[:, 0] * sd + mean).tolist()]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the number with four decimals."""
        return f"{answer['value']:.4f}"

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"value": …}`."""
        return {"value": example.target}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Format the number with four digits."""
        return f"{answer['value']:.4g}"

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return one outcome: the bands of the target and of the error; `off` is the error in standard deviations."""
        mean, sd = task.settings.scale
        bands, errors = _bands(mean, sd), _errors(sd)
        band = min(len(bands) - 1, max(0, round((expected["value"] - mean) / sd) + len(bands) // 2))
        off = (answer["value"] - expected["value"]) / sd
        far = (abs(off) > 0.5) + (abs(off) > 1)
        return [Outcome(bands[band], errors[2 + (far if off > 0 else -far)], far == 0, off=abs(off))]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the bands of targets, then those of errors, each from low to high."""
        return [*_bands(*task.settings.scale), *_errors(task.settings.scale[1])]


def _bands(mean: float, sd: float) -> list[str]:
    """Return the names of five bands of targets, a standard deviation wide."""
    edges = [f"{mean + at * sd:.3g}" for at in (-1.5, -0.5, 0.5, 1.5)]
    return [f"below {edges[0]}", *(f"{a} to {b}" for a, b in pairwise(edges)), f"above {edges[-1]}"]


def _errors(sd: float) -> list[str]:
    """Return the names of five bands of errors, from far too low to far too high."""
    half, whole = f"{sd / 2:.3g}", f"{sd:.3g}"
    low, high = [[f"too {side} by {half} to {whole}", f"too {side} by more"] for side in ("low", "high")]
    return [*reversed(low), f"within {half}", *high]


kinds.register("regression")(Regression())
