"""The data report on text generation: the length and variety of the target texts, and how many copy their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.task import Split, Task
from graftwork.units import several

COPIES = 0.1  # share of targets equal to their source from which a warning is given
FEW = 20  # rows of train per distinct target from which the targets look like labels
LONG = 0.01  # share of targets over the maximum length of a written text from which a warning is given


def text_report(splits: Mapping[str, Split], longest: int) -> dict[str, dict[str, Any]]:
    """Return statistics of each split's targets: words, distinct texts, copies, references, and targets over `longest`.

    `longest` is the most tokens that are generated. A target with more words, each a token or more, can't be generated.
    """
    return {name: _facts(split.examples, longest) for name, split in splits.items()}


def _facts(examples: Sequence[Example], longest: int) -> dict[str, Any]:
    words = np.array([len(example.target[0].split()) for example in examples])
    references = [len(example.target) for example in examples]
    return {
        "median_words": int(np.median(words)),
        "max_words": int(words.max()),
        "distinct": len({example.target[0] for example in examples}),
        "copies": sum(example.target[0] in example.inputs.values() for example in examples),
        "over_longest": int((words > longest).sum()),
        "references": [min(references), max(references)],
    }


def text_warnings(found: Mapping[str, Any], rows: Mapping[str, int], task: Task) -> Iterable[str]:
    """Yield warnings from a `text_report`, as sentences."""
    train = found["train"]
    for name, facts in found.items():
        if facts["copies"] >= COPIES * rows[name]:
            yield f"{facts['copies'] / rows[name]:.0%} of the targets of {name} are the source itself, unchanged."
        if facts["over_longest"] > LONG * rows[name]:
            yield (
                f"{facts['over_longest'] / rows[name]:.0%} of the targets of {name} have more than "
                f"{task.settings.longest:,} words, and a written text at most as many tokens: --longest says how many."
            )
    if train["distinct"] * FEW <= rows["train"]:
        yield (
            f"Train has {several(train['distinct'], 'distinct target')} on {rows['train']:,} rows: if they are "
            "labels, --kind classification."
        )
    if any(facts["references"] != [1, 1] for facts in found.values()):
        counts = {name: "-".join(map(str, sorted(set(facts["references"])))) for name, facts in found.items()}
        listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
        yield f"References of a row: {listed}; the first is trained on, and scores are against all."
