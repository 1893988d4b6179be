"""Written texts beside their references, as the metrics of texts compare them."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Return sacrebleu's signature of its class `name` with its defaults; `nrefs:var` where rows differ in references.

    Raises `MissingExtra` without sacrebleu.
    """
    with extra("generation", f"the metric {metric}"):
        import sacrebleu.metrics
    counts = {len(references) for references in targets}
    counter = getattr(sacrebleu.metrics, name)()
    counter.num_refs = counts.pop() if len(counts) == 1 else -1
    return str(counter.get_signature())


def rouge_f1(metric: str, name: str, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
    """Return the F1 (N, 1) of each text with the reference most like it, by `name` of rouge-score, without stemming.

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


def counts_in_rouge(text: str) -> bool:
    """Return whether rouge-score finds a word in the text: a letter a-z, or a digit."""
    return any(char.isascii() and char.isalnum() for char in text)
