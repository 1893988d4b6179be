"""The facts in a pre-training's receipt: its extent, its text, and remarks on its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.pretrain.objective import Remarks, VariedRows
from graftwork.pretrain.pretrain_folder import PretrainProgress
from graftwork.pretrain.pretrain_loop import PretrainPlan, PretrainState
from graftwork.pretrain.schedule import positions, sum_over_steps
from graftwork.pretrain.training_text import Material

SCORES = ("perplexity", "bits_per_byte", "word_perplexity")


def scores_of(after: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the scores of every held-out split, prefixed by its name except for the validation split."""
    return {
        name if split == "validation" else f"{split}_{name}": scores[name]
        for split, scores in after.items()
        for name in SCORES
    }


def text_of(material: Material) -> dict[str, Any]:
    """Return the documents, tokens and bytes of each split."""
    return {
        split: {"documents": tokens.documents, "tokens": len(tokens.ids), "bytes": tokens.bytes}
        for split, tokens in (("train", material.own.train), ("validation", material.own.validation))
    }


def facts_of(training: PretrainState, progress: PretrainProgress, material: Material) -> dict[str, Any]:
    """Return the facts, as JSON, of a pre-training in the loop."""
    plan, steps = training.plan, (progress.step, progress.planned)
    own = sum_over_steps(plan.recipe, *steps, *material.ids_of_a_step(plan.train, plan.recipe))
    facts = {
        "steps": progress.step,
        "tokens_seen": positions(plan.recipe, *steps),
        "passes": own / len(material.own.train.ids),
        "parameters": sum(weight.numel() for weight in training.network.parameters()),
        "vocabulary": material.vocabulary.size,
        "text": text_of(material),
        "attempts": progress.attempts,
        "processes": plan.peers.size,
        "added": progress.facts["added"],
        "before": progress.facts["before"],
        "after": progress.facts["after"],
        "held": {split: held.as_json() for split, held in plan.held.items()},
    }
    stopped = {"stopped": progress.facts["stopped"]} if "stopped" in progress.facts else {}
    return facts | material.counted() | stopped | {"notes": _notes(plan, progress, material)}


def notes_of(material: Material) -> list[str]:
    """Return the notes on the text for the report."""
    return [*([f"the corpus: {material.skipped}"] if material.skipped else []), *material.notes()]


def _notes(plan: PretrainPlan, progress: PretrainProgress, material: Material) -> list[str]:
    """Return all notes for the report: on the text, added heads and scores."""
    notes, objective = notes_of(material), plan.objective
    notes += [
        f"the backbone lacked {added}: it was added, and trained alone for {plan.recipe.head_steps:,} steps before "
        "the first scores were taken"
        for added in progress.facts["added"]
    ]
    length = plan.recipe.length
    rows = plan.train[length]
    if isinstance(rows, VariedRows) and rows.left_out:
        notes.append(
            f"{rows.left_out:,} of {rows.left_out + len(rows):,} pairs have a side of more than {length} tokens and "
            "are left out of training: a larger --length takes them in"
        )
    if objective.scores_of:
        notes.append(
            f"perplexity and bits per byte are of {objective.scores_of}: not to be compared with other objectives'"
        )
    if isinstance(objective, Remarks):
        notes += objective.remarks(material.own.validation, material.vocabulary)
    return notes
