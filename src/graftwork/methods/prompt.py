"""Prompt: a language model is asked, and each label gets the likelihood of being the answer; nothing is trained
(Brown et al. 2020, arXiv:2005.14165; calibrated as in Zhao et al. 2021, arXiv:2102.09690)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import CONTENT, Entries, Setting, Workbench
from graftwork.core.task import Task
from graftwork.core.writing import TextSearch
from graftwork.errors import UnknownName
from graftwork.io.files import file_digest
from graftwork.registry import methods
from graftwork.targets.prompt_templates import FORMS, Template, form_of, own_file, templates_for
from graftwork.targets.prompts import Prompts, drawn_shots, label_words, right_word
from graftwork.train.flops import count_flops
from graftwork.train.prompt_room import with_fitting_shots
from graftwork.train.prompt_tokens import PromptedModel, require_apart
from graftwork.train.prompted import Prompted, PromptedWriter
from graftwork.train.prompted_model import WITH_DECODER, answers_prompts, no_model, opened_to_write, prompted_model_of
from graftwork.train.seeds import derive

ANSWERS = ("likelihood", "written")
CALIBRATIONS = ("none", "contextual")
NORMALISATIONS = ("none", "tokens", "characters")
CONTENT_FREE = ("N/A", "", "[MASK]")  # texts without content, as in Zhao et al. 2021
KINDS = ("classification", "choice", "regression", "generation")


@methods.register("prompt")
@dataclass(frozen=True)
class Prompt:
    """A language model that is asked by a template, after some examples with their answers, and not trained."""

    shots: int = 8  # examples with their answers before the question, balanced over the classes, drawn from train
    template: str = "drawn"  # a built-in one by its name, or a TOML file of your own; "drawn": one by the seed
    answer: str = "likelihood"  # scores each possible answer by its likelihood; "written": generates one
    calibrate: str = "none"  # "contextual": scores are relative to those on texts without content
    normalise: str = "none"  # divide log-likelihoods by the number of "tokens" or "characters" of an answer

    VERSION: ClassVar[int] = 2
    KINDS: ClassVar[tuple[str, ...]] = KINDS
    uses_backbone: ClassVar[bool] = True
    BOARD: ClassVar[Entries] = ()  # on a board only if requested
    DRAWS: ClassVar[tuple[str, ...]] = ("templates", "shots")

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless the backbone is a language model, and the task has texts and one of `KINDS`."""
        if self.shots < 0:
            return f"shots must be 0 or more, not {self.shots}"
        for name, given, known in (
            ("answer", self.answer, ANSWERS),
            ("calibrate", self.calibrate, CALIBRATIONS),
            ("normalise", self.normalise, NORMALISATIONS),
        ):
            if given not in known:
                return f"{name} must be one of {', '.join(known)}, not {given!r}"
        if task.kind not in KINDS or task.reads != "text":
            return f"it answers {', '.join(KINDS)} of texts, and this task is {task.kind} of {task.reads}s"
        scales = self.calibrate != "none" or self.normalise != "none"
        if scales and (self.answer == "written" or task.kind == "generation"):
            return "calibrate and normalise are for likelihoods, and its answers are written"
        if self.calibrate != "none" and task.kind != "classification":
            return "calibration is of labels that are the same for every example, and other answers are not"
        if reason := _why_not(task, card):
            return reason
        try:
            templates_for(self.template, task)
        except UnknownName as error:
            return f"template: {error.what}, expected {error.expected}"
        return ""

    def identity(self) -> dict[str, Any]:
        """Return the content hash of a file of templates for a run's identity."""
        path = own_file(self.template)
        return {} if path is None else {"template": CONTENT + file_digest(path)}

    def fit(self, bench: Workbench) -> Prompted | PromptedWriter:
        """Draw a template and shots, keep the shots that fit into the context, and encode the prompts' beginning."""
        setting, task = bench.setting, bench.setting.task
        assert setting.backbone is not None
        model = prompted_model_of(
            setting.backbone
            if answers_prompts(setting.backbone)
            else bench.once(WITH_DECODER, lambda tally: opened_to_write(setting))
        )
        choices = templates_for(self.template, task)
        template = choices[derive(bench.seed_of("templates"), "templates") % len(choices)]
        answers = label_words(template, task, [example.target for example in bench.train.examples])
        random = np.random.default_rng(derive(bench.seed_of("shots"), "shots"))
        drawn = [(one, right_word(answers, task, one)) for one in drawn_shots(bench.train, task, self.shots, random)]
        reserve = model.reserve(TextSearch.of(task)) if template.is_free else 0
        prompts, shots = with_fitting_shots(
            model, Prompts(template, answers.texts), drawn, bench.validation.examples, reserve
        )
        fitted = self._over(model, prompts, answers.numbers, task)
        read_once = count_flops(model.read_beginning)[1]
        bench.tally.add(read_once)
        if self.calibrate == "contextual" and isinstance(fitted, Prompted):
            empty = prompts.without_content(FORMS[form_of(task)], CONTENT_FREE)
            found, flops = count_flops(lambda: fitted.logits(empty))
            bench.tally.add(flops)
            scores = np.asarray(found)  # (3, C)
            shares = scores - logsumexp(scores, axis=1, keepdims=True)
            fitted.content_free = logsumexp(shares, axis=0) - np.log(len(shares))
        asked, cut = fitted.tokenised(bench.validation.examples)
        if answers.texts:
            require_apart(asked[0], answers.texts, model.reader.name)
        read = [len(one.context) for one in asked]
        fitted.facts = {
            "start_block": 0,
            "template": template.as_json(),
            "words": list(prompts.words),
            "numbers": list(answers.numbers),
            "shots": [{"id": example.id, "text": text} for example, text in zip(shots, prompts.shots, strict=True)],
            "shots_asked": self.shots,
            "shots_dropped": len(drawn) - len(shots),
            "prompt_tokens": round(sum(read) / len(read), 1),
            "tokens_read_once": len(model.beginning),
            "flops_read_once": read_once,
            "validation_cut": cut,
        }
        return fitted

    def restore(
        self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]
    ) -> Prompted | PromptedWriter:
        """Restore the prompt from the facts; no template file is needed."""
        assert setting.backbone is not None
        model = prompted_model_of(setting.backbone if answers_prompts(setting.backbone) else opened_to_write(setting))
        shots = tuple(shot["text"] for shot in facts["shots"])
        prompts = Prompts(Template.from_json(facts["template"]), tuple(facts["words"]), shots)
        fitted = self._over(model, prompts, tuple(facts["numbers"]), setting.task)
        if isinstance(fitted, Prompted) and "content_free" in delta:
            fitted.content_free = delta["content_free"].numpy()
        fitted.facts = facts
        return fitted

    def _over(
        self, model: PromptedModel, prompts: Prompts, numbers: tuple[float, ...], task: Task
    ) -> Prompted | PromptedWriter:
        """Return the fitted prompt over `model`, which is given the text that all prompts begin with."""
        letters = dict.fromkeys(FORMS[prompts.template.form], "A")
        model.begin(prompts.before, prompts.context(letters))
        if prompts.template.is_free:
            return PromptedWriter(model, prompts, TextSearch.of(task), {})
        return Prompted(model, prompts, numbers, self.answer == "written", self.normalise, None, {})


def _why_not(task: Task, card: BackboneCard | None) -> str:
    """Return the reason that a backbone cannot be prompted for a task, or an empty string."""
    if card is None:
        return ""
    if reason := no_model(card):
        return reason
    if task.kind == "generation" and card.continues and (task.settings.beams > 1 or task.settings.no_repeat):
        return "a left-to-right language model writes greedily here: beams 1, no_repeat 0"
    if getattr(task.settings, "source_prefix", None):
        return "the template says what precedes a text: leave source_prefix out"
    return ""
