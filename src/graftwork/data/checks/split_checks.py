"""The data report: contents of the splits, and problems that could make their scores misleading."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graftwork.core.example import Example, Input, text_of
from graftwork.core.kind import WritesTexts
from graftwork.core.media import Media
from graftwork.core.ragged import Ragged, flat
from graftwork.core.task import Split, Task
from graftwork.data.checks.cues import cue_warnings, cues
from graftwork.data.checks.label_checks import RARE_ROWS, label_warnings, positive_class
from graftwork.data.checks.repeats import EXAMPLES, Inputs, inputs_of, near_report
from graftwork.data.checks.text_checks import text_report, text_warnings
from graftwork.data.readers.choice_tables import choice_report, choice_warnings
from graftwork.registry import kinds
from graftwork.targets.labels import labels_of
from graftwork.targets.words import APART, WORD
from graftwork.units import several

LONG_WORDS = 1000
SAME_TARGET = 0.5  # share of equal numeric targets in train from which a warning is given
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)  # upper ends of the bins of lengths
_WORD = re.compile(WORD)


def report(
    task: Task,
    splits: Mapping[str, Split],
    made: str,
    mended: Mapping[str, Mapping[str, int]] = {},
    dropped: Mapping[str, int] = {},
    rejected: Mapping[str, int] = {},
) -> dict[str, Any]:
    """Return everything found in the splits of a resolved task, as JSON; `warnings` are sentences for a person.

    `made` describes how the splits were made, `mended` what was repaired while reading and in how many places of each
    split, `dropped` how many rows were removed from train because they occur, exactly or nearly, in another split,
    `rejected` how many unreadable rows of each split's file were set aside.
    """
    train, writes = splits["train"].examples, isinstance(kinds.get(task.kind), WritesTexts)
    everything = [example for split in splits.values() for example in split.examples]
    listed = {name: split.examples for name, split in splits.items()}
    found: dict[str, Any] = {
        "splits": made,
        "rows": {name: len(split.examples) for name, split in splits.items()},
        "classes": {name: class_counts(task, split.examples) for name, split in splits.items()} if task.labels else {},
        "words": word_counts(everything),
        "lengths": {"unit": "words"} | {name: lengths(map(_words_of, found)) for name, found in listed.items()},
        "without_letters": {name: sum(map(_no_letters, found)) for name, found in listed.items()},
        "duplicates_within": {name: duplicates(split.examples) for name, split in splits.items()},
        "duplicates_across": duplicates_across(splits),
        "test_in_validation": count_repeated(splits["validation"].examples, splits["test"].examples),
        "near_duplicates": near_report(listed, task.reads, compared=not writes),
        "conflicts": conflicts(everything),
        "sorted": is_sorted(train),
        "order": stretches(train),
        "cues": cues(train, task.labels),
    }
    found |= {name: dict(rows) for name, rows in {"dropped": dropped, "rejected": rejected}.items() if rows}
    found = {name: value for name, value in found.items() if value != {} or name == "classes"}
    if task.labels:
        found["majority_share"] = {
            name: max(counts.values()) / max(1, len(flat(splits[name].targets)))
            for name, counts in found["classes"].items()
        }
        found["rare_classes"] = {label: n for label, n in found["classes"]["train"].items() if n < RARE_ROWS}
        found["label_in_text"] = label_in_text(train)
        if told := positive_class(task, found["classes"]["train"]):
            found["positive"] = told
    elif writes:
        found["texts"] = text_report(splits, task.settings.longest)
    elif train and "choices" in train[0].inputs:
        found["choices"] = choice_report(splits)
    elif train and isinstance(train[0].target, float):
        found["targets"] = {name: spread(split.examples) for name, split in splits.items()}
    if any("question" in example.inputs for example in train):
        found |= passages(splits)
    if any(isinstance(split.targets, Ragged) for split in splits.values()):
        found["answers"] = {name: len(flat(split.targets)) for name, split in splits.items()}
    if task.reads != "text":
        found["media"] = {name: sizes(task.reads, split.examples) for name, split in splits.items()}
    if mended:
        found["mended"] = {what: dict(counts) for what, counts in mended.items()}
    return found | {"warnings": list(_warnings(found, task))}


def class_counts(task: Task, examples: Sequence[Example]) -> dict[str, int]:
    """Count rows, or words, per label, in the task's order; 0 for a label that none has."""
    counts = Counter(label for example in examples for label in labels_of(example.target))
    return {label: counts[label] for label in task.labels}


def spread(examples: Sequence[Example]) -> dict[str, float]:
    """Return mean, standard deviation, minimum and maximum target, in the file's units; share of the most common."""
    targets = np.array([example.target for example in examples], dtype=np.float64)
    return {
        "mean": float(targets.mean()),
        "sd": float(targets.std()),
        "min": min(targets.tolist()),
        "max": max(targets.tolist()),
        "most_common": Counter(targets.tolist()).most_common(1)[0][1] / len(targets),
    }


def word_counts(examples: Sequence[Example]) -> dict[str, int]:
    """Return the median and maximum words per example, and how many examples have over 1,000 and may be truncated."""
    words = np.array(list(map(_words_of, examples)))
    may_be_cut = np.array(["words" not in example.inputs for example in examples])  # word lists are encoded in windows
    long = int(((words > LONG_WORDS) & may_be_cut).sum())
    return {"median": int(np.median(words)), "max": int(words.max()), "over_1000": long}


def _words_of(example: Example) -> int:
    return sum(map(_words, example.inputs.values()))


def _words(given: Input | Media) -> int:
    if isinstance(given, tuple):
        return len(given)
    text = text_of(given)
    return len((text if text.isascii() else APART.sub(r" \1 ", text)).split())


def lengths(counts: Iterable[int], limit: int | None = None) -> dict[str, int]:
    """Count examples by length in words or tokens: `{"up to 8": 3, …}`; the last bin ends at `limit`, if any."""
    found = np.array(list(counts))
    ends = [end for end in LENGTHS if limit is None or end < limit]
    places = np.bincount(np.searchsorted(ends, found), minlength=len(ends) + 1).tolist()
    named = [*(f"up to {end:,}" for end in ends), f"over {ends[-1]:,}" if limit is None else f"up to {limit:,}"]
    return dict(zip(named, places, strict=True))


def _no_letters(example: Example) -> bool:
    """Return whether one of the example's texts has neither letter nor digit."""
    texts = [text_of(given) for given in example.inputs.values() if not isinstance(given, Media)]
    return any(not any(char.isalnum() for char in text) for text in texts)


def sizes(role: str, examples: Sequence[Example]) -> dict[str, Any]:
    """Return minimum, median and maximum of images' shorter sides in pixels, or of sounds' durations in seconds.

    For sounds, also count the recordings of each sample rate, and the digitally silent ones, if any.
    """
    listed = [example.inputs[role].size for example in examples]
    if role == "image":
        sides = [min(size) for size in listed]
        return {"shorter_side": [min(sides), float(np.median(sides)), max(sides)]}
    seconds = [frames / rate for frames, rate in listed]
    rates = {str(rate): count for rate, count in sorted(Counter(rate for _, rate in listed).items())}
    silent = sum(example.inputs[role].silent for example in examples)
    found = {"seconds": [min(seconds), float(np.median(seconds)), max(seconds)], "rates": rates}
    return found | ({"silent": silent} if silent else {})


def passages(splits: Mapping[str, Split]) -> dict[str, Any]:
    """Count per split its passages, its questions without an answer, and those about a passage of train."""
    trained = {example.source for example in splits["train"].examples}
    return {
        "passages": {name: len({example.source for example in split.examples}) for name, split in splits.items()},
        "unanswerable": {name: sum(not example.target for example in split.examples) for name, split in splits.items()},
        "passages_across": {
            name: sum(example.source in trained for example in split.examples)
            for name, split in splits.items()
            if name != "train"
        },
    }


def duplicates(examples: Sequence[Example]) -> int:
    """Count the rows whose inputs occur in an earlier row of the same split."""
    return len(examples) - len({inputs_of(example.inputs) for example in examples})


def duplicates_across(splits: Mapping[str, Split]) -> dict[str, Any]:
    """Count rows of the other splits whose exact inputs occur in train, per split; with up to five pairs of ids."""
    train = splits["train"].examples
    found = {name: count_repeated(train, split.examples) for name, split in splits.items() if name != "train"}
    pairs = [pair for repeats in reversed(found.values()) for pair in repeats["examples"]]
    return {"rows": {name: repeats["rows"] for name, repeats in found.items()}, "examples": pairs[:EXAMPLES]}


def count_repeated(before: Sequence[Example], after: Sequence[Example]) -> dict[str, Any]:
    """Count the rows of `after` with the exact inputs of one of `before`; with up to five pairs of ids."""
    first: dict[Inputs, str] = {}
    for example in before:
        first.setdefault(inputs_of(example.inputs), example.id)
    pairs = [[first[key], example.id] for example in after if (key := inputs_of(example.inputs)) in first]
    return {"rows": len(pairs), "examples": pairs[:EXAMPLES]}


def conflicts(examples: Sequence[Example]) -> dict[str, Any]:
    """Count groups of rows with the same inputs and different targets, over all splits; up to five groups of ids."""
    groups: defaultdict[Inputs, list[Example]] = defaultdict(list)
    for example in examples:
        groups[inputs_of(example.inputs)].append(example)
    odd = [group for group in groups.values() if len({example.target for example in group}) > 1]
    shown = [[example.id for example in group] for group in odd[:EXAMPLES]]
    return {"groups": len(odd), "rows": sum(map(len, odd)), "examples": shown}


def is_sorted(examples: Sequence[Example]) -> bool:
    """Return whether the rows are grouped by class, or sorted by number, ascending or descending."""
    targets: list[Any] = [example.target for example in examples]
    if len(targets) < 2 * RARE_ROWS:
        return False
    if isinstance(targets[0], float):
        return any(targets == sorted(targets, reverse=falling) for falling in (False, True))
    changes = sum(before != after for before, after in itertools.pairwise(targets))
    return bool(changes == len(set(targets)) - 1) and 2 * changes < len(targets)


def stretches(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the label changes from row to row, the number expected by chance, and the longest run of one label."""
    labels = [example.target for example in examples if isinstance(example.target, str)]
    if len(labels) < 2 * RARE_ROWS:
        return {}
    rows, changes = len(labels), sum(before != after for before, after in itertools.pairwise(labels))
    same = sum(count * (count - 1) for count in Counter(labels).values()) / (rows * (rows - 1))
    longest = max(len(list(run)) for _, run in itertools.groupby(labels))
    return {"changes": changes, "changes_by_chance": round((rows - 1) * (1 - same), 1), "longest_stretch": longest}


def label_in_text(examples: Sequence[Example]) -> float:
    """Return the share of rows whose text contains one of their labels as whole words, of three letters or more (two in
    scripts without spaces)."""
    names = {label for example in examples for label in labels_of(example.target)}
    spoken = {label: _normalised_words(label.replace("_", " ").replace("-", " ")) for label in names}
    cues = {label: words for label, words in spoken.items() if len(words) >= 5 and not words.strip().isdecimal()}
    named = 0
    for example in examples:
        own = [cues[label] for label in labels_of(example.target) if label in cues]
        if own:
            text = _normalised_words(" ".join(map(text_of, example.inputs.values())))
            named += any(cue in text for cue in own)
    return named / max(1, len(examples))


def _normalised_words(text: str) -> str:
    """Return the words in lower case, with one space before, between and after."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _warnings(found: Mapping[str, Any], task: Task) -> Iterable[str]:
    """Yield warnings to read before trusting a score, as sentences."""
    rows, noun = found["rows"], task.reads
    yield from _rejected_warnings(found.get("rejected", {}), task)
    for name, count in found["duplicates_across"]["rows"].items():
        if count:
            told = _of(count, name, rows, "has", "have")
            yield f"{told} the same {noun} as a row of train: kept, and the score looks better for it than it is."
    if count := found["test_in_validation"]["rows"]:
        yield (
            f"{_of(count, 'test', rows, 'has', 'have')} the same {noun} as a row of validation: choices are made on "
            "what is tested on, and the score looks better for it than it is."
        )
    yield from _near_warnings(found, noun)
    for name, count in found["duplicates_within"].items():
        if count:
            yield f"{_of(count, name, rows, 'repeats', 'repeat')} the {noun} of an earlier row."
    if found["conflicts"]["groups"]:
        yield (
            f"{noun.capitalize()}s that are in several rows with different targets: {found['conflicts']['groups']:,} "
            f"({_rows(found['conflicts']['rows'])}), for example {', '.join(found['conflicts']['examples'][0][:3])}."
        )
    yield from _order_warnings(found, task)
    for what, counts in found.get("mended", {}).items():
        if any(counts.values()):
            yield f"{what}: {', '.join(f'{count:,} of {name}' for name, count in counts.items() if count)}."
    for name, count in found.get("passages_across", {}).items():
        if count:
            yield (
                f"{_of(count, name, rows, 'asks', 'ask')} about a passage that train asks about too: the score looks "
                "better for it than it is."
            )
    if found["words"]["over_1000"]:
        yield (
            f"Texts of more than {LONG_WORDS:,} words: {_rows(found['words']['over_1000'])}; "
            "most backbones read only their beginning."
        )
    for name, count in found["without_letters"].items():
        if count:
            yield f"Texts without a letter or digit: {_rows(count)} of {name}."
    if "texts" in found:
        yield from text_warnings(found["texts"], rows, task)
    if "choices" in found:
        yield from choice_warnings(found["choices"])
    for name, media in found.get("media", {}).items():
        if count := media.get("silent"):
            yield f"{_of(count, name, rows, 'is', 'are')} digital silence: every sample is zero."
    yield from cue_warnings(found.get("cues", {}))
    if task.labels:
        yield from label_warnings(found, task)


def _rejected_warnings(rejected: Mapping[str, int], task: Task) -> Iterable[str]:
    listed = [f"{count:,} of {task.files[name].name}" for name, count in rejected.items() if count]
    if listed:
        yield f"Rows that can't be read, set aside with the reason in {task.rejects} and not used: {', '.join(listed)}."


def _near_warnings(found: Mapping[str, Any], noun: str) -> Iterable[str]:
    near, rows, verbs = found.get("near_duplicates"), found["rows"], ("nearly repeats", "nearly repeat")
    for name, count in near["across"]["rows"].items() if near else ():
        if count:
            yield (
                f"{_of(count, name, rows, *verbs)} a row of train: the score may look better for it than it is; "
                "--drop-leaks takes such rows out of train."
            )
    if near and (count := near["test_in_validation"]["rows"]):
        yield (
            f"{_of(count, 'test', rows, *verbs)} a row of validation, on which choices are made: the score may look "
            "better for it than it is."
        )
    for name, count in near["within"].items() if near else ():
        if count:
            yield f"{_of(count, name, rows, *verbs)} the {noun} of another row."
    if near and near["conflicts"]["rows"]:
        a, b, _ = near["conflicts"]["examples"][0]
        yield (
            f"Rows that are near one another and have different targets: {near['conflicts']['rows']:,}, for example "
            f"{a} and {b}; a small change may matter, or one of the targets is wrong."
        )
    if "dropped" in found:
        exact, nearly = found["dropped"]["exact"], found["dropped"]["near"]
        yield f"Dropped from train because another split has them: {_rows(exact)} exactly, and {nearly:,} nearly."


def _order_warnings(found: Mapping[str, Any], task: Task) -> Iterable[str]:
    order = found.get("order", {})
    if task.data.is_dir():
        return
    if found["sorted"]:
        yield "The training file is sorted by its targets; training shuffles it, other tools may not."
    elif order and order["changes"] < order["changes_by_chance"] / 2:
        yield (
            f"The training file comes in stretches of one label: it changes {order['changes']:,} times from row to "
            f"row, by chance it would {order['changes_by_chance']:,.0f} times; the longest stretch is "
            f"{order['longest_stretch']:,} rows. Training shuffles it, other tools may not."
        )
    same = found.get("targets", {}).get("train", {}).get("most_common", 0.0)
    if same >= SAME_TARGET:
        yield f"{same:.0%} of the targets of train are one and the same number."


def _of(count: int, split: str, rows: Mapping[str, int], one: str, many: str) -> str:
    """Format a number of rows with its share of a split, and the verb in the singular or the plural."""
    share = f"{count / rows[split]:.1%}" if count >= rows[split] / 1000 else "under 0.1%"
    return f"{_rows(count)} of {split} ({share}) {one if count == 1 else many}"


def _rows(count: int) -> str:
    return several(count, "row")
