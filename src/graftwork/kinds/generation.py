"""Generation: a text, a pair of texts or a sound in, a text out, such as a translation or a summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.example import Example, text_of
from graftwork.core.kind_settings import IN_QUESTION
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, clip
from graftwork.registry import kinds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METRICS = ("chrf", "bleu", "rougel", "exact_match")
MUCH_SHORTER = 0.5  # highest ratio of target to source words, in the median row, of summaries
HEARD = ("word_accuracy", "character_accuracy", "exact_match")  # metrics for the transcripts of sounds


@dataclass(frozen=True)
class GenerationSettings:
    """The settings of generation: how a network searches for the text that it writes, and what it is told before."""

    beams: int = field(default=1, metadata=IN_QUESTION)  # beams of the search; 1 takes the likeliest token each time
    length_penalty: float = field(default=1.0, metadata=IN_QUESTION)
    # power of the length that a beam's log-probability is divided by; the higher, the longer the texts
    no_repeat: int = field(default=0, metadata=IN_QUESTION)
    # length of the token n-grams that may not come twice in a text; 0: any may
    longest: int = field(default=128, metadata=IN_QUESTION)  # tokens that a text may have, at most
    source_language: str | None = field(default=None, metadata=IN_QUESTION)
    # tag of the language that is read, as the backbone's tokenizer has it; None: that of its folder, if any
    target_language: str | None = field(default=None, metadata=IN_QUESTION)
    # tag of the language that is written; None: that of the backbone's folder, if any
    source_prefix: str | None = field(default=None, metadata=IN_QUESTION)
    # what is before every text that a network reads, its last blank included; None: nothing

    def __post_init__(self) -> None:
        for name, least in (("beams", 1), ("no_repeat", 0), ("longest", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} must be a whole number", got=repr(value), expected=f"{least} or more")
        if not math.isfinite(self.length_penalty):
            raise ConfigError("length_penalty must be a number", got=repr(self.length_penalty))
        for name in ("source_language", "target_language", "source_prefix"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise ConfigError(
                    f"{name} must be a text with something in it", got=repr(value), do="fill it in, or leave it out"
                )


class Generation:
    """Targets are tuples of references, encoded as (N,) objects; outputs are (N,) of `WRITTEN`. It has `OwnOutputs`.

    Training uses the first reference; a prediction is a tuple of one text.
    """

    per_word = False
    settings: type[Any] = GenerationSettings
    has_labels = False
    writes: Literal[True] = True
    repairs = ""

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[str, ...]:
        """Return the references as they are in the file. Raises `DataError` where there is none, or an empty one."""
        references = text if isinstance(text, tuple) else (text,)
        if not references or not all(reference.strip() for reference in references):
            several = isinstance(text, tuple) and len(text) > 1
            raise DataError(
                "a reference is empty" if several else "the target is empty",
                where=where,
                got=clip(" | ".join(references)),
                expected="a text with something in it",
                do="take the empty reference out of the list" if several else "remove the row or fill the target in",
            )
        return references

    def settle(self, target: Any, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Any, int]:
        """Return the target unchanged, with no repairs: it does not depend on the inputs."""
        return target, 0

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in the metrics: those that can score most of the targets."""
        return task if task.metrics else task.resolved(metrics=self.metrics_for((), targets))

    def metrics_for(self, inputs: Sequence[Mapping[str, Any]], targets: Sequence[Any]) -> tuple[str, ...]:
        """Return the metrics that can score most of the targets: chrF first, or ROUGE-L for summaries.

        For transcripts of sounds they are accuracies of words and characters. ChrF gives recall twice the weight of
        precision, so that for a target much shorter than its source a long copy would score best.
        """
        from graftwork.targets.text_scores import counts_in_rouge
        from graftwork.targets.words import APART

        texts = [references[0] for references in targets]
        unspaced = 2 * sum(APART.search(text) is not None for text in texts) > len(texts)
        if inputs and "sound" in inputs[0]:
            return HEARD[1:] if unspaced else HEARD
        counted = {"bleu": not unspaced, "rougel": not unspaced and 2 * sum(map(counts_in_rouge, texts)) > len(texts)}
        found = tuple(name for name in METRICS if counted.get(name, True))
        first = "rougel" if counted["rougel"] and _much_shorter(inputs, texts) else METRICS[0]
        return (first, *(name for name in found if name != first))

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return one stratum for all rows: texts have no classes."""
        return [0] * len(targets)

    def encode(self, targets: Sequence[Any], task: Task) -> NDArray[np.object_]:
        """Return (N,) tuples of references."""
        import numpy as np

        encoded = np.empty(len(targets), dtype=object)
        encoded[:] = targets
        return encoded

    def outputs(self, task: Task) -> int:
        """Return 1: an answer is one text."""
        return 1

    def constant(self, targets: NDArray[np.object_], task: Task) -> NDArray[Any]:
        """Return (1,) of `WRITTEN`: the most frequent first reference, the earliest of equals, with its share."""
        from graftwork.targets.written_texts import written_array

        ((text, count),) = Counter(references[0] for references in targets).most_common(1)
        return written_array([text], [math.log(count / len(targets))], [False])

    def predictions(self, outputs: NDArray[Any], task: Task) -> NDArray[np.object_]:
        """(N,) of `WRITTEN` -> (N,) tuples of one text."""
        return self.encode([(text,) for text in outputs["text"]], task)

    def decode(self, outputs: NDArray[Any], task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(N,) of `WRITTEN` -> `{"text", "probability", "log_probability", "cut"}` per example.

        The probability is that of the whole text, the product over its tokens; `cut` is true if the text was cut at
        `longest` tokens. With several beams there are `alternatives`, a list of the same for the other beams, best
        first.
        """
        answers = []
        for *best, others in outputs.tolist():
            more = {"alternatives": [_answer(*other) for other in others]} if task.settings.beams > 1 else {}
            answers.append(_answer(*best) | more)
        return answers

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the text in one line; whether it is empty or was cut."""
        told = " ".join(answer["text"].split()) or "(nothing)"
        return f"{told}   (cut at the longest length)" if answer["cut"] else told

    def from_lists(self, rows: Sequence[Any]) -> NDArray[Any]:
        """Convert the `tolist` of (N,) of `WRITTEN` from JSON. Raises `ValueError` or `TypeError` for anything else."""
        from graftwork.targets.written_texts import written_from_lists

        return written_from_lists(rows)

    def difference(self, found: NDArray[Any], expected: NDArray[Any]) -> float:
        """Return the largest difference of log-probabilities, relative if it is beyond 1; infinite if texts differ.

        Alternatives are not compared: which of two beams comes last may depend on rounding.
        """
        import numpy as np

        if found.shape != expected.shape or any((found[name] != expected[name]).any() for name in ("text", "cut")):
            return math.inf
        ours, theirs = found["log_probability"], expected["log_probability"]
        return float((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max(initial=0.0))


def _answer(text: str, chance: float, cut: bool) -> dict[str, Any]:
    return {"text": text, "probability": math.exp(chance), "log_probability": chance, "cut": cut}


def _much_shorter(inputs: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> bool:
    """Return whether texts have at most `MUCH_SHORTER` x the words of their inputs; False for sounds or no rows."""
    read = [sum(len(text_of(part).split()) for part in of_row.values()) for of_row in inputs]
    shares = [len(text.split()) / words for text, words in zip(texts, read, strict=False) if words]
    return bool(shares) and sorted(shares)[len(shares) // 2] <= MUCH_SHORTER


kinds.register("generation")(Generation())
