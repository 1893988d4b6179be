"""Templates of prompts: what a language model is asked about an example, and the words that stand for labels."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graftwork.core.task import Task
from graftwork.errors import ConfigError, UnknownName, clip
from graftwork.io.files import read_toml

BY_SEED = "drawn"  # the name that stands for a built-in template drawn by the seed
BUILT_IN = Path(__file__).with_suffix(".toml")
ONE, TWO = ("text",), ("text_a", "text_b")
FORMS: Mapping[str, tuple[str, ...]] = {  # form, by inputs and target -> the fields of its texts
    "text": ONE, "pair": TWO, "choice": ONE,
    "number": ONE, "number_of_pair": TWO, "written": ONE, "written_of_pair": TWO,
}  # fmt: skip
TARGETS: Mapping[str, str] = {  # form -> the field of the answer, if not {label}
    "choice": "choice", "number": "number", "number_of_pair": "number", "written": "answer", "written_of_pair": "answer"
}  # fmt: skip
LISTINGS: Mapping[str, tuple[str, ...]] = {  # form -> further fields: all labels, least and greatest number
    "text": ("labels",), "pair": ("labels",), "number": ("least", "most"), "number_of_pair": ("least", "most")
}  # fmt: skip
KEYS = ("instruction", "example", "answer", "separator", "words")
_MARK = "\0"  # in place of a text, to find what is around it
SEPARATOR = "\n\n"  # between the instruction, the shots and the example


@dataclass(frozen=True)
class Template:
    """A template; its texts have fields: {text}, or {text_a} and {text_b}; {label}, {choice}, {number} or {answer}.

    If the answer is a label, {labels} lists all of them; if it is a number, {least} and {most} are the range.
    """

    form: str  # one of `FORMS`
    name: str
    example: str  # the question about an example, with a field for each of its texts
    answer: str  # all of it is scored
    instruction: str = ""
    separator: str = SEPARATOR
    words: Mapping[str, str] = field(default_factory=dict)  # label -> what stands for it; empty: the label itself

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Template:
        """Build a template from `as_json`. Raises `ConfigError` for one that lacks its fields or has others."""
        texts = {key: value for key, value in told.items() if key not in ("form", "name")}
        return _checked(told["name"], texts, told["form"], f"the template {told['name']!r}")

    def as_json(self) -> dict[str, Any]:
        """Return the template as JSON."""
        return asdict(self)

    def words_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the word of each label. Raises `ConfigError` where one has none, or two have the same."""
        missing = [label for label in labels if self.words and label not in self.words]
        if missing:
            raise ConfigError(
                f"the template {self.name!r} has no word for a label",
                got=", ".join(clip(label) for label in missing[:3]),
                expected=f"one of {', '.join(self.words)}",
                do="choose another template, or write one of your own with these words",
            )
        found = tuple(self.words[label] if self.words else label.replace("_", " ") for label in labels)
        twice = [label for label, word in zip(labels, found, strict=True) if found.count(word) > 1]
        if twice:
            raise ConfigError(
                f"the template {self.name!r} has the same word for several labels",
                got=", ".join(clip(label) for label in twice[:3]),
                expected="a word for each label",
                do="write a template of your own with words for them",
            )
        return found

    @property
    def is_free(self) -> bool:
        """True if the answer is free text, not one of given candidates."""
        return TARGETS.get(self.form) == "answer"

    @property
    def lead(self) -> str:
        """The part of the answer that ends the prompt: the words before a free text, without trailing blanks."""
        return self.answer.format(answer=_MARK).partition(_MARK)[0].rstrip() if self.is_free else ""

    @property
    def tail(self) -> str:
        """The words after a free text, within the answer."""
        return self.answer.format(answer=_MARK).partition(_MARK)[2] if self.is_free else ""

    def opening(self, words: Sequence[str]) -> str:
        """Return the instruction, with the labels or the range filled in."""
        return self.instruction.format(**_listed(words))

    def question(self, inputs: Mapping[str, Any], words: Sequence[str]) -> str:
        """Return the question about an example with these texts."""
        return self.example.format(**{role: inputs[role] for role in FORMS[self.form]}, **_listed(words))

    def answered(self, word: str) -> str:
        """Return the answer, with the word of a label, a choice, a number or a text filled in."""
        return self.answer.format(**{TARGETS.get(self.form, "label"): word})


def _listed(words: Sequence[str]) -> dict[str, str]:
    return {"labels": ", ".join(words), "least": words[0] if words else "", "most": words[-1] if words else ""}


def form_of(task: Task) -> str:
    """Return the form of the templates that fit a task of texts, one of `FORMS`."""
    one, two = {"regression": ("number", "number_of_pair"), "generation": ("written", "written_of_pair")}.get(
        task.kind, ("text", "pair")
    )
    return "choice" if task.kind == "choice" else one if task.text_a is None else two


def own_file(named: str) -> Path | None:
    """Return the path if `named` is a file of the user's templates rather than the name of a built-in one."""
    return Path(named).expanduser() if named.endswith(".toml") else None


def templates_for(named: str, task: Task) -> list[Template]:
    """Return the templates to draw one from: the named one, those of a file that fit, or the built-in ones.

    Built-in templates with words of their own are used only where they are named. Raises `UnknownName`, `ConfigError`
    for a template without its fields or words, `StorageError` for a missing file.
    """
    form, path = form_of(task), own_file(named)
    found = read_templates(path or BUILT_IN).get(form, [])
    if path is not None and not found:
        raise ConfigError("the file has no template that fits the task", where=str(path), expected=f"[{form}.NAME]")
    if path is None and named != BY_SEED:
        found = [template for template in found if template.name == named] or _unknown(named, form, found)
    elif path is None:
        found = [template for template in found if not template.words]
    for template in found:
        template.words_of(task.labels)
    return found


def _unknown(named: str, form: str, known: Collection[Template]) -> list[Template]:
    raise UnknownName(f"template of the form {form}", named, [template.name for template in known])


def read_templates(path: Path) -> dict[str, list[Template]]:
    """Read templates by form, in the order of the file. Raises `ConfigError`, or `StorageError` for a missing file."""
    content = read_toml(path)
    found: dict[str, list[Template]] = {}
    for form, listed in content.items():
        if form not in FORMS:
            raise UnknownName("form of templates", form, FORMS, where=str(path))
        if not isinstance(listed, dict) or not all(isinstance(told, dict) for told in listed.values()):
            raise ConfigError("not a table of templates", where=f"{path}, {form}", expected=f"[{form}.NAME]")
        found[form] = [_checked(name, told, form, f"{path}, [{form}.{name}]") for name, told in listed.items()]
    return found


def _checked(name: str, told: Mapping[str, Any], form: str, where: str) -> Template:
    unknown = next((key for key in told if key not in KEYS), None)
    if unknown is not None:
        raise UnknownName("key of a template", unknown, KEYS, where=where)
    words = told.get("words", {})
    texts = {key: value for key, value in told.items() if key != "words"}
    if not (isinstance(words, dict) and all(isinstance(text, str) for text in (*texts.values(), *words.values()))):
        raise ConfigError("not a template", where=where, got=clip(str(dict(told))), expected="texts between quotes")
    target, listing = TARGETS.get(form, "label"), LISTINGS.get(form, ())
    if words and target != "label":
        raise ConfigError("only labels have words", where=where, got=f"words of the form {form}", do="leave them out")
    _require_fields(texts.get("instruction", ""), (), listing, f"{where}, instruction")
    _require_fields(texts.get("example", ""), FORMS[form], (*FORMS[form], *listing), f"{where}, example")
    _require_fields(texts.get("answer", ""), (target,), (target,), f"{where}, answer")
    return Template(form=form, name=name, words=words, **texts)


def _require_fields(text: str, needed: Sequence[str], known: Sequence[str], where: str) -> None:
    """Raise `ConfigError` unless a template's text has all needed fields, and known ones only."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ConfigError(
            f"braces that do not match: {error}", where=where, got=clip(text), do="write {{ and }} for braces"
        ) from None
    named = [name for _, name, style, conversion in parts if name is not None for name in [name]]
    styled = any(style or conversion for _, name, style, conversion in parts if name is not None)
    missing = [field for field in needed if field not in named]
    unknown = [field for field in named if field not in known]
    if missing or unknown or styled:
        raise ConfigError(
            f"the template lacks its field {{{missing[0]}}}"
            if missing
            else "the template has a field that is not known",
            where=where,
            got=clip(text),
            expected=", ".join(f"{{{field}}}" for field in known) or "a text without fields",
            do="write {{ and }} for braces that are no field" if not missing else "write it where the text belongs",
        )
