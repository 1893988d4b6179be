"""Tagging: one tag per word, such as a part of speech or the span (entity, chunk) of the word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from graftwork.core.example import Example, text_of
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.data.readers.label_tables import WEIGHED
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
from graftwork.targets.label_costs import require_weights
from graftwork.targets.labels import label_indices, require_label, resolve_labels
from graftwork.targets.pooled_kind import PooledKind
from graftwork.targets.span_outcomes import span_outcomes
from graftwork.targets.tag_schemes import LETTERS, TagScheme, scheme_of
from graftwork.targets.tag_spans import BEGIN, INSIDE, OUTSIDE, marks_spans, mend_tags, spans_of
from graftwork.targets.words import word_places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from graftwork.core.ragged import Ragged

METRICS = ("accuracy",)
METRICS_OF_SPANS = ("entity_f1", "conll_f1", "accuracy")


@dataclass(frozen=True)
class TaggingSettings:
    """The settings of tagging."""

    stray_tags: Literal["repair", "refuse"] = "repair"
    # I- tags that continue nothing: read as B- (repair), or an error (refuse)
    class_weights: Literal["balanced"] | Mapping[str, float] | None = field(default=None, metadata=WEIGHED)
    # weights in the training loss: balanced, or a file with the columns label and weight; None: all count alike


class Tagging(PooledKind):
    """Targets are tuple[str, ...], encoded as int64 classes per word; a logit per tag; trained by cross entropy.

    Tags that are all O, B-TYPE or I-TYPE mark spans; others are one name per word. An instance that has seen the tags
    of a data set in another `scheme` settles them as B-TYPE, I-TYPE and O.
    """

    per_word = True
    settings: type[Any] = TaggingSettings
    has_labels = True
    right_means = "every span with its borders and its type, or every tag"

    def __init__(self, scheme: TagScheme | None = None) -> None:
        self.scheme = scheme
        self.repairs = f"{'I- tags' if scheme is None else 'Tags inside a span'} that continue nothing, read as B-"
        self.rewrites = scheme.description if scheme else ""

    def having_seen(self, targets: Collection[str], task: Task) -> tuple[Tagging, Task]:
        """Return the kind that settles targets with these tags, and the task with its labels rewritten alike."""
        scheme = scheme_of({*targets, *task.labels}) or scheme_of(targets)
        if scheme is None:
            return self, task
        return Tagging(scheme), task.resolved(labels=tuple(dict.fromkeys(map(scheme.written, task.labels))))

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> tuple[str, ...]:
        """Return the tags unchanged."""
        if isinstance(text, str):
            raise DataError(
                "one text, where every word has a tag",
                where=where,
                got=clip(text),
                expected="a list of tags, one for each word",
                do='use a CoNLL file, or JSONL like {"tokens": ["…"], "tags": ["…"]}',
            )
        for tag in set(text):
            require_label(tag, task, where)
        return text

    def settle(
        self, target: tuple[str, ...], inputs: Mapping[str, Any], task: Task, where: str
    ) -> tuple[tuple[str, ...], int]:
        """Replace every I- that continues nothing by B-, and count these; raise `DataError` if the task refuses them.

        Raises `DataError` also where the numbers of tags and words differ, and for a tag that the task does not list.
        """
        words = inputs["words"]
        if len(words) != len(target):
            raise DataError(
                "the numbers of words and tags differ",
                where=where,
                got=f"{len(words)} words, {len(target)} tags",
                expected="a tag for each word",
                do="mend the row or remove it",
            )
        if self.scheme is None:
            whole = mend_tags(target)
            strays = [place for place, pair in enumerate(zip(target, whole, strict=True)) if pair[0] != pair[1]]
        else:
            whole, strays = self.scheme.read(target)
        if task.labels:
            for tag in set(target if self.scheme is None else whole):
                require_label(tag, task, where)
        if strays and task.settings.stray_tags == "refuse":
            first = strays[0]
            before = repr(target[first - 1]) if first else "the beginning"
            raise DataError(
                f"the tag {target[first]!r} continues nothing",
                where=where,
                got=f"word {first + 1}, {clip(words[first])}, after {before}",
                expected=f"the beginning of a span, written {whole[first]!r}, or this tag after one of the same type",
                do="mend it, or let such tags be read as B-: --stray-tags repair",
            )
        return whole, len(strays)

    def resolve(self, task: Task, targets: Sequence[Any]) -> Task:
        """Fill in labels and metrics.

        Raises `DataError` for a single tag, or if only some tags mark spans.
        """
        labels = resolve_labels(task, targets)
        if any(label.startswith((BEGIN, INSIDE)) for label in labels):
            _require_spans(labels, task)
        if len(labels) < 2:
            raise DataError(
                "all words have the same tag: there is nothing to learn",
                where=str(task.data),
                got=", ".join(map(clip, labels)) or "no words",
                expected="two tags or more",
                do="choose another column with --label",
            )
        require_weights(task, labels)
        metrics = METRICS_OF_SPANS if marks_spans(labels) else METRICS
        return task.resolved(labels=labels, metrics=task.metrics or metrics)

    def strata(self, targets: Sequence[Any]) -> list[Hashable]:
        """Return the rarest of each example's tags, so that even that occurs in train."""
        examples = Counter(tag for target in targets for tag in set(target))
        return [min(set(target), key=lambda tag: (examples[tag], tag)) for target in targets]

    def encode(self, targets: Sequence[Any], task: Task) -> Ragged:
        """Return (W,) int64 classes. Raises `DataError` naming a tag that the task does not have."""
        import numpy as np

        from graftwork.core.ragged import Ragged

        indices = label_indices(task)
        for tag in {tag for target in targets for tag in target} - indices.keys():
            require_label(tag, task, "")
        return Ragged.of([[indices[tag] for tag in target] for target in targets], np.int64)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of (W, C) logits and (W,) tags, mean over W, in nats; 0 for no words."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, targets) if len(targets) else logits.sum()

    def teaching_loss(self, logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """Divergence of the tag probabilities (W, C) at a temperature, mean over W, in nats."""
        from graftwork.nn.soft_targets import softmax_divergence

        return softmax_divergence(logits, teacher, temperature)

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """Return (C,) log shares of the tags."""
        import numpy as np

        counts = np.bincount(targets.flat, minlength=self.outputs(task))
        return np.asarray(np.log(np.maximum(counts / max(1, len(targets.flat)), 1e-9)))

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """(W, C) -> (W,) tag of the highest logit, the first of ties."""
        import numpy as np

        from graftwork.core.ragged import Ragged

        return Ragged(logits.flat.argmax(axis=1).astype(np.int64), logits.counts)

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, C) -> per example `{"spans": [{"label", "start", "end", "text", "probability"}, …]}`, or
        `{"tags": [tag, …], "words": …, "probabilities": …}` where tags mark no spans.

        `start` and `end` are character offsets in the text that the words were split from, or in the words joined by
        spaces. A span's probability is that of all its tags, as if they were independent.
        """
        from scipy.special import softmax

        tags = self.predictions(logits, task)
        chances = softmax(logits.flat, axis=1).max(axis=1)  # (W,)
        if marks_spans(task.labels):
            return _spans(tags, chances, task, examples)
        names, starts = [task.labels[tag] for tag in tags.flat.tolist()], tags.starts.tolist()
        return [
            {
                "tags": names[start : start + len(example.inputs["words"])],
                "words": list(example.inputs["words"]),
                "probabilities": chances[start : start + len(example.inputs["words"])].tolist(),
            }
            for start, example in zip(starts, examples, strict=True)
        ]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the spans with their offsets, or every word with its tag."""
        if "spans" in answer:
            return "   ".join(map(_formatted, answer["spans"])) or "(none)"
        return " ".join(f"{word}/{tag}" for word, tag in zip(answer["words"], answer["tags"], strict=True))

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"spans": […]}`, or `{"tags": […], "words": […]}` where tags mark no spans."""
        if not marks_spans(task.labels):
            return {"tags": list(example.target), "words": list(example.inputs["words"])}
        import numpy as np

        return _spans(self.encode([example.target], task), np.ones(len(example.target)), task, [example])[0]

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the spans with their types, or every word with its tag."""
        if "spans" in answer:
            return "; ".join(f"{span['text']} ({span['label']})" for span in answer["spans"]) or "(none)"
        return self.sentence(answer)

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return an outcome for every span of either, or for every word."""
        if "spans" in expected:
            return span_outcomes(expected["spans"], answer["spans"])
        return [Outcome(a, b, a == b) for a, b in zip(expected["tags"], answer["tags"], strict=True)]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the types of spans, or the tags."""
        if not marks_spans(task.labels):
            return task.labels
        return sorted({label[2:] for label in task.labels if label != OUTSIDE})


def _formatted(span: Mapping[str, Any]) -> str:
    """Format a span: `Disease: muscular dystrophy (12-30, 0.981)`."""
    return f"{span['label']}: {span['text']} ({span['start']}-{span['end']}, {span['probability']:.3f})"


def _require_spans(labels: Sequence[str], task: Task) -> None:
    """Raise `DataError` unless all of these tags are O, B-TYPE and I-TYPE."""
    odd = [label for label in labels if label != OUTSIDE and not label.startswith((BEGIN, INSIDE))]
    if odd:
        worst = next((label for label in odd if label[:1] not in LETTERS or label[1:2] != "-"), odd[0])
        raise DataError(
            "some tags mark spans and some do not",
            where=str(task.data),
            got=", ".join(map(clip, labels[:10])),
            expected="all of one scheme (O, B- and I-; with E- and S-, or L- and U-), or none of them",
            do=f"mend {clip(worst)}",
        )


def _spans(tags: Ragged, chances: NDArray[np.float64], task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Return each example's spans as JSON."""
    found = spans_of(tags, task.labels, strict=False)
    answers: list[dict[str, Any]] = [{"spans": []} for _ in examples]
    owners, starts = tags.owners[found.start], tags.starts
    places: dict[int, list[tuple[int, int]]] = {}
    for owner, start, end in zip(owners.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
        words = examples[owner].inputs["words"]
        text = examples[owner].source or text_of(words)
        if owner not in places:
            places[owner] = word_places(words, text)
        first, last = places[owner][start - starts[owner]], places[owner][end - 1 - starts[owner]]
        answers[owner]["spans"].append(
            {
                "label": task.labels[tags.flat[start]][2:],
                "start": first[0],
                "end": last[1],
                "text": text[first[0] : last[1]],
                "probability": float(chances[start:end].prod()),
            }
        )
    return answers


kinds.register("tagging")(Tagging())
