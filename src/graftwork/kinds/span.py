"""Span: extractive question answering. The answer to a question is a span of its passage."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from graftwork.core.example import Example
from graftwork.core.kind_settings import DERIVED
from graftwork.core.outcome import Outcome
from graftwork.core.task import Task
from graftwork.errors import DataError, clip
from graftwork.registry import kinds
from graftwork.targets.answer_scores import words_f1
from graftwork.targets.passages import Golds, Passage, Passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from graftwork.core.ragged import Ragged

METRICS = ("span_f1", "exact_match")
START, END, OWNER = 0, 1, 2  # columns of encoded targets
N_BEST = 5
ANSWER, PARTLY, ELSEWHERE, NONE = "the answer", "a part of it, or more", "another place", "no answer"  # outcomes
UNSEEN = -20.0  # logits of a word outside the network's input: below those of words in it


@dataclass(frozen=True)
class SpanSettings:
    """The settings of extractive question answering."""

    realign: bool = False  # take an answer that is not at its offset where it is nearest to it
    unanswerable: bool = field(default=False, metadata=DERIVED)  # some training questions have no answer


class Span:
    """Targets are `Golds`, encoded as int64 rows (is start, is end, example): "no answer", then the words.

    Two logits per row, start and end; trained by cross entropy over the rows of each example, on its first gold answer.
    """

    per_word = True
    settings: type[Any] = SpanSettings
    has_labels = False
    repairs = ""
    right_means = "the words of a right answer, or no answer where there is none"
    longest = 30  # maximum words of a predicted answer: right ones are rarely longer, wrong ones often

    def parse(self, text: str | tuple[str, ...], task: Task, where: str) -> NoReturn:
        """Raise `DataError`: an answer is meaningless without its passage, so whole questions are read."""
        raise DataError(
            "an answer without its question and passage",
            where=where,
            got=clip(text if isinstance(text, str) else ", ".join(text)),
            expected='JSONL like {"context": "…", "question": "…", "answers": […]}, or the JSON of SQuAD',
        )

    def settle(self, target: Golds, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[Golds, int]:
        """Return the target unchanged, with no repairs: it was already located in its passage."""
        return target, 0

    def resolve(self, task: Task, targets: Sequence[Golds]) -> Task:
        """Fill in metrics, and whether questions may lack an answer. Raises `DataError` where no question has one."""
        if not any(targets):
            raise DataError(
                "no training question has an answer: there is nothing to learn",
                where=str(task.data),
                do="add questions whose answers are in their passages",
            )
        return task.resolved(metrics=task.metrics or METRICS, unanswerable=not all(targets))

    def strata(self, targets: Sequence[Golds]) -> list[Hashable]:
        """Return for each question whether it has an answer."""
        return [bool(target) for target in targets]

    def encode(self, targets: Sequence[Golds], task: Task) -> Ragged:
        """Return (W, 3) int64. An answer that begins or ends inside a word is widened to the whole word."""
        import numpy as np

        from graftwork.core.ragged import Ragged

        counts = np.array([1 + len(golds.passage.words) for golds in targets], dtype=np.int64)
        starts = np.cumsum(counts) - counts
        rows = np.zeros((int(counts.sum()), 3), dtype=np.int64)
        rows[:, OWNER] = np.repeat(np.arange(len(targets)), counts)
        about = np.empty(len(targets), dtype=np.object_)
        for number, (golds, start) in enumerate(zip(targets, starts.tolist(), strict=True)):
            about[number] = golds
            first, last = self.place_of(golds) or (-1, -1)
            rows[start + 1 + first, START] = rows[start + 1 + last, END] = 1
        return Ragged(rows, counts, about)

    def outputs(self, task: Task) -> int:
        """Return 2: start and end."""
        return 2

    def build_head(self, task: Task, width: int) -> nn.Module:
        """Build a linear layer (P -> 2), the same for every word."""
        from graftwork.targets.linear_head import PooledHead

        return PooledHead(width, 2)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of start and end over the rows of each example, mean of both and over examples, in nats.

        (W, 2) logits and (W, 3) targets of whole examples; 0 for none.
        """
        from graftwork.nn.segments import cross_entropy_of_segments

        entropies = [
            cross_entropy_of_segments(logits[:, i], targets[:, i] > 0, targets[:, OWNER]) for i in (START, END)
        ]
        return (entropies[0] + entropies[1]) / 2

    def weight(self, targets: Tensor) -> float:
        """Return the number of examples whose answer is in the input."""
        return float((targets[:, START] > 0).sum())

    def constant(self, targets: Ragged, task: Task) -> NDArray[np.float64]:
        """Return (2,) logits, the same for every row, so that none is preferred."""
        import numpy as np

        return np.full(2, UNSEEN)

    def predictions(self, logits: Ragged, task: Task) -> Ragged:
        """(W, 2) -> (W, 3): the best span of words, or no answer where allowed and scored at least as high."""
        import numpy as np

        from graftwork.core.ragged import Ragged
        from graftwork.targets.best_spans import best_spans

        found = best_spans(logits, self.longest)
        none = task.settings.unanswerable & (found.none >= found.score)
        rows = np.zeros((len(logits.flat), 3), dtype=np.int64)
        rows[:, OWNER] = logits.owners
        rows[logits.starts + np.where(none, 0, 1 + found.start), START] = 1
        rows[logits.starts + np.where(none, 0, 1 + found.end), END] = 1
        return Ragged(rows, logits.counts)

    def shift(self, logits: Ragged, targets: Ragged, task: Task) -> NDArray[np.float64] | None:
        """Return (2,) logit offsets of each example's first row that maximise F1; None if all questions have answers.

        Of equally good thresholds the middle one is used.
        """
        import numpy as np

        from graftwork.targets.answer_texts import found_texts
        from graftwork.targets.best_spans import best_spans

        if not task.settings.unanswerable or targets.about is None:
            return None
        found = best_spans(logits, self.longest)
        always = self.predictions(logits, task.resolved(unanswerable=False))
        texts = found_texts(always, targets.about)
        answered = np.array(
            [words_f1(golds.texts, text, True) for golds, text in zip(targets.about, texts, strict=True)]
        )
        silent = np.array([words_f1(golds.texts, "", True) for golds in targets.about])
        lead = found.score - found.none  # (N,) no answer is predicted where this is at most the threshold
        order = np.argsort(lead, kind="stable")
        gains = np.concatenate([[0.0], np.cumsum((silent - answered)[order])])  # the lowest 0 … N get no answer
        edges = np.concatenate([[lead[order[0]] - 1], lead[order], [lead[order[-1]] + 1]])
        between = np.flatnonzero(edges[1:] > edges[:-1])  # equal leads are on the same side of every threshold
        best = between[gains[between] >= gains[between].max() - 1e-9]
        chosen = best[len(best) // 2]
        return np.full(2, (edges[chosen] + edges[chosen + 1]) / 4)  # half of the threshold on start, half on end

    def decode(self, logits: Ragged, task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """(W, 2) -> `{"answer", "start", "end", "probability", "n_best": [the same of each, …]}` per example.

        `start` and `end` are character offsets in the passage; null, with answer "", where there is no answer. The
        probability is that of the start times that of the end, each a softmax over the whole passage.
        """
        passages = Passages()
        answers = []
        for rows, example in zip(logits, examples, strict=True):
            ranked = _ranked(rows, passages.of(example), self.longest, task.settings.unanswerable)
            answers.append({**ranked[0], "n_best": ranked})
        return answers

    def as_text(self, target: Golds) -> str:
        """Return the text of the first right answer; "" for no answer."""
        return target[0].text if target else ""

    def place_of(self, target: Golds) -> tuple[int, int] | None:
        """Return the first and the last word of the first right answer; None for no answer."""
        return target.passage.words_at(target[0].start, target[0].start + len(target[0].text)) if target else None

    def may_be_silent(self, task: Task) -> bool:
        """Return whether some training question has no answer."""
        return bool(task.settings.unanswerable)

    def found(self, texts: Sequence[str], examples: Sequence[Example]) -> list[tuple[tuple[int, int], float] | None]:
        """Return the first and last word of each text in its passage and 1.0, or the most similar span and its F1."""
        from graftwork.targets.written_spans import span_of

        passages = Passages()
        told = zip(texts, examples, strict=True)
        return [span_of(text, passages.of(example), example.inputs["question"]) for text, example in told]

    def likely(
        self,
        spans: Sequence[tuple[int, int] | None],
        chances: Sequence[float],
        silent: Sequence[float] | None,
        examples: Sequence[Example],
    ) -> Ragged:
        """Return logits (W, 2): start + end is the log-probability of the text, or of no answer in the first row."""
        from graftwork.targets.written_spans import likely_spans

        words = [len(example.inputs["words"]) for example in examples]
        return likely_spans(spans, chances, silent, words, self.longest)

    def answered(self, logits: Ragged, examples: Sequence[Example], task: Task) -> list[str]:
        """Return the predicted answers as they are in the passages; "" for no answer."""
        return [answer["answer"] for answer in self.decode(logits, task, examples)]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        """Format the answer, and the next best."""
        return "   ".join(map(_formatted, [answer, *answer["n_best"][1:2]]))

    def expected(self, example: Example, task: Task) -> dict[str, Any]:
        """Return `{"answer", "start", "end", "also": [further right answers]}`."""
        listed = [{"answer": gold.text, "start": gold.start, "end": gold.start + len(gold.text)}
                  for gold in example.target]  # fmt: skip
        return {**(listed[0] if listed else {"answer": "", "start": None, "end": None}), "also": listed[1:]}

    def brief(self, answer: Mapping[str, Any]) -> str:
        """Return the answer."""
        return str(answer["answer"] or NONE)

    def outcomes(self, expected: Mapping[str, Any], answer: Mapping[str, Any], task: Task) -> list[Outcome]:
        """Return one outcome: no answer, or whether the predicted one equals, overlaps or misses the right ones."""
        if expected["start"] is None:
            found = NONE if answer["start"] is None else ELSEWHERE
            return [Outcome(NONE, found, found == NONE)]
        if answer["start"] is None:
            return [Outcome(ANSWER, NONE, False)]
        golds = [expected, *expected["also"]]
        if words_f1([gold["answer"] for gold in golds], answer["answer"], True) == 1.0:
            return [Outcome(ANSWER, ANSWER, True)]
        meets = any(answer["start"] < gold["end"] and gold["start"] < answer["end"] for gold in golds)
        return [Outcome(ANSWER, PARTLY if meets else ELSEWHERE, False)]

    def outcome_names(self, task: Task) -> Sequence[str]:
        """Return the answer, its part, one elsewhere, and none."""
        return [ANSWER, PARTLY, ELSEWHERE, NONE]


def _formatted(answer: Mapping[str, Any]) -> str:
    """Format an answer: `in October 1973 (29-41, 0.874)`."""
    place = f"{answer['start']}-{answer['end']}, " if answer["start"] is not None else ""
    return f"{answer['answer'] or '(no answer)'} ({place}{answer['probability']:.3f})"


def _ranked(rows: NDArray[np.float64], passage: Passage, longest: int, unanswerable: bool) -> list[dict[str, Any]]:
    """Return the best answers to one question, best first, including "no answer" if `unanswerable`."""
    from scipy.special import softmax

    from graftwork.targets.best_spans import ranked_spans

    chances = softmax(rows if unanswerable else rows[1:], axis=0)  # (W, 2) or (W - 1, 2)
    words = chances[-(len(rows) - 1) :]  # (W - 1, 2)
    spans = ranked_spans(rows[1:], longest, N_BEST)
    found: list[dict[str, Any]] = [
        {
            "answer": passage.between(first, last),
            "start": passage.starts[first],
            "end": passage.ends[last],
            "probability": float(words[first, START] * words[last, END]),
        }
        for first, last in spans
    ]
    if unanswerable:
        none = {"answer": "", "start": None, "end": None, "probability": float(chances[0].prod())}
        better = sum(rows[1 + first, START] + rows[1 + last, END] > rows[0].sum() for first, last in spans)
        found.insert(int(better), none)
    return found


kinds.register("span")(Span())
