"""Warnings about the labels of a data set."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graftwork.core.task import Task, positive_of
from graftwork.data.checks.repeats import EXAMPLES
from graftwork.errors import clip
from graftwork.targets.tag_spans import marks_spans
from graftwork.units import OF_ONE_CLASS, several

RARE_ROWS = 10  # a class with fewer rows in train is rare
CUE_SHARE = 0.2
OUTSIDE = ("O", "0", "OUT", "OUTSIDE", "OTHER", "NONE", "_")  # names of the tag of words in no span, in upper case
NO_SPANS = (
    "words are scored one by one. To have spans scored, write each tag with its place, B-TYPE or I-TYPE, and O for none"
)
MOST_OUTSIDE = 0.5  # share of the words from which a tag of these names counts as outside
CLASSES_OF_NO = {  # (negative, positive class) in lower case: most tools compute f1 for the second
    ("0", "1"), ("-1", "1"), ("-1", "+1"), ("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"),
    ("neg", "pos"), ("negative", "positive"), ("off", "on"), ("0.0", "1.0"),
}  # fmt: skip
NO_LABEL = ("-1", "-", "?")  # labels of SNLI's rows without a gold label, on the hub and in the authors' files


def positive_class(task: Task, counts: Mapping[str, int]) -> dict[str, str] | None:
    """Return the class that f1 is computed for, and how it was chosen, as JSON; None without such a metric.

    `counts` maps each label to its rows in train. Unless a class is named, it is the rarer of two.
    """
    label = positive_of(task)
    if label is None or not set(task.metrics) & set(OF_ONE_CLASS):
        return None
    others = [count for other, count in counts.items() if other != label]
    if len(others) != 1 or counts[label] > others[0]:
        chosen = "as --positive or the task's setting says"
    elif counts[label] == others[0]:
        chosen = "one of two classes as frequent in train (--positive names the other)"
    else:
        chosen = "the rarer class in train (--positive names the other)"
    return {"label": label, "chosen": chosen}


def label_warnings(found: Mapping[str, Any], task: Task) -> Iterable[str]:
    """Yield warnings about labels: rare, untested, named in their own texts, nearly equal, or probably misread."""
    rare, unit = found["rare_classes"], "words" if "answers" in found else "rows"
    if rare:
        shown = ", ".join(f"{clip(label)} ({count})" for label, count in list(rare.items())[:EXAMPLES])
        yield (
            f"Classes with fewer than {RARE_ROWS} {unit} in train: {len(rare)} of {len(task.labels)}: "
            f"{shown}{', …' if len(rare) > EXAMPLES else ''}."
        )
    for name in ("validation", "test"):
        untested = [label for label, count in found["classes"][name].items() if not count]
        if untested:
            shown = ", ".join(map(clip, untested[:EXAMPLES]))
            more = ", …" if len(untested) > EXAMPLES else ""
            yield f"Classes with no {unit[:-1]} in {name}: {len(untested)} of {len(task.labels)}: {shown}{more}."
    if found["label_in_text"] >= CUE_SHARE:
        yield (
            f"In {found['label_in_text']:.0%} of the training rows the text names its own label; "
            "make sure that the answer has not leaked into the question."
        )
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for label in task.labels:
        alike[" ".join(label.casefold().split())].append(label)
    for same in alike.values():
        if len(same) > 1:
            yield f"The labels {' and '.join(map(clip, same))} differ only in case or spaces and are kept apart."
    yield from _odd_labels(found["classes"]["train"], found["rows"]["train"], task)
    if "positive" in found:
        yield from _unusual_class(found["positive"]["label"], task.labels)
    yield from _lost_spans(found["classes"]["train"], task)


def _unusual_class(label: str, labels: Sequence[str]) -> Iterable[str]:
    """Yield a warning if f1 is computed for the one of two classes that most tools treat as negative."""
    if len(labels) != 2:
        return
    other = labels[1 - labels.index(label)]
    one, two = label.strip().casefold(), other.strip().casefold()
    if (one, two) in CLASSES_OF_NO or re.fullmatch(rf"(not|non|no|un)[\s_-]*{re.escape(two)}", one):
        yield (
            f"f1 is of {clip(label)}, which is rarer in train or named by --positive; most tools score {clip(other)}"
            f" where labels are such: --positive {shlex.quote(other)}."
        )


def _lost_spans(counts: Mapping[str, int], task: Task) -> Iterable[str]:
    """Yield a warning if tags seem to mark spans, but in a scheme that is not recognised."""
    if task.kind != "tagging" or marks_spans(task.labels):
        return
    most = max(counts, key=lambda label: counts[label])
    share = counts[most] / max(1, sum(counts.values()))
    others = [clip(label) for label in task.labels if label != most]
    listed = f"{', '.join(others[:EXAMPLES])}{', …' if len(others) > EXAMPLES else ''}"
    pairs = [(label, f"I{label[1:]}") for label in task.labels if label[:1] == "B"]
    pairs += [(label, f"{label[:-1]}I") for label in task.labels if label[-1:] == "B"]
    pair = next((pair for pair in pairs if pair[1] in task.labels), None)
    if pair is not None and "O" in task.labels:
        yield f"The tags {clip(pair[0])} and {clip(pair[1])} seem to mark spans, but not all tags do: {NO_SPANS}."
    elif most.upper() in OUTSIDE and share >= MOST_OUTSIDE:
        yield (
            f"The tag {clip(most)} is on {share:.0%} of the words of train, as outside of spans, but the other tags"
            f" mark no place in one ({listed}): {NO_SPANS}."
        )


def _odd_labels(counts: Mapping[str, int], rows: int, task: Task) -> Iterable[str]:
    """Yield warnings about labels that are probably no labels, or lists of labels."""
    missing = next((label for label in counts if label.strip() in NO_LABEL), None)
    if missing is not None:
        yield (
            f"The label {clip(missing)} ({several(counts[missing], 'row')} of train) often marks rows without a label:"
            " if so, remove these rows."
        )
    if task.kind != "multilabel":
        return
    whole = next((label for label, count in counts.items() if count == rows), None)
    if whole is not None:
        yield f"The label {clip(whole)} is on every row of train: there is nothing to learn about it."
    listed = [label for label in counts if "," in label]
    parts = {part.strip() for label in listed for part in label.split(",")}
    if len(listed) > 1 and 2 * len(listed) >= len(counts) and len(parts) < len(counts):
        yield (
            f"Labels that look like lists are each read as one label: {clip(listed[0])}. Labels are separated by |, as"
            " in billing|urgent."
        )
