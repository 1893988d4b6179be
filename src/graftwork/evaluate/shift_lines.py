"""Domain shift in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.errors import clip


def shift_lines(found: Mapping[str, Any]) -> list[str]:
    """Format the result: the verdict, then the measures it is based on."""
    rows = found["rows"]
    lines = [*found["verdict"], ""]
    lines.append(f"  {'new texts':<24}{rows['new']:,}, of which {rows['new_compared']:,} were compared")
    if found["reference"] is not None:
        lines.append(f"  {'training texts':<24}{rows['trained_on']:,}, in {found['reference']}")
        lines.append(f"  {'new and in training':<24}{rows['new_trained_on']:,}")
    lines += [f"  {name:<24}{text}" for name, text in _measures(found).items()]
    test = found.get("two_sample") or {}
    if test.get("furthest"):
        lines += ["", "new texts that differ most from the training data, with the ratio of densities (new / training)"]
        lines += [f"  {line}" for line in _furthest(test)]
    return lines


def _measures(found: Mapping[str, Any]) -> dict[str, str]:
    told: dict[str, str] = {}
    sure, lengths, words, answers = (found.get(name) for name in ("confidence", "lengths", "words", "answers"))
    if sure:
        before = f", of held-out texts {sure['held_out']['mean']:.3f}" if sure["held_out"] else ""
        told["confidence"] = f"{sure['new']['mean']:.3f}{before}"
    if answers and answers["held_out"]:
        names = dict.fromkeys([*answers["new"], *answers["held_out"]])
        old, new = answers["held_out"], answers["new"]
        ordered = sorted(names, key=lambda name: -abs(new.get(name, 0.0) - old.get(name, 0.0)))[:4]
        told["answers"] = ", ".join(
            f"{name} {new.get(name, 0.0):.3g} (was {old.get(name, 0.0):.3g})" for name in ordered
        )
    for unit in ("words", "tokens"):
        if words and unit in words.get("new", {}):
            before = f", of held-out texts {words['held_out'][unit]:.1%}" if "held_out" in words else ""
            told[f"{unit} never seen"] = f"{words['new'][unit]:.1%}{before}"
    if words and words["most_frequent"]:
        told["most frequent of them"] = ", ".join(f"{one['word']} {one['count']:,}" for one in words["most_frequent"])
    if lengths:
        before = f", before {lengths['before']['mean']:.1f}" if lengths["before"] else ""
        cut = f"; {lengths['cut']:,} are cut" if lengths["cut"] else ""
        told["words of a text"] = f"{lengths['new']['mean']:.1f}{before}{cut}"
    return told


def _furthest(test: Mapping[str, Any]) -> list[str]:
    """Format the furthest texts, each with its density ratio."""
    return [f"{item['density_ratio']:>10.1f}  {item['id']}: {clip(item['text'], 100)}" for item in test["furthest"]]
