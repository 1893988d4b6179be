"""A metric: a function of the mean of per-example statistics, so that a bootstrap is one matrix product."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graftwork.core.task import Task
from graftwork.errors import ConfigError, clip
from graftwork.registry import metrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graftwork.core.ragged import Numbers

MOST_LISTED = 10  # labels in a message
NORMAL_95 = 1.959964  # standard deviations on either side of the mean that hold 95 % of a normal distribution


class Metric(Protocol):
    """A metric; higher is better. `value(statistics(…).mean(0))` is the score."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[Any]:
        """Compute (N, K) from encoded targets and predictions of N examples: float64, or int8 for integers up to 127.

        Their means are float64 either way; convert them before adding or multiplying.
        """

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map (…, K) means over a sample of examples to (…) scores; undefined ones are 0, as in scikit-learn."""


@runtime_checkable
class BelowZero(Protocol):
    """A metric whose scores can be negative."""

    least: float  # the lowest possible score


@runtime_checkable
class OfSample(Protocol):
    """A metric that is not a function of mean statistics: it is computed anew on every draw of examples."""

    def answers(self, statistics: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the targets and predictions that `statistics` (N, K) hold, each (N, …)."""

    def of_sample(self, targets: NDArray[Any], predictions: NDArray[Any]) -> float:
        """Return the score of a sample."""


@runtime_checkable
class HasSignature(Protocol):
    """A metric of another library, whose scores are quoted with its signature."""

    def signature(self, targets: Numbers) -> str:
        """Return the signature of scores against these encoded targets."""


def signatures(names: Iterable[str], targets: Numbers) -> dict[str, str]:
    """Return the signature of each of these metrics that has one, by name."""
    signed = {name: found for name in names if isinstance(found := metrics.get(name), HasSignature)}
    return {name: metric.signature(targets) for name, metric in signed.items()}


def score(metric: Metric, targets: Numbers, predictions: Numbers, task: Task) -> float:
    """Return the score of one set of predictions."""
    return score_of(metric, metric.statistics(targets, predictions, task))


def score_of(metric: Metric, statistics: NDArray[Any]) -> float:
    """Return the score of N examples from their statistics (N, K)."""
    if isinstance(metric, OfSample):
        return metric.of_sample(*metric.answers(statistics))
    return float(metric.value(statistics.mean(axis=0, dtype=float)))


def drawn_scores(metric: OfSample, statistics: NDArray[Any], draws: Iterable[NDArray[Any]]) -> NDArray[np.float64]:
    """Return (B,) scores of B draws (N,) of examples with these statistics (N, K), without the warnings of each."""
    import warnings

    import numpy as np

    targets, predictions = metric.answers(statistics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([metric.of_sample(targets[drawn], predictions[drawn]) for drawn in draws])


def wilson(share: float, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of N examples (Wilson 1927, doi:10.2307/2276774)."""
    z = NORMAL_95**2 / of
    middle, spread = (share + z / 2) / (1 + z), (share * (1 - share) * z + z * z / 4) ** 0.5 / (1 + z)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def unscorable(metric: str, scores: str, task: Task) -> ConfigError:
    """Return the error for a metric that `scores` something other than the predictions of this task."""
    return ConfigError(
        f"the metric {metric!r} scores {scores}; the task's kind is {task.kind!r}",
        got=f"the labels {', '.join(map(clip, task.labels[:MOST_LISTED]))}" if task.labels else "",
        do="choose other --metrics or another --kind",
    )


def require_scorable(targets: Numbers, task: Task) -> None:
    """Raise `ConfigError` if a metric of the task can't score its encoded targets, naming all metrics that can."""
    for name in task.metrics:
        if refused := _refused(name, targets, task):
            able = [other for other in metrics.names() if not _refused(other, targets, task)]
            raise ConfigError(refused.what, got=refused.got, expected=", ".join(able), do=refused.do)
        if isinstance(metrics.get(name), OfSample):
            score(metrics.get(name), targets, targets, task)  # a function that fails does so before any run


def _refused(name: str, targets: Numbers, task: Task) -> ConfigError | None:
    try:
        metrics.get(name).statistics(targets, targets, task)
    except ConfigError as error:
        return error
    return None


@dataclass(frozen=True)
class Score:
    """The mean score over seeds, with its interval over seeds and examples. Fractions, not percentage points."""

    mean: float
    sd: float  # over seeds; 0 with one seed
    low: float  # 95 % confidence interval
    high: float
