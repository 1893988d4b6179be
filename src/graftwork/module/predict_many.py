"""Many texts through one or several task modules: windows of bounded memory, and what modules share done once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graftwork.core.backbone import Backbone, Encoded, device_of
from graftwork.core.example import Example, Input, text_of
from graftwork.core.media import Media
from graftwork.core.method import Logits, ReadsStates
from graftwork.errors import ConfigError
from graftwork.registry import kinds

if TYPE_CHECKING:
    from graftwork.module.inputs import Text
    from graftwork.module.task_module import TaskModule

ROWS_AT_ONCE = 8192  # sorted by length together
CHARACTERS_AT_ONCE = 500_000  # a window of long texts ends here: tokens take far more memory than their characters
FILES_AT_ONCE = 512  # and a window of images or sounds here

Answer = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class RowWindow:
    """Some rows in the order of their file, and the answers to them."""

    examples: list[Example]
    answers: list[list[Answer]]  # per module, per example
    cut: int  # examples that are longer than a backbone takes


@dataclass(frozen=True)
class Group:
    """Modules on one backbone that read its states: they share tokens and a pass."""

    backbone: Backbone
    members: dict[int, ReadsStates]  # place of the module -> what it fitted


def predict_many(modules: Sequence[TaskModule], texts: Sequence[Text]) -> list[list[Answer]]:
    """The answers of each of `modules` to the same texts (or pairs): per module what its `predict` gives.

    Modules on the same backbone share its tokens and its frozen blocks: a text is tokenised once and runs once through
    the blocks that no module changes. Raises `ConfigError` for modules that want different inputs, and as `predict`.
    """
    check_roles(modules)
    answers: list[list[Answer]] = [[] for _ in modules]
    if modules:
        for window in answer_windows(modules, modules[0].examples(texts)):
            for found, new in zip(answers, window.answers, strict=True):
                found += new
    return answers


def check_roles(modules: Sequence[TaskModule]) -> None:
    """Raises `ConfigError` for modules that want different inputs."""
    for module in modules:
        if module.roles != modules[0].roles:
            raise ConfigError(
                "these modules want different inputs",
                got=f"{module.task.name} wants {' and '.join(module.roles)}",
                expected=f"{' and '.join(modules[0].roles)}, as {modules[0].task.name} does",
                do="ask them one by one",
            )


def answer_windows(modules: Sequence[TaskModule], examples: Iterable[Example]) -> Iterator[RowWindow]:
    """Answers to a stream of examples, window by window; the next one is read and tokenised meanwhile."""
    for window, logits, cut in logit_windows(modules, examples):
        decoding = zip(modules, logits, strict=True)
        answers = [kinds.get(module.task.kind).decode(found, module.task, window) for module, found in decoding]
        yield RowWindow(window, answers, cut)


def logit_windows(
    modules: Sequence[TaskModule], examples: Iterable[Example]
) -> Iterator[tuple[list[Example], list[Logits], int]]:
    """As `answer_windows`, the logits of each module in place of its answers; and how many examples were cut."""
    groups = _groups(modules)

    def tokenised() -> Iterator[tuple[list[Example], list[Encoded]]]:
        for window in windows(examples):
            yield window, [group.backbone.encode(window) for group in groups]

    for window, tokens in _one_ahead(tokenised()):
        yield window, _logits(modules, groups, window, tokens), max((encoded.cut for encoded in tokens), default=0)


def windows(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Cut a stream after `ROWS_AT_ONCE` examples or `CHARACTERS_AT_ONCE` characters, whatever comes first."""
    window: list[Example] = []
    characters = 0
    for example in examples:
        window.append(example)
        characters += sum(map(_weight, example.inputs.values()))
        if len(window) >= ROWS_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield window
            window, characters = [], 0
    if window:
        yield window


def _weight(given: Input | Media) -> int:
    """Its share of a window, in characters."""
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
    """Logits per module; a method that reads no states answers by itself."""
    found: dict[int, Logits] = {}
    if groups:
        from graftwork.train.answer import answer_together

    for group, encoded in zip(groups, tokens, strict=True):
        answered = answer_together(group.backbone, encoded, list(group.members.values()))
        found |= zip(group.members, answered, strict=True)
    return [found[i] if i in found else module.fitted.logits(window) for i, module in enumerate(modules)]


def _one_ahead(items: Iterator[T]) -> Iterator[T]:
    """`items`, each made in a thread while the one before it is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
