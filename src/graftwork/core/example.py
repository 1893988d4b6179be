"""An example: one item as a person would read it.

Letters used in every shape: B examples, S sequences (B x towers), T positions, D width of the backbone,
P width of what the head reads, C outputs (classes), L blocks, N rows of a split, K statistics of a metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """Nothing in it is specific to a model. `target` has the form that its kind's `parse` returns."""

    id: str  # "train/17": split and row number in the file (1 is the first data row), stable across runs
    inputs: Mapping[str, str]  # role -> text: {"text": …} or {"text_a": …, "text_b": …}
    target: Any = None  # None if unlabelled
