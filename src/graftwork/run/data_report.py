"""The data report as a command of its own: the findings in a task's files, before any training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graftwork.core.arguments import told_arguments
from graftwork.core.backbone import Backbone
from graftwork.core.task import Dataset, Task
from graftwork.core.writing import Instruction, reading_part, with_instruction
from graftwork.data.load import load
from graftwork.errors import ConfigError
from graftwork.io.display import ShownJson
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.run.data_report_lines import lines_in_python

if TYPE_CHECKING:
    from graftwork.train.frozen_pass import FrozenStore

SOME_UNKNOWN = 0.01  # share of unknown tokens from which a warning is given: symbols and names make a few anywhere
UNREADABLE = 0.2  # share of unknown tokens in train from which the backbone is said to be unable to read the texts


def unreadable(backbone: str, share: float) -> str:
    """Return the sentence on a backbone that knows little of the texts' script or language."""
    return (
        f"{backbone} can't read {share:.0%} of these texts: so many of their tokens are unknown to it. Take a backbone"
        " that was pretrained on their language or script"
    )


@told_arguments
def data_report(task: Any, *, backbone: str | None = None) -> dict[str, Any]:
    """Return the data report of `task` as JSON: rows, classes, exact and near duplicates, conflicts, cues, order.
    Python shows it as a table of the splits, with the warnings below.

    `task` is a `Task` or what `Task.from_data` takes.
    With a `backbone`, lengths are counted in its tokens, and truncated rows are reported; otherwise in words.
    `warnings` are sentences for people. Raises `GraftworkError` for bad data or settings.
    """
    task = Task.from_data(task)
    dataset = load(task)
    described = {"name": task.name, "kind": task.kind, "digest": dataset.digest}
    if backbone is None:
        return ShownJson({"task": described, **dataset.report}, lines_in_python)
    from graftwork.train.frozen_pass import FrozenStore

    told = Instruction.of(task)
    told = None if told == Instruction() else told  # without languages and a prefix the encoder alone is enough
    opened = reading_part(with_instruction(open_backbone(backbone, precision="fp32", writes=told is not None), told))
    require_reads(opened, dataset.task)
    return ShownJson({"task": described, **as_read_by(dataset, opened, FrozenStore())}, lines_in_python)


def require_reads(backbone: Backbone | None, task: Task) -> None:
    """Raise `ConfigError` if the backbone's modality is not that of the data."""
    if backbone is not None and backbone.card.modality != task.reads:
        raise ConfigError(
            f"the backbone {backbone.card.id!r} reads {backbone.card.modality}s, and the data are {task.reads}s",
            do=f"name one that reads {task.reads}s: --backbone hf:FOLDER",
        )


def as_read_by(dataset: Dataset, backbone: Backbone, frozen: FrozenStore) -> dict[str, Any]:
    """Return the data report extended by the backbone's view: lengths in its tokens, truncated rows, unknown words."""
    from graftwork.data.checks.split_checks import lengths

    card = backbone.card
    read = {name: frozen.encoded(backbone, dataset.digest, split) for name, split in dataset.splits.items()}
    found = {"cut": {name: encoded.cut for name, encoded in read.items()}}
    windows = {name: int((one.sequences_of > 1).sum()) for name, one in read.items() if one.words is not None}
    if any(windows.values()):
        found["windows"] = windows
    several = any(len(encoded.ids) > len(encoded) for encoded in read.values())
    of = ", of the longest sequence of each row" if several else ""
    by_tokens: dict[str, Any] = {"unit": f"tokens of {card.id}{of}"}
    by_tokens |= {name: lengths(encoded.lengths, card.max_length) for name, encoded in read.items()}
    unseen = {name: encoded.words.unseen for name, encoded in read.items() if encoded.words is not None}
    if unseen:
        found["unseen_words"] = unseen
    shares = {name: round(encoded.unknown_share, 4) for name, encoded in read.items()}
    unknown = {name: encoded.unknown for name, encoded in read.items()}
    if any(unknown.values()):
        found["unknown_tokens" if card.blocks else "unknown_words"] = unknown
    if card.modality == "sound":
        splits = dataset.splits.items()
        found["resampled"] = {
            name: sum(example.inputs["sound"].size[1] != card.rate for example in split.examples)
            for name, split in splits
        }
    unit = "tokens" if card.modality == "text" else "positions"
    told = {
        "cut": f"Examples longer than {card.id} takes ({card.max_length} {unit}), cut there",
        "windows": f"Examples longer than {card.id} takes ({card.max_length} {unit}), read in overlapping windows",
        "resampled": f"Recordings of other rates than {card.rate:,} samples a second, resampled to that of {card.id}",
        "unseen_words": f"Words without a token, which {card.id} can't read; all get the same answer",
        "unknown_words": f"Words that {card.id} has no vector of",
        "unknown_tokens": f"Tokens that stand for text that {card.id} does not know",
    }
    warnings = list(dataset.report["warnings"])
    for key, counts in found.items():
        if any(counts.values()) and not (key == "unknown_tokens" and max(shares.values()) < SOME_UNKNOWN):
            listed = ", ".join(f"{count:,} of {name}" for name, count in counts.items() if count)
            warnings.append(f"{told[key]}: {listed}.")
    if shares["train"] >= UNREADABLE:
        warnings.insert(0, f"{unreadable(card.id, shares['train'])}.")
    shared = {"unknown_token_shares": shares} if "unknown_tokens" in found else {}
    counted = {"lengths": by_tokens} if card.modality == "text" and card.max_length else {}
    return {**dataset.report, **found, **shared, **counted, "warnings": warnings}
