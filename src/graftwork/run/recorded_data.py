"""The data's part of a receipt: the files' bytes, the rows read from them, and the split.

Rows are hashed in several ways, so that a later change can be identified: an added row, a text, a label, the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.example import Example, plain
from graftwork.core.media import Media
from graftwork.core.task import BUILTIN, Dataset, Split, Task
from graftwork.data.readers.hub_datasets import hub_commit, is_hub
from graftwork.data.splits.content_split import SALT
from graftwork.io.files import canonical, digest, file_digest, storage_errors

COLUMNS = ("text", "text_a", "text_b", "image", "sound", "label", "choices")
MOD = 1 << 256


def recorded_data(dataset: Dataset, files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a data set, or a draw of it, as JSON; `files` is the result of `recorded_files`."""
    task, report = dataset.task, dataset.report
    told = task.as_dict()
    return {
        "name": task.name,
        "digest": dataset.digest,
        "files": dict(files),
        "columns": {role: list(told[role]) if role == "choices" else told[role] for role in COLUMNS if told.get(role)},
        "splits": {name: recorded_split(split) for name, split in dataset.splits.items()},
        "split_rule": {"made": report.get("splits", ""), "salt": SALT, "seed": report.get("split_seed")},
        "duplicates_within": dict(report.get("duplicates_within", {})),
        "duplicates_across": dict(report.get("duplicates_across", {}).get("rows", {})),
        "test_in_validation": report.get("test_in_validation", {}).get("rows", 0),
        "labels": {"count": len(task.labels), "sha256": digest(list(task.labels))},
        "rejected_rows": sum(report.get("rejected", {}).values()),  # without --rejects a bad row is an error
        "mended": {what: dict(counts) for what, counts in report.get("mended", {}).items()},
    }


def lasting_path(path: Path) -> str:
    """Return the absolute path, `builtin:NAME` for the package's data sets, and a hub path unchanged."""
    if is_hub(path):
        return str(path)
    path = path.expanduser()
    return f"builtin:{path.stem}" if path.parent.resolve() == BUILTIN.resolve() else str(path.resolve())


def recorded_files(asked: Task) -> dict[str, Any]:
    """Return split -> record of its file, for the task as the user gave it. Raises `StorageError` if one is missing."""
    return {split: recorded_file(path) for split, path in asked.files.items()}


def recorded_file(path: Path) -> dict[str, Any]:
    """Return path, size in bytes and sha256 of a file; a folder's sha256 is over the paths and hashes of its files.

    A hub data set has no file of its own: only its rows are hashed.
    """
    told: dict[str, Any] = {"path": lasting_path(path)}
    if is_hub(path):
        commit = hub_commit(path)
        return told | {"files": 0, "bytes": 0, "sha256": None} | ({"commit": commit} if commit else {})
    with storage_errors(path):
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files)
    if not path.is_dir():
        return told | {"files": 1, "bytes": size, "sha256": file_digest(path)}
    listed = [[file.relative_to(path).as_posix(), file_digest(file)] for file in files]
    return told | {"files": len(files), "bytes": size, "sha256": digest(listed)}


def recorded_split(split: Split) -> dict[str, Any]:
    """Return the row count, ordered hashes of ids, inputs and targets, and order-free hashes of inputs and of rows."""
    ids, inputs, targets = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    any_inputs = any_rows = 0
    for example in split.examples:
        own = hashlib.sha256(_inputs(example)).digest()
        target = canonical(example.target).encode() + b"\n"
        ids.update(example.id.encode() + b"\n")
        inputs.update(own)
        targets.update(target)
        any_inputs += int.from_bytes(own, "big")
        any_rows += int.from_bytes(hashlib.sha256(own + target).digest(), "big")
    return {
        "rows": len(split.examples),
        "ids_sha256": ids.hexdigest(),
        "inputs_sha256": inputs.hexdigest(),
        "targets_sha256": targets.hexdigest(),
        "inputs_in_any_order": f"{any_inputs % MOD:064x}",
        "rows_in_any_order": f"{any_rows % MOD:064x}",
        "media": _media(split.examples),
    }


def added_up(splits: Mapping[str, Mapping[str, Any]], name: str) -> int:
    """Return the sum of an order-free hash over all splits: equal for data sets with the same rows, however split."""
    return sum(int(split[name], 16) for split in splits.values()) % MOD


def _inputs(example: Example) -> bytes:
    line: list[Any] = [plain(example.inputs)]
    line += [example.source] if example.source is not None else []
    return canonical(line).encode()


def _media(examples: Sequence[Example]) -> int:
    """Return the number of distinct files among the inputs."""
    return len({item.sha256 for example in examples for item in example.inputs.values() if isinstance(item, Media)})
