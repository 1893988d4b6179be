"""A task module in words: its README, and what Python shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.writing import Instruction
from graftwork.io.display import card, facts
from graftwork.module.calibration import CALIBRATION
from graftwork.module.inputs import asking
from graftwork.units import named_scores, percent, show

Description = Mapping[str, Any]


def module_text(folder: Path, description: Description) -> str:
    """Return two lines: the task, kind and method, then the scores and the folder."""
    task = description["task"]
    return f"TaskModule {task['name']}: {task['kind']} by {_made(description)}\n  {_scores(description)}, in {folder}."


def module_html(folder: Path, description: Description) -> str:
    """Return a card of its task, method, scores and use."""
    task, size = description["task"], description.get("trained_parameters")
    told = {"kind": task["kind"], "answers": _answers(task, description["roles"]), "method": _made(description)}
    told |= {"on test": _scores(description), "trained": show(size, "parameters") + " parameters" if size else ""}
    return card(f"Task module {task['name']}", (), facts(told), about=asking(description["roles"], folder))


def _made(description: Description) -> str:
    backbone = description.get("backbone")
    return str(description["method"]["name"]) + (f" on {backbone['id']}" if backbone else "")


def _scores(description: Description) -> str:
    scores = description.get("scores")
    return named_scores(scores, positive=description["task"].get("positive")) if scores else "not scored"


def readme_of(description: Description) -> str:
    """Return the README of its folder, in Markdown."""
    task, backbone = description["task"], description["backbone"]
    scores = named_scores(description["scores"], positive=task.get("positive"))
    return (
        f"# {task['name']}: {description['method']['name']}\n\n"
        f"A Graftwork task module for {task['kind']}. It answers: {_answers(task, description['roles'])}.\n\n"
        f"- backbone: {backbone['id'] if backbone else 'none'}"
        f"{', revision ' + backbone['revision'][:16] if backbone else ''}\n"
        f"- method: {description['method']}\n- test scores (one run): {scores}\n- run: {description['run']}\n"
        f"- size of the delta: {show(description['trained_parameters'], 'parameters')} parameters\n"
        f"{_calibration(description)}\n"
        f"Use it: `{asking(description['roles'], 'FOLDER')}`\n"
    )


def _answers(task: Mapping[str, Any], roles: Sequence[str]) -> str:
    if task["labels"]:
        return ", ".join(task["labels"][:30])
    if "question" in roles:
        return "a span of the passage"
    if "choices" in roles:
        return "one of the given choices, or all of them in order"
    if task["kind"] == "generation":
        return f"a text of its own{direction_of(task)}"
    return "a number" if task["kind"] == "regression" else "what its kind predicts"


def direction_of(task: Mapping[str, Any]) -> str:
    """Return the languages of a task that has some, ` from en_XX to de_DE`; else an empty string."""
    told = Instruction.of_question(task)
    return told.direction if told else ""


def _calibration(description: Mapping[str, Any]) -> str:
    told = description.get(CALIBRATION)
    if not told:
        return ""
    before, after = (percent(told["test"][when]["ece"]) for when in ("before", "after"))
    if told["why"]:
        return f"- probabilities: as the method gives them ({told['why']}); calibration error on test {before}\n"
    return (
        f"- probabilities: calibrated by a temperature of {told['temperature']:.3g}, which changes no answer; "
        f"calibration error on test {before} before, {after} after\n"
    )
