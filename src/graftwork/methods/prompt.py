"""Prompt: a language model is asked, and each label gets the likelihood of being the answer; nothing is trained
(Brown et al. 2020, arXiv:2005.14165; calibrated as in Zhao et al. 2021, arXiv:2102.09690)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from torch import Tensor

from graftwork.core.backbone import BackboneCard, ContinuesTexts
from graftwork.core.example import Example
from graftwork.core.language_model import Earlier, NextTokenModel
from graftwork.core.method import CONTENT, Entries, Logits, Setting, Workbench
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.errors import UnknownName
from graftwork.io.files import file_digest
from graftwork.registry import methods
from graftwork.targets.prompt_templates import FORMS, Template, form_of, own_file, templates_for
from graftwork.targets.prompts import Prompts, drawn_shots
from graftwork.train.continuations import Asked, asked_of, log_likelihoods, read_before
from graftwork.train.flops import counted
from graftwork.train.prompt_room import cut_to_fit, with_fitting_shots
from graftwork.train.seeds import derive

CALIBRATIONS = ("none", "contextual")
NORMALISATIONS = ("none", "tokens", "characters")
CONTENT_FREE = ("N/A", "", "[MASK]")  # of Zhao et al.
KINDS = ("classification", "choice")


@dataclass
class Prompted:
    """A language model with a prompt. What all prompts begin with is read once, and kept."""

    model: NextTokenModel
    prompts: Prompts
    normalise: str
    content_free: NDArray[np.float64] | None  # (C,) log-probabilities of labels without content; None: not calibrated
    facts: Mapping[str, Any]
    trained_parameters: int = 0

    @cached_property
    def beginning(self) -> list[int]:
        """The tokens that all prompts begin with: where a text follows, the last ones may be others."""
        letters = dict.fromkeys(("text", "text_a", "text_b"), "A")
        alone, followed = self.model.tokens([self.prompts.before, self.prompts.context(letters)])
        same = [one == other for one, other in zip(alone, followed, strict=False)]
        return alone[: [*same, False].index(False)]

    @cached_property
    def _kept(self) -> Earlier | None:
        return read_before(self.model, self.beginning) if self.beginning else None

    def read_beginning(self) -> Earlier | None:
        """Read what all prompts begin with, now rather than at the first answer."""
        return self._kept

    def asked(self, examples: Sequence[Example]) -> tuple[list[Asked], int]:
        """Return the prompts of examples with their answers, and how many had to be cut."""
        inputs, ways = [dict(example.inputs) for example in examples], list(map(self.prompts.answers, examples))
        asked = asked_of(self.model, list(map(self.prompts.context, inputs)), ways)
        long = [place for place, one in enumerate(asked) if one.most > self.model.context]
        for place in long:
            asked[place] = cut_to_fit(self.model, self.prompts, inputs[place], ways[place], asked[place])
        return asked, len(long)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return (N, C), or (W, 1) for choices: the log-likelihood of each answer."""
        return self._scores(examples, self.asked(examples)[0])

    def _scores(self, examples: Sequence[Example], asked: Sequence[Asked]) -> Logits:
        scores: list[list[float]] = [[] for _ in asked]
        shared, first = len(self.beginning), self.beginning
        begun = [one.context[:shared] == first and len(one.context) > shared for one in asked]
        for kept in (True, False):  # a prompt that is cut, or tokenised in another way, is read whole
            rows = [row for row, same in enumerate(begun) if same == kept]
            behind = [asked[row].behind(shared if kept else 0) for row in rows]
            found = log_likelihoods(self.model, behind, self._kept if kept else None) if rows else []
            for row, answered in zip(rows, found, strict=True):
                scores[row] = answered
        divided = [
            [score / length for score, length in zip(row, self._lengths(example, one), strict=True)]
            for row, example, one in zip(scores, examples, asked, strict=True)
        ]
        if self.prompts.of_choices:
            return Ragged.of([[(score,) for score in row] for row in divided], np.float64)
        logits = np.array(divided, dtype=np.float64).reshape(len(examples), len(self.prompts.words))
        return logits if self.content_free is None else logits - self.content_free

    def _lengths(self, example: Example, asked: Asked) -> list[int]:
        """Return what the log-likelihood of each answer is divided by."""
        if self.normalise == "tokens":
            return [len(way) for way in asked.continuations]
        if self.normalise == "characters":
            return [len(answer) for answer in self.prompts.answers(example)]
        return [1] * len(asked.continuations)

    def delta(self) -> dict[str, NDArray[np.float64]]:
        """Return the calibration, if any; the prompt is in the facts."""
        return {} if self.content_free is None else {"content_free": self.content_free}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of answering these, with what all prompts begin with already read."""
        self.read_beginning()
        return counted(lambda: self.logits(examples))[1], "counter"


@methods.register("prompt")
@dataclass(frozen=True)
class Prompt:
    """A language model that is asked by a template, after some examples with their answers, and not trained."""

    shots: int = 8  # examples with their answers before the question, balanced over the classes, drawn from train
    template: str = "drawn"  # a built-in one by its name, or a TOML file of your own; "drawn": one by the seed
    calibrate: str = "none"  # "contextual": answers are seen relative to those on texts without content
    normalise: str = "none"  # divide log-likelihoods by the number of "tokens" or "characters" of an answer

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    BOARD: ClassVar[Entries] = ()  # on a board only where it is named
    DRAWS: ClassVar[tuple[str, ...]] = ("templates", "shots")

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless a language model is asked about texts, pairs or choices."""
        if self.shots < 0:
            return f"shots must be 0 or more, not {self.shots}"
        for name, given, known in (
            ("calibrate", self.calibrate, CALIBRATIONS),
            ("normalise", self.normalise, NORMALISATIONS),
        ):
            if given not in known:
                return f"{name} must be one of {', '.join(known)}, not {given!r}"
        if task.kind not in KINDS or task.reads != "text":
            return f"it chooses one of some answers to a text, and this task is {task.kind} of {task.reads}s"
        if task.kind == "choice" and self.calibrate != "none":
            return "calibration is of labels that are the same for every example, and choices are not"
        if card is not None and not card.continues:
            return f"{card.id} is no left-to-right language model with its head"
        try:
            templates_for(self.template, task)
        except UnknownName as error:
            return f"template: {error.what}, expected {error.expected}"
        return ""

    def identity(self) -> dict[str, Any]:
        """Return the content hash of a file of templates for a run's identity."""
        path = own_file(self.template)
        return {} if path is None else {"template": CONTENT + file_digest(path)}

    def fit(self, bench: Workbench) -> Prompted:
        """Draw a template and shots, keep the shots that fit into the context, and read them."""
        task, model = bench.setting.task, cast(ContinuesTexts, bench.setting.backbone).language_model()
        choices = templates_for(self.template, task)
        template = choices[derive(bench.seed_of("templates"), "templates") % len(choices)]
        random = np.random.default_rng(derive(bench.seed_of("shots"), "shots"))
        drawn = drawn_shots(bench.train, task, self.shots, random)
        prompts, shots = with_fitting_shots(
            model, Prompts(template, template.words_of(task.labels)), drawn, task, bench.validation.examples
        )
        fitted = Prompted(model, prompts, self.normalise, None, {})
        bench.tally.add(counted(fitted.read_beginning)[1])
        if self.calibrate == "contextual":
            found, flops = counted(lambda: fitted.logits(prompts.without_content(FORMS[form_of(task)], CONTENT_FREE)))
            bench.tally.add(flops)
            scores = np.asarray(found)  # (3, C)
            shares = scores - logsumexp(scores, axis=1, keepdims=True)
            fitted.content_free = logsumexp(shares, axis=0) - np.log(len(shares))
        asked, cut = fitted.asked(bench.validation.examples)
        read = [len(one.context) for one in asked]
        fitted.facts = {
            "start_block": 0,
            "template": template.as_json(),
            "words": list(prompts.words),
            "shots": [{"id": example.id, "text": text} for example, text in zip(shots, prompts.shots, strict=True)],
            "shots_asked": self.shots,
            "shots_dropped": len(drawn) - len(shots),
            "prompt_tokens": round(sum(read) / len(read), 1),
            "tokens_read_once": len(fitted.beginning),
            "validation_cut": cut,
        }
        return fitted

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Prompted:
        """Restore the prompt from the facts; its files are not needed."""
        model = cast(ContinuesTexts, setting.backbone).language_model()
        shots = tuple(shot["text"] for shot in facts["shots"])
        prompts = Prompts(Template.from_json(facts["template"]), tuple(facts["words"]), shots)
        content_free = delta["content_free"].numpy() if "content_free" in delta else None
        return Prompted(model, prompts, self.normalise, content_free, facts)
