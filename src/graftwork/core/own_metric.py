"""A function of a notebook or a script as a metric: `register_metric`."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Ragged
from graftwork.errors import ConfigError, clip
from graftwork.io.files import digest
from graftwork.registry import metrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graftwork.core.ragged import Numbers
    from graftwork.core.task import Task

Function = Callable[[Any, Any], float]
NUMBERS, TEXTS = 0, 1  # values of the first statistic, which says what the others hold


def register_metric(name: str, function: Function, *, higher_is_better: bool = True) -> str:
    """Register `function(y, y_hat)` as the metric `name`, for `metrics=[name]`; return the name.

    As for scikit-learn's metrics `y` and `y_hat` are the targets and the predictions of N examples: labels as they
    are in the file (N,), numbers in the file's units (N,), or 0 and 1 of a multilabel task (N, C). The function returns
    a fraction, at most 1; NaN counts as 0. With `higher_is_better=False` the score is its negative. Intervals come from
    the same bootstrap as for any metric: the function is called for every draw.

    Runs are made one after another in this process, because other processes do not know the function. Receipts record
    its source, or the name of a library's function; another function under the same name makes other runs.

    Raises `ConfigError` for the name of a metric of this package, and if `function` can't be called.
    """
    if not callable(function):
        raise ConfigError("a metric must be a function", got=clip(repr(function)), expected="function(y, y_hat)")
    sign = 1 if higher_is_better else -1
    source = identity(function) if higher_is_better else f"- {identity(function)}"
    metrics.register_own(name, OwnMetric(name, function, sign, source))
    return name


def identity(function: Any) -> str:
    """Return a string that identifies a function: a library function's name, or the source of a notebook's function."""
    if isinstance(function, functools.partial):
        given = [*map(repr, function.args), *(f"{key}={value!r}" for key, value in function.keywords.items())]
        return f"partial({', '.join([identity(function.func), *given])})"
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", type(function).__qualname__)
    if module != "__main__" and getattr(sys.modules.get(str(module)), name, None) is function:
        return f"{module}.{name}"
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return f"{name} {digest([code.co_code.hex(), repr(code.co_consts), code.co_names])}" if code else name


def require_own_metrics(question: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if a function that scored this `Task.question` is not registered in this process."""
    for name, source in question.get("own_metrics", {}).items():
        if name not in metrics.names():
            raise ConfigError(
                f"the run was scored by {name!r}, a function of a notebook that is not registered here",
                got=clip(source, 400),
                do=f"verify it in Python, after gw.register_metric({name!r}, …) with this function",
            )


@dataclass(frozen=True)
class OwnMetric:
    """Implements `OfSample` for a function."""

    name: str
    function: Function
    sign: int  # -1 where lower is better
    source: str  # its identity, for receipts

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Return (N, 1 + 2W): `NUMBERS` or `TEXTS`, then target and prediction in W values each: the code points of a
        label, a number in the file's units, or a 0 or 1 per label.

        Raises `ConfigError` for a task whose examples do not have one answer each.
        """
        import numpy as np

        if isinstance(targets, Ragged) or isinstance(predictions, Ragged) or not isinstance(targets, np.ndarray):
            raise unscorable(self.name, "one answer per example", task)
        pair = [np.asarray(targets), np.asarray(predictions)]
        if targets.ndim == 1 and task.labels and np.issubdtype(targets.dtype, np.integer):
            labels = np.array(task.labels)
            pair = [np.ascontiguousarray(labels[one]).view(np.uint32).reshape(len(one), -1) for one in pair]
            sort = TEXTS
        elif targets.ndim == 1 and hasattr(task.settings, "scale"):
            mean, sd = task.settings.scale
            pair, sort = [one.reshape(-1, 1) * sd + mean for one in pair], NUMBERS
        elif targets.ndim == 2:
            sort = NUMBERS
        else:
            raise unscorable(self.name, "one answer per example", task)
        return np.concatenate([np.full((len(targets), 1), sort), *pair], axis=1).astype(np.float64)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raise `TypeError`: the score is not a function of mean statistics."""
        raise TypeError(f"{self.name} is computed on examples: core.metric.score_of")

    def answers(self, statistics: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the targets and predictions that `statistics` (N, 1 + 2W) hold, each (N,), or (N, W) if multilabel."""
        import numpy as np

        width, sort = statistics.shape[1] // 2, statistics[0, 0]
        pair = [statistics[:, 1 : 1 + width], statistics[:, 1 + width :]]
        if sort == TEXTS:
            pair = [np.ascontiguousarray(one.astype(np.uint32)).view(f"U{width}")[:, 0] for one in pair]
        elif width == 1:
            pair = [one[:, 0] for one in pair]
        return pair[0], pair[1]

    def of_sample(self, targets: NDArray[Any], predictions: NDArray[Any]) -> float:
        """Return the score of a sample, 0 if not finite. Raises `ConfigError` if the function fails or exceeds 1."""
        try:
            value = self.sign * float(self.function(targets, predictions))
        except Exception as error:
            raise self._wrong(
                f"{type(error).__name__}: {error}", "a function(y, y_hat) that returns a number"
            ) from error
        if value > 1 + 1e-9:
            raise self._wrong(f"a score of {value:g}", "a fraction, at most 1; of an error, higher_is_better=False")
        return value if math.isfinite(value) else 0.0

    def _wrong(self, got: str, expected: str) -> ConfigError:
        return ConfigError(f"the function of the metric {self.name!r} gives no score", got=got, expected=expected)
