"""Comparison of generated texts with their references, for the metrics of texts: sacreBLEU, ROUGE, edit distance."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.io.extras import extra

References = Sequence[tuple[str, ...]]  # of each example


def are_texts(targets: Numbers) -> bool:
    """Return whether encoded targets are (N,) tuples of references."""
    return not isinstance(targets, Ragged) and targets.dtype == object and targets.ndim == 1


def references_and_texts(
    targets: Numbers, predictions: Numbers, task: Task, metric: str
) -> tuple[References, list[str]]:
    """Return the references and the predicted text of every example. Raises `ConfigError` for anything but texts."""
    if not (are_texts(targets) and are_texts(predictions)):
        raise unscorable(metric, "texts", task)
    return [*targets], [found[0] for found in predictions]


def sacrebleu_statistics(
    metric: str, name: str, targets: Numbers, predictions: Numbers, task: Task
) -> NDArray[np.float64]:
    """Return sacrebleu's statistics (N, K) of each text, by its class `name` ("BLEU", "CHRF") with its defaults.

    Raises `ConfigError` for anything but texts, `MissingExtra` without sacrebleu.
    """
    references, texts = references_and_texts(targets, predictions, task, metric)
    with extra("generation", f"the metric {metric}"):
        import sacrebleu.metrics
    if not texts:
        return np.zeros((0, 1))
    by_place = list(zip_longest(*references))  # as sacrebleu has them; None where an example has fewer
    counted = getattr(sacrebleu.metrics, name)()._extract_corpus_statistics(texts, by_place)
    return np.array(counted, dtype=np.float64)


def sacrebleu_signature(metric: str, name: str, targets: Numbers) -> str:
    """Return sacrebleu's signature of its class `name` with its defaults; `nrefs:var` if numbers of references differ.

    Raises `MissingExtra` without sacrebleu.
    """
    with extra("generation", f"the metric {metric}"):
        import sacrebleu.metrics
    counts = {len(references) for references in targets}
    counter = getattr(sacrebleu.metrics, name)()
    counter.num_refs = counts.pop() if len(counts) == 1 else -1
    return str(counter.get_signature())


def rouge_f1(metric: str, name: str, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
    """Return the F1 (N, 1) of each text with its most similar reference, by `name` of rouge-score, without stemming.

    Raises `ConfigError` for anything but texts, and where no reference has a word of a-z and 0-9, which alone count;
    `MissingExtra` without rouge-score.
    """
    references, texts = references_and_texts(targets, predictions, task, metric)
    with extra("generation", f"the metric {metric}"):
        from rouge_score.rouge_scorer import RougeScorer
    if texts and not any(counts_in_rouge(text) for golds in references for text in golds):
        raise ConfigError(
            f"the metric {metric!r} counts words of a-z and 0-9 alone, and no reference has one",
            got=references[0][0],
            do="choose --metrics chrf",
        )
    scorer = RougeScorer([name])
    scores = [scorer.score_multi(golds, text)[name].fmeasure for golds, text in zip(references, texts, strict=True)]
    return np.array(scores, dtype=np.float64).reshape(-1, 1)


def edit_statistics(
    metric: str, parts: Callable[[str], Sequence[str]], targets: Numbers, predictions: Numbers, task: Task
) -> NDArray[np.float64]:
    """Return (N, 2) of each text: its edit distance to the reference with the lowest rate of errors, and its length.

    `parts` cuts a normalised text: into words, or characters. Raises `ConfigError` for anything but texts, and where no
    reference has anything but punctuation.
    """
    references, texts = references_and_texts(targets, predictions, task, metric)
    counted = np.zeros((len(texts), 2))
    for row, (golds, text) in enumerate(zip(references, texts, strict=True)):
        found, wanted = parts(normalised(text)), [parts(normalised(gold)) for gold in golds]
        pairs = [(edit_distance(found, gold), len(gold)) for gold in wanted]
        counted[row] = min(pairs, key=lambda pair: pair[0] / max(1, pair[1]))
    if len(texts) and not counted[:, 1].any():
        raise ConfigError(
            f"the metric {metric!r} does not count punctuation, and no reference has anything else",
            got=references[0][0],
            do="choose --metrics exact_match",
        )
    return counted


def normalised(text: str) -> str:
    """Return the text in lower case, without punctuation (Unicode's category P), its words one space apart."""
    return " ".join(text.lower().translate(_punctuation()).split())


@cache
def _punctuation() -> dict[int, None]:
    return {code: None for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith("P")}


def edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and substitutions that turn one into the other (Levenshtein 1966)."""
    known: dict[str, int] = {}
    rows, columns = ([known.setdefault(part, len(known)) for part in parts] for parts in (one, other))
    across, places = np.array(columns, dtype=np.int64), np.arange(len(columns) + 1)
    costs = places.copy()  # of the parts of `one` so far, to each beginning of `other`
    for row in rows:
        changed = np.minimum(costs[1:] + 1, costs[:-1] + (across != row))
        reached = np.concatenate([costs[:1] + 1, changed])
        costs = np.minimum.accumulate(reached - places) + places  # insertions, from the left
    return int(costs[-1])


def counts_in_rouge(text: str) -> bool:
    """Return whether rouge-score finds a word in the text: a letter a-z, or a digit."""
    return any(char.isascii() and char.isalnum() for char in text)
