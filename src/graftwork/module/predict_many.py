"""Prediction of many texts by one or several task modules, in windows of bounded memory, with shared work done once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graftwork.core.arguments import told_arguments
from graftwork.core.backbone import Backbone, Encoded, device_of
from graftwork.core.example import Example, Input, text_of
from graftwork.core.gathered import gathered
from graftwork.core.media import Media
from graftwork.core.method import CountsCut, Logits, ReadsStates
from graftwork.errors import ConfigError, clip
from graftwork.module.abstaining import ANSWER_ALL, Abstaining
from graftwork.module.calibration import at_temperature, temperature_of
from graftwork.registry import kinds

if TYPE_CHECKING:
    from graftwork.module.inputs import Text
    from graftwork.module.task_module import TaskModule

ROWS_AT_ONCE = 8192  # maximum rows per window, within which rows are sorted by length
CHARACTERS_AT_ONCE = 500_000  # maximum characters per window: tokens take far more memory than characters
FILES_AT_ONCE = 512  # maximum images or sounds per window

Answer = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class RowWindow:
    """Some rows in the order of their file, and their answers."""

    examples: list[Example]
    answers: list[list[Answer]]  # per module, per example
    cut: int  # number of truncated examples


@dataclass(frozen=True)
class Group:
    """Modules that read the states of one backbone: they share tokens and a forward pass."""

    backbone: Backbone
    members: dict[int, ReadsStates]  # index of the module -> its fitted method


@told_arguments
def predict_many(
    modules: Sequence[TaskModule], texts: Sequence[Text], abstaining: Abstaining = ANSWER_ALL
) -> list[list[Answer]]:
    """Return the answers of each of `modules` to the same texts (or pairs), per module as its `predict` returns them.

    Modules on the same backbone share tokens and frozen blocks: a text is tokenised once and passes the blocks that no
    module changes once. `abstaining` withholds unsure answers: their prediction is None, beside it `best_guess` and
    `probability`. Raises `ConfigError` for modules with different inputs, and as `predict`.
    """
    check_roles(modules)
    answers: list[list[Answer]] = [[] for _ in modules]
    if modules:
        for window in answer_windows(modules, modules[0].examples(texts), abstaining):
            for found, new in zip(answers, window.answers, strict=True):
                found += new
    return answers


def check_roles(modules: Sequence[TaskModule]) -> None:
    """Raise `ConfigError` for modules with different inputs, and for what is no list of modules."""
    if not isinstance(modules, list | tuple):
        raise ConfigError("a list of task modules is expected", got=clip(repr(modules)), do="write [module]")
    for module in modules:
        if not hasattr(module, "roles"):
            raise ConfigError(
                "this is no task module",
                got=clip(repr(module)),
                expected="modules that are loaded",
                do="load it: gw.TaskModule.load(FOLDER)",
            )
        if module.roles != modules[0].roles:
            raise ConfigError(
                "these modules have different inputs",
                got=f"{module.task.name} reads {' and '.join(module.roles)}",
                expected=f"{' and '.join(modules[0].roles)}, as {modules[0].task.name} does",
                do="use them one by one",
            )


def answer_windows(
    modules: Sequence[TaskModule], examples: Iterable[Example], abstaining: Abstaining = ANSWER_ALL
) -> Iterator[RowWindow]:
    """Yield the answers to a stream of examples, window by window; the next window is tokenised in the background."""
    thresholds = [abstaining.threshold(module.description) for module in modules]
    for window, logits, cut in logit_windows(modules, examples):
        answers = [answers_of(module, found, window) for module, found in zip(modules, logits, strict=True)]
        kept = [
            [threshold.withheld(answer, module.task.name) for answer in found] if threshold else found
            for module, found, threshold in zip(modules, answers, thresholds, strict=True)
        ]
        yield RowWindow(window, kept, cut)


def answers_of(module: TaskModule, logits: Logits, examples: Sequence[Example]) -> list[Answer]:
    """Decode a module's logits of these examples, with probabilities at its temperature."""
    tempered = at_temperature(logits, temperature_of(module.description))
    return kinds.get(module.task.kind).decode(tempered, module.task, examples)


def logit_windows(
    modules: Sequence[TaskModule], examples: Iterable[Example]
) -> Iterator[tuple[list[Example], list[Logits], int]]:
    """As `answer_windows`, but yield examples, the logits of each module and the number of truncated examples."""
    groups = _groups(modules)

    def tokenised() -> Iterator[tuple[list[Example], list[Encoded]]]:
        for window in windows(examples):
            yield window, [group.backbone.encode(window) for group in groups]

    for window, tokens in _one_ahead(tokenised()):
        cut = [encoded.cut for encoded in tokens]
        cut += [module.fitted.cut(window) for module in modules if isinstance(module.fitted, CountsCut)]
        yield window, _logits(modules, groups, window, tokens), max(cut, default=0)


def windows(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Cut a stream after `ROWS_AT_ONCE` examples or `CHARACTERS_AT_ONCE` characters, whichever comes first."""
    return gathered(examples, lambda one: sum(map(_weight, one.inputs.values())), CHARACTERS_AT_ONCE, ROWS_AT_ONCE)


def windows_by_task(
    rows: Sequence[tuple[str, Example]],
) -> Iterator[tuple[Sequence[tuple[str, Example]], dict[str, list[int]]]]:
    """Yield windows of (task, example) rows, each with task -> indices of its rows in the window."""
    start = 0
    for window in windows(example for _, example in rows):
        some = rows[start : start + len(window)]
        asked: dict[str, list[int]] = {}
        for place, (name, _) in enumerate(some):
            asked.setdefault(name, []).append(place)
        yield some, asked
        start += len(window)


def _weight(given: Input | Media) -> int:
    """Return an input's size in a window, in characters."""
    return CHARACTERS_AT_ONCE // FILES_AT_ONCE if isinstance(given, Media) else len(text_of(given))


def _groups(modules: Sequence[TaskModule]) -> list[Group]:
    found: dict[tuple[str, str, str], Group] = {}
    for place, module in enumerate(modules):
        if module.backbone is not None and isinstance(module.fitted, ReadsStates):
            device = device_of(module.backbone.module).type
            key = (module.backbone.card.revision, module.description["precision"], device)
            found.setdefault(key, Group(module.backbone, {})).members[place] = module.fitted
    return list(found.values())


def _logits(
    modules: Sequence[TaskModule], groups: Sequence[Group], window: list[Example], tokens: Sequence[Encoded]
) -> list[Logits]:
    """Return logits per module; a method that reads no states is computed separately."""
    found: dict[int, Logits] = {}
    if groups:
        from graftwork.train.answer import answer_together

    for group, encoded in zip(groups, tokens, strict=True):
        answered = answer_together(group.backbone, encoded, list(group.members.values()))
        found |= zip(group.members, answered, strict=True)
    return [found[i] if i in found else module.fitted.logits(window) for i, module in enumerate(modules)]


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield `items`, each computed in a thread while the previous one is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
