"""The README.md of a task module: a card that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.module.calibration import CALIBRATION
from graftwork.module.inputs import asking
from graftwork.units import named_scores, percent, show


def card_of(description: Mapping[str, Any]) -> str:
    """Return the card of a module with this description."""
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
        return "a stretch of the text that is asked about"
    if "choices" in roles:
        return "with one or all of the given choices"
    return {"regression": "a number", "generation": "a text of its own"}.get(task["kind"], "as its kind does")


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
