"""Verbalised: the answer is a text. An encoder-decoder is trained to generate labels or numbers as text, and each
possible answer is scored by its likelihood; an answer that is part of the input is generated, then located in the input
(T5, Raffel et al. 2020, arXiv:1910.10683)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.core.kind import FindsTexts
from graftwork.core.method import Entries, Logits, OfKinds, Setting, Workbench
from graftwork.core.part_settings import TOLD
from graftwork.core.task import Split, Task
from graftwork.core.writing import TextWriter, reading_part
from graftwork.errors import ConfigError, clip
from graftwork.pretrained.open_backbone import can_write
from graftwork.registry import kinds, methods
from graftwork.targets.verbal_answers import NO_ANSWER, NO_PREFIX, VerbalAnswers, source_of, verbal_answers
from graftwork.train.answer_likelihoods import answer_likelihoods
from graftwork.train.flops import count_flops
from graftwork.train.frozen_pass import FrozenStore
from graftwork.train.loop import Attaches
from graftwork.train.placed_answers import PlacedAnswers, taught_parts
from graftwork.train.prompted_model import WITH_DECODER, opened_to_write
from graftwork.train.text_loop import FittedWriter, writer_of
from graftwork.train.wrapper_method import WrapperMethod, method_by, sharing_under, unfit_over

KINDS = ("classification", "regression", "choice")  # kinds with a closed set of answers; `FindsTexts` ones fit too
Lesson = tuple[Mapping[str, Sequence[Example]], Mapping[str, list[str]], dict[str, Any]]
# split -> input examples, split -> target texts, and facts: the longest target in tokens, the possible answers, …
WRITES = "generation"  # the kind of the task that `by` is trained on
LONGEST = 512  # tokens of an answer, at most


@dataclass
class FittedVerbalised:
    """A trained text-generating network, and the possible answers of a task as texts. Implements `Fitted`."""

    writer: FittedWriter
    answers: VerbalAnswers
    prefix: str
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """The trained parameters of the network."""
        return self.writer.trained_parameters

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the log-likelihoods of the answers, (N, C) or (W, 1); in regression the expected number, (N, 1)."""
        model, texts = self.writer.model, self.answers.of(examples)
        encoded = model.backbone.encode(sources(examples, self.prefix))
        chances = answer_likelihoods(model, encoded, writer_of(model).encode_texts(texts, LONGEST)[0])
        return self.answers.logits(chances, examples)

    def outside(self, examples: Sequence[Example]) -> int:
        """Count the examples whose freely generated text is truncated or is none of the possible answers."""
        writer = writer_of(self.writer.model)
        tokens = writer.encode_texts(self.answers.of(examples), LONGEST)[0]
        known = {writer.text_of(answer).strip() for answer in tokens}
        free = self.writer.logits(sources(examples, self.prefix))
        return sum(cut or text.strip() not in known for text, _, cut, _ in free.tolist())

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the trained parameters by name."""
        return self.writer.delta()

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of predicting these examples: the encoder once, the decoder once per possible answer."""
        return count_flops(lambda: self.logits(examples))[1], "counter"


def sources(examples: Sequence[Example], prefix: str) -> list[Example]:
    """Return the examples as single input texts with named fields."""
    return [source_of(example, prefix) for example in examples]


@methods.register("verbalised")
@dataclass(frozen=True)
class Verbalised(WrapperMethod):
    """The method `by`, trained to write a task's answers; they are then scored by their likelihood, or looked up."""

    prefix: str = NO_PREFIX  # precedes the fields, such as the name of a task that the network was tuned on: mrpc, stsb
    step: float = 0.0  # numbers of a regression are rounded to multiples of it; 0: about 26 of them, by their range
    by: str = field(default="lora", metadata={TOLD: True})  # how the network is trained, with its hyper-parameters

    WRITES: ClassVar[bool] = True
    BOARD: ClassVar[Entries] = ()  # on a board only if requested
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the task has texts and one of `answered_kinds`, and the backbone has a decoder."""
        answered = answered_kinds()
        if task.reads != "text" or task.kind not in answered:
            return f"it answers {', '.join(answered)} of texts, and this task is {task.kind} of {task.reads}s"
        if self.step < 0:
            return f"step must be 0 or more, not {self.step:g}"
        below = method_by(self.by)
        if not isinstance(below, Attaches) or WRITES not in (below.KINDS if isinstance(below, OfKinds) else ()):
            return unfit_over(self.by) or f"{self.by} trains no network that writes"
        if card is not None and not can_write(card.id):
            return f"{card.id} writes no texts, as T5 with its decoder does"
        return below.unfit(written_task(task, LONGEST), card)

    def fit(self, bench: Workbench) -> FittedVerbalised | PlacedAnswers:
        """Train the network to generate the right answers. Raises `ConfigError` if two answers have the same tokens."""
        task, name = bench.setting.task, f"verbalised {self.prefix!r}"
        network = bench.once(WITH_DECODER, lambda tally: opened_to_write(bench.setting))
        store = bench.once(name, lambda tally: FrozenStore())
        lesson = self._lesson_of_parts if isinstance(bench.setting.kind, FindsTexts) else self._lesson
        shown, right, asked = lesson(bench, network)
        setting = Setting(written_task(task, asked["longest"]), kinds.get(WRITES), network)

        def told(split: Split) -> Split:
            targets = setting.kind.encode([(text,) for text in right[split.name]], setting.task)
            return replace(split, examples=tuple(sources(shown[split.name], self.prefix)), targets=targets)

        inner = replace(
            sharing_under(bench, name),
            setting=setting,
            train=told(bench.train),
            validation=told(bench.validation),
            passes=store.of(reading_part(network), name),
        )
        writer = method_by(self.by).fit(inner)
        assert isinstance(writer, FittedWriter)
        fitted = self._over(writer, task, asked)
        with bench.profile.phase("evaluate"):
            outside, flops = count_flops(lambda: fitted.outside(bench.validation.examples))
        bench.tally.add(flops)
        fitted.facts = {
            **writer.facts,
            "source": inner.train.examples[0].inputs["text"],
            **asked,
            "validation_rows": len(bench.validation.examples),
            "validation_written_outside": outside,
        }
        return fitted

    def _lesson(self, bench: Workbench, network: Backbone) -> Lesson:
        """Return inputs and target texts for a closed set of answers."""
        answers = verbal_answers(bench.setting.task, [example.target for example in bench.train.examples], self.step)
        splits = (bench.train, bench.validation)
        longest = longest_of(network, answers.of([example for split in splits for example in split.examples]))
        right = {split.name: [answers.right(target) for target in split.targets] for split in splits}
        shown = {split.name: split.examples for split in splits}
        return shown, right, {"answers": list(answers.texts), "numbers": list(answers.numbers), "longest": longest}

    def _lesson_of_parts(self, bench: Workbench, network: Backbone) -> Lesson:
        """Return inputs and target texts for answers that are parts of the input."""
        kind, splits = bench.setting.kind, (bench.train, bench.validation)
        assert isinstance(kind, FindsTexts) and isinstance(network, TextWriter)
        shown = {split.name: taught_parts(network, split.examples, self.prefix, kind) for split in splits}
        right = {split.name: [kind.as_text(one.target) or NO_ANSWER for one in split.examples] for split in splits}
        tokens = network.encode_texts([NO_ANSWER, *right[bench.train.name]], LONGEST)[0]
        pairs = zip(shown[bench.train.name], bench.train.examples, strict=True)
        divided = sum(len(part.inputs["words"]) < len(whole.inputs["words"]) for part, whole in pairs)
        return shown, right, {"longest": max(map(len, tokens)), "train_rows_in_parts": divided}

    def _over(self, writer: FittedWriter, task: Task, facts: Mapping[str, Any]) -> FittedVerbalised | PlacedAnswers:
        if isinstance(kinds.get(task.kind), FindsTexts):
            return PlacedAnswers(writer, task, self.prefix, facts)
        answers = VerbalAnswers(tuple(facts["answers"]), tuple(facts["numbers"]))
        return FittedVerbalised(writer, answers, self.prefix, facts)

    def restore(
        self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]
    ) -> FittedVerbalised | PlacedAnswers:
        """Open the backbone with its decoder, and restore `by` on it."""
        inner = Setting(written_task(setting.task, facts["longest"]), kinds.get(WRITES), opened_to_write(setting))
        writer = method_by(self.by).restore(inner, delta, facts)
        assert isinstance(writer, FittedWriter)
        return self._over(writer, setting.task, facts)


def answered_kinds() -> list[str]:
    """Return the kinds of task that `Verbalised` supports."""
    return [*KINDS, *(name for name in kinds.names() if isinstance(kinds.get(name), FindsTexts))]


def written_task(task: Task, longest: int) -> Task:
    """Return the generation task whose targets are the answers of `task`, of at most `longest` tokens."""
    question = {"kind": WRITES, "labels": (), "metrics": ("exact_match",), "longest": longest}
    return Task.from_question(task.name, question)


def longest_of(network: Backbone, texts: Sequence[str]) -> int:
    """Return the length of the longest answer in tokens. Raises `ConfigError` if two answers have the same tokens."""
    assert isinstance(network, TextWriter)
    tokens = network.encode_texts(texts, LONGEST)[0]
    for text, answer in zip(texts, tokens, strict=True):
        like = texts[tokens.index(answer)]
        if like != text:
            raise ConfigError(
                "two labels are the same tokens to the backbone, which could not tell them apart",
                where=network.reading.card.id,
                got=f"{clip(like)} and {clip(text)}",
                do="rename one of them, or use a method that gives labels a head of their own: by itself lora or full",
            )
    return max(map(len, tokens))
