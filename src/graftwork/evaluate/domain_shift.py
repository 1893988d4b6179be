"""Domain shift: the distance of new, unlabelled texts from the training data of a task module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.core.arguments import told_arguments
from graftwork.core.example import Example, plain, text_of
from graftwork.core.in_memory import rows_named
from graftwork.core.media import MEDIA
from graftwork.data.checks.near_duplicates import clusters, words_of
from graftwork.data.checks.repeats import Distinct, inputs_of
from graftwork.data.readers.rejects import none_bad
from graftwork.errors import ConfigError
from graftwork.evaluate.features import features_of, read_as_text, token_ids
from graftwork.evaluate.labelled_file import file_of
from graftwork.evaluate.shift_lines import shift_lines
from graftwork.evaluate.two_sample import FEWEST, LEVEL, two_sample
from graftwork.io.display import ShownJson
from graftwork.io.files import digest
from graftwork.module.confidence import Moments, confidences, words_in
from graftwork.module.file_rows import rows_for
from graftwork.module.predict_many import answer_windows
from graftwork.module.task_module import TaskModule
from graftwork.module.trained_on import reopen_data

ROWS = 2_000  # maximum rows per side for the classifier and for prediction
LISTED = 10  # new words in the report
FURTHEST = 5  # texts in the report, by default
MOST_SHOWN = 200  # maximum characters of a text in the report


@dataclass(frozen=True)
class Reference:
    """The available training data of the module."""

    trained: Sequence[Example]  # training texts
    held: Sequence[Example]  # texts from the same source not used in training
    source: str  # description of the source


@told_arguments
def shift(
    module: TaskModule | str | Path,
    new: Any,
    *,
    reference: Any = None,
    columns: Mapping[str, str] | None = None,
    rows: int = ROWS,
    furthest: int = FURTHEST,
) -> dict[str, Any]:
    """Measure the shift of texts `new` (a file, a data frame, or a list as for `TaskModule.predict`) from `module`'s
    training data.

    The training data are read from the files that the module's description names, if these exist and are unchanged;
    `reference` replaces them. `columns` (role -> column) names the columns of files and frames; for frames, the default
    is those of the training data, or the usual ones. Labels in them are ignored. At most `rows` per side, sampled by a
    hash of their content, are compared by a classifier and predicted; the report shows the `furthest` new texts that
    differ most. Returns JSON, described in docs/how-to/new-data.md.

    Raises `ConfigError` or `DataError` for texts that the module can't take, `GraftworkError` as `TaskModule.load`.
    """
    if rows < FEWEST:
        raise ConfigError("too few rows to compare", got=str(rows), expected=f"{FEWEST} or more")
    if furthest < 0:
        raise ConfigError("furthest must be 0 or more", got=str(furthest), expected="0 or more")
    opened = module if isinstance(module, TaskModule) else TaskModule.load(module)
    fresh = _read(opened, new, columns or {})
    if not fresh:
        raise ConfigError("no new texts", do="give one or more")
    known, why = _reference(opened, reference, columns or {})
    sampled = _sample(fresh, rows)
    found: dict[str, Any] = {
        "module": {"task": opened.task.name, "method": opened.description["method"]["name"]},
        "reference": known.source if known else None,
        "unreachable": why or None,
        "rows": {"new": len(fresh), "new_compared": len(sampled)},
    }
    if known:
        trained = {inputs_of(example.inputs) for example in known.trained}
        found["rows"] |= {"trained_on": len(known.trained), "held_out": len(known.held)}
        found["rows"]["new_trained_on"] = sum(inputs_of(example.inputs) in trained for example in fresh)
        found["two_sample"] = _told_apart(opened, known, sampled, rows, furthest)
        found["words"] = _new_words(opened, known, fresh)
    found["confidence"], found["answers"] = _answers(opened, known, sampled, rows)
    found["lengths"] = _lengths(opened, known, fresh)
    return ShownJson(found | {"verdict": verdict(found)}, shift_lines)


def _read(module: TaskModule, given: Any, columns: Mapping[str, str]) -> list[Example]:
    if not isinstance(given, str | Path):
        if isinstance(given, Mapping):
            header = list(given)
        elif hasattr(given, "columns"):
            header = list(getattr(given, "column_names", given.columns))  # an Arrow table's columns have no names
        else:
            return module.examples(given)
        told = module.read_by
        columns = columns or {role: told[role] for role in ("text", "text_a", "text_b") if told.get(role) in header}
    path = file_of(given, module.task, columns, ("text",))
    with rows_named({"data": path}, by_role=True):
        return list(none_bad(rows_for(module, path, columns)()))


def _reference(module: TaskModule, given: Any, columns: Mapping[str, str]) -> tuple[Reference | None, str]:
    if given is not None:
        named = str(given) if isinstance(given, str | Path) else f"{len(given):,} texts"
        return Reference(_read(module, given, columns), (), named), ""
    data, why = reopen_data(module.description.get("data"), module.task)
    if data is None:
        return None, why
    held = (*data.validation.examples, *data.test.examples)
    return Reference(data.train.examples, held, module.description["data"]["files"]["data"]), ""


def _sample(examples: Sequence[Example], rows: int) -> list[Example]:
    """Sample at most `rows` examples, repeats included, ordered by a hash of their inputs and the number of the repeat.

    The sample does not depend on the order of the examples, and every prefix of it is a sample too.
    """
    seen: Counter[str] = Counter()
    keyed: list[tuple[str, Example]] = []
    for example in examples:
        own = digest(plain(example.inputs))
        keyed.append((digest([own, seen[own]]) if seen[own] else own, example))
        seen[own] += 1
    return [example for _, example in sorted(keyed, key=lambda item: item[0])[:rows]]


def _told_apart(
    module: TaskModule, known: Reference, fresh: Sequence[Example], rows: int, furthest: int
) -> dict[str, Any]:
    """Run the classifier two-sample test between training and new texts, without the near duplicates of each."""
    old = _sample(known.trained, rows)
    old, fresh, groups = _without_repeats(old, fresh)
    counts = {"trained_on": len(old), "new": len(fresh)}
    if min(len(old), len(fresh)) < FEWEST:
        return {"rows": counts, "missing": f"fewer than {FEWEST} different texts on one side"}
    read, by = features_of(module, [*old, *fresh])
    if read is None:
        return {"rows": counts, "missing": by}
    found = two_sample(read[: len(old)], read[len(old) :], groups)
    order = np.argsort(-found.ratios, kind="stable")[:furthest]
    shown = [
        {"id": fresh[place].id, "text": _shown(fresh[place]), "density_ratio": float(found.ratios[place])}
        for place in order.tolist()
    ]
    told = {"auc": found.auc, "low": found.low, "high": found.high, "accuracy": found.accuracy, "p": found.p}
    return {"rows": counts, "read_by": by} | told | {"smallest": found.smallest, "furthest": shown}


def _without_repeats(
    old: Sequence[Example], new: Sequence[Example]
) -> tuple[list[Example], list[Example], np.ndarray[Any, np.dtype[np.int64]]]:
    """Keep one row per side of every cluster of near duplicates; also return the clusters, which must stay in one fold.

    A larger sample of a source has a larger share of duplicates, so the sides would differ without them. If there are
    any, the larger side is thus thinned in parts of the smaller side's size; a remainder is dropped.
    """
    everything = [*old, *new]
    distinct = Distinct([example.inputs for example in everything])
    sketch = distinct.sketch()
    labels = np.arange(len(distinct.inputs)) if sketch is None else clusters(sketch, np.arange(len(distinct.inputs)))
    groups = labels[distinct.of_row]
    places = np.concatenate([np.arange(len(old)), np.arange(len(new))])
    sides = np.repeat([0, 1], [len(old), len(new)])
    if len(np.unique(2 * groups + sides)) == len(everything):
        return list(old), list(new), groups
    size = max(1, min(len(old), len(new)))
    parts, whole = places // size, np.array([len(old), len(new)]) // size
    _, first = np.unique(np.stack([groups, sides, parts], axis=1), axis=0, return_index=True)
    first = first[parts[first] < whole[sides[first]]]
    kept = np.sort(first).tolist()
    return [everything[i] for i in kept if i < len(old)], [everything[i] for i in kept if i >= len(old)], groups[kept]


def _shown(example: Example) -> str:
    given = " | ".join(item.path if role in MEDIA else text_of(item) for role, item in example.inputs.items())
    return given if len(given) <= MOST_SHOWN else f"{given[:MOST_SHOWN]}…"


def _new_words(module: TaskModule, known: Reference, fresh: Sequence[Example]) -> dict[str, Any]:
    """Return the shares of running words, and of the backbone's tokens, that do not occur in the training texts."""
    if set(module.roles) & set(MEDIA):
        return {}
    seen = {word for example in known.trained for word in _words(example)}
    found: dict[str, Any] = {}
    for name, examples in (("new", fresh), ("held_out", known.held)):
        counts = Counter(word for example in examples for word in _words(example))
        unseen = Counter({word: count for word, count in counts.items() if word not in seen})
        if examples:  # none has 0 words: a text of signs alone counts as one
            found[name] = {"words": unseen.total() / counts.total()}
        if name == "new":
            listed = sorted(unseen.items(), key=lambda item: (-item[1], item[0]))[:LISTED]
            found["most_frequent"] = [{"word": word, "count": count} for word, count in listed]
    if module.backbone is not None:
        ids = set(token_ids(module.backbone, known.trained))
        for name, examples in (("new", fresh), ("held_out", known.held)):
            if examples:
                read = token_ids(module.backbone, examples)
                found[name]["tokens"] = sum(token not in ids for token in read) / max(1, len(read))
    return found


def _words(example: Example) -> list[str]:
    return [word for given in read_as_text(example).inputs.values() for word in words_of(text_of(given))]


def _answers(
    module: TaskModule, known: Reference | None, fresh: Sequence[Example], rows: int
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Compare the confidence of predictions with that on held-out texts; also return the frequency of each label."""
    new = _answered(module, fresh)
    held = _sample(known.held, rows) if known else []
    before = _answered(module, held) if held else []
    sure, was = Moments.of(confidences(new)), Moments.of(confidences(before))
    stored = module.description.get("held_out", {}).get("confidence")
    if was is None and stored:
        was = Moments(**stored)
    confidence: dict[str, Any] | None = None
    if sure is not None:
        confidence = {"new": vars(sure), "held_out": vars(was) if was else None}
        confidence |= sure.less(was) if was else {}
    shares = {"new": _shares(new), "held_out": _shares(before)}
    return confidence, shares if shares["new"] else None


def _answered(module: TaskModule, examples: Sequence[Example]) -> list[dict[str, Any]]:
    return [answer for window in answer_windows([module], examples) for answer in window.answers[0]]


def _shares(answers: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of each label, the most frequent first; for numbers their mean and standard deviation."""
    values = [answer["value"] for answer in answers if "value" in answer]
    if len(values) > 1:
        return {"mean": float(np.mean(values)), "sd": float(np.std(values))}
    labels = [answer["label"] for answer in answers if "label" in answer]
    counts = Counter(label for one in labels for label in ([one] if isinstance(one, str) else one))
    return {label: count / len(labels) for label, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))}


def _lengths(module: TaskModule, known: Reference | None, fresh: Sequence[Example]) -> dict[str, Any] | None:
    """Compare the words per text of new and training texts; count the new texts that the backbone truncates."""
    if set(module.roles) & set(MEDIA):
        return None
    new = Moments.of([words_in(example) for example in fresh])
    before = Moments.of([words_in(example) for example in known.trained]) if known else None
    stored = module.description.get("held_out", {}).get("words")
    if before is None and stored:
        before = Moments(**stored)
    if new is None:
        return None
    found: dict[str, Any] = {"new": vars(new), "before": vars(before) if before else None}
    found |= new.less(before) if before else {}
    cut = module.backbone.encode(list(fresh)).cut if module.backbone is not None else 0
    return found | {"cut": cut}


def verdict(found: Mapping[str, Any]) -> list[str]:
    """Return the findings as sentences."""
    return [*_apart_in_words(found), *_sure_in_words(found)]


def _apart_in_words(found: Mapping[str, Any]) -> list[str]:
    test = found.get("two_sample")
    if test is None:
        return [
            f"Whether these texts differ from those trained on can't be told: {found['unreachable']}. "
            "Name texts to compare with: --reference FILE, or reference=FILE in Python."
        ]
    if "missing" in test:
        return [f"Whether these texts differ from those trained on can't be told: {test['missing']}."]
    hundred, rows = 100 * test["auc"], test["rows"]
    span = f"{hundred:.1f} [{100 * test['low']:.1f}, {100 * test['high']:.1f}]"
    if test["p"] < LEVEL:
        how = "hardly" if test["auc"] < 0.6 else "clearly" if test["auc"] < 0.85 else "almost wholly"
        return [
            f"These texts differ from those trained on, {how}: of a text of each, a classifier tells which is the new "
            f"one in {span} of 100 cases, where 50 are chance (p {_p(test['p'])})."
        ]
    return [
        f"Cannot tell these texts from those trained on: a classifier finds the new one of two in {span} of 100 cases, "
        f"where 50 are chance (p {_p(test['p'])}). The smallest difference that {rows['new']:,} and "
        f"{rows['trained_on']:,} texts would have shown in 80 of 100 trials is {100 * test['smallest']:.1f}."
    ]


def _sure_in_words(found: Mapping[str, Any]) -> list[str]:
    """Return the sentence on confidence; none for fewer than 20 texts, whose spread is unreliable."""
    sure = found.get("confidence")
    if not sure or "change" not in sure or min(sure[side]["rows"] for side in ("new", "held_out")) < FEWEST:
        return []
    span = f"{100 * sure['change']:+.1f} points [{100 * sure['low']:+.1f}, {100 * sure['high']:+.1f}]"
    if sure["low"] > 0 or sure["high"] < 0:
        than = "surer" if sure["change"] > 0 else "less sure"
        return [f"Its answers are {than} than to texts held out from its training: {span}."]
    return [f"Cannot tell whether its answers are surer or less sure than to texts held out from its training: {span}."]


def _p(value: float) -> str:
    return f"{value:.3f}"
