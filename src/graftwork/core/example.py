"""An example: one item in human-readable form.

Letters used in every shape: B examples, S sequences, T positions, W rows (words, choices) of all examples of a batch or
a split, D width of the backbone, R width of a sequence's pooled features, P width of the head's input, C outputs
(classes), L blocks, N rows of a split, K statistics of a metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graftwork.core.media import Media

Input = str | tuple[str, ...]  # a text, or the words of one


@dataclass(frozen=True, slots=True)
class Example:
    """One example, independent of any model. `target` has the form that its kind's `parse` returns."""

    id: str  # "train/17": split and row number in the file (1 is the first data row), stable across runs
    inputs: Mapping[str, Any]  # role -> `Input`: {"text": …}, {"text_a": …, "text_b": …}, {"words": (…)}, …
    # or `Media`: {"image": …}, {"sound": …}
    target: Any = None  # None if unlabelled
    source: str | None = None  # the text that `words` were split from, if any


def answers_of(example: Example) -> int | None:
    """Return the number of target rows of an example: one per word or choice; None if it has one target.

    A question about words has one more row, the first, for "no answer".
    """
    for role in ("words", "choices"):
        if role in example.inputs:
            return len(example.inputs[role]) + (role == "words" and "question" in example.inputs)
    return None


def text_of(given: Input | Media) -> str:
    """Return a text unchanged, words joined by spaces, and "" for an image or a sound."""
    if isinstance(given, Media):
        return ""
    return given if isinstance(given, str) else " ".join(given)


def texts_apart(example: Example) -> list[str]:
    """Return the texts of an example as a list; with choices: text, first choice, text, second choice, …"""
    given = example.inputs
    if "choices" in given:
        return [text for choice in given["choices"] for text in (given["text"], choice)]
    return [given["text"]] if "text" in given else [given["text_a"], given["text_b"]]


def plain(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs as JSON, a file as the hash of its content."""
    return {role: {"sha256": item.sha256} if isinstance(item, Media) else item for role, item in inputs.items()}
