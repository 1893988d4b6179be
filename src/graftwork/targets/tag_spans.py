"""Spans in tags: B-TYPE begins one, I-TYPE continues it, O is outside (Ramshaw & Marcus 1995, arXiv:cmp-lg/9505040).

An I-TYPE with no word of that type before it is read in two ways: in strict mode it is part of no span, and in the
script of the CoNLL shared tasks it begins one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graftwork.core.metric import unscorable
from graftwork.core.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graftwork.core.ragged import Numbers, Ragged

OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"


@dataclass(frozen=True)
class Spans:
    """The spans of all examples, in order, as positions in their concatenated words."""

    start: NDArray[np.int64]  # first word
    end: NDArray[np.int64]  # end word, exclusive
    type: NDArray[np.int64]  # a number per type, the same in every call with the same labels


def marks_spans(labels: Sequence[str]) -> bool:
    """Return whether these tags are O, B-TYPE and I-TYPE, rather than one name per word."""
    prefixed = [label.startswith((BEGIN, INSIDE)) for label in labels]
    return any(prefixed) and all(yes or label == OUTSIDE for label, yes in zip(labels, prefixed, strict=True))


def mend_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Replace I- by B- wherever it continues no span."""
    before, whole = OUTSIDE, []
    for tag in tags:
        stray = tag.startswith(INSIDE) and before[2:] != tag[2:]
        before = BEGIN + tag[2:] if stray else tag
        whole.append(before)
    return tuple(whole)


def spans_of(tags: Ragged, labels: Sequence[str], strict: bool) -> Spans:
    """Return the spans of encoded `tags`, read strictly or like the CoNLL script."""
    import numpy as np

    types = {label[2:]: number for number, label in enumerate(labels) if label != OUTSIDE}
    type_of = np.array([-1 if label == OUTSIDE else types[label[2:]] for label in labels])
    begins = np.array([label.startswith(BEGIN) for label in labels])[tags.flat]  # (W,)
    inside = np.array([label.startswith(INSIDE) for label in labels])[tags.flat]
    kind = type_of[tags.flat]
    same = np.zeros(len(kind), dtype=bool)  # True if the word before, of the same example, has the same type
    same[1:] = (kind[1:] == kind[:-1]) & (tags.owners[1:] == tags.owners[:-1])
    continues = inside & same
    start = np.flatnonzero(begins if strict else begins | (inside & ~continues))
    stops = np.append(np.flatnonzero(~continues), len(kind))
    return Spans(start, stops[np.searchsorted(stops, start, side="right")], kind[start])


def span_counts(targets: Numbers, predictions: Numbers, task: Task, metric: str, strict: bool) -> NDArray[np.float64]:
    """Return (N, 2): twice the correct spans (borders and type), and the sum of true and predicted spans.

    Raises `ConfigError` naming the `metric` where the task's tags mark no spans.
    """
    import numpy as np

    from graftwork.core.ragged import Ragged

    if not (isinstance(targets, Ragged) and isinstance(predictions, Ragged) and marks_spans(task.labels)):
        raise unscorable(metric, "spans, tagged B-TYPE, I-TYPE and O", task)
    true, found = (spans_of(tags, task.labels, strict) for tags in (targets, predictions))
    right = np.isin(_keys(true, len(targets.flat), task), _keys(found, len(targets.flat), task))
    owners, examples = targets.owners, len(targets)
    hits, trues, founds = (
        np.bincount(owners[starts], minlength=examples) for starts in (true.start[right], true.start, found.start)
    )
    return np.stack([2.0 * hits, trues + founds], axis=1).astype(np.float64)


def _keys(spans: Spans, words: int, task: Task) -> NDArray[np.int64]:
    """Return a number per span, equal for equal spans."""
    return (spans.start * (words + 1) + spans.end) * len(task.labels) + spans.type
