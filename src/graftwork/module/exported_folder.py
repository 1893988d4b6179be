"""An exported folder, which opens like a task module: its description, the hashes of its files, and what runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.method import Fitted
from graftwork.core.ragged import from_lists
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.files import file_digest, read_json, storage_errors
from graftwork.io.json_limits import MODULE
from graftwork.io.plain_files import inside, require_plain_folder
from graftwork.registry import exporters, kinds

EXPORTED = "graftwork.json"  # the content of module.json, and "export": format, files and their hashes
EXPORTED_BANK = "graftwork_bank.json"  # the same for many tasks; each module.json is in tasks/NAME.json
FORMAT_OF_EXPORT = 1
PARTS = "parts"  # in selftest.json: what the folder was made of, so that a changed part can be named
LONG = "long"  # in the self-test of a bank's task: one for a text above the maximum length
ANSWERS = "answers"  # in selftest.json: the predictions decoded from its logits


def is_exported(folder: Path, name: str = EXPORTED) -> bool:
    """Return whether `graft export` wrote this folder; `name` is `EXPORTED_BANK` for one written from a bank."""
    return (folder / name).is_file()


def read_export(folder: Path, name: str = EXPORTED) -> dict[str, Any]:
    """Read the description of an export, and check the files that it names by their hashes; `name` as above.

    Raises `StorageError` for an invalid file, or a link in the folder; `IncompatibleModule` for a changed file.
    """
    require_plain_folder(folder)
    told = read_json(inside(folder, name), MODULE)
    export = told.get("export") if isinstance(told, dict) else None
    if not isinstance(export, dict) or not isinstance(export.get("files"), dict):
        raise StorageError("not a description of an export", where=str(folder / name), expected='{"export": {…}}')
    if export.get("format") != FORMAT_OF_EXPORT:
        got, expected = repr(export.get("format")), f"format {FORMAT_OF_EXPORT}"
        raise IncompatibleModule("unknown format", where=str(folder / name), got=got, expected=expected)
    for file, sha in export["files"].items():
        with storage_errors(folder / file):
            found = file_digest(inside(folder, file))
        if found != sha:
            raise IncompatibleModule(
                f"{file} has changed since this folder was exported",
                where=str(folder),
                got=f"sha256 {found[:16]}…",
                expected=f"sha256 {str(sha)[:16]}…",
                do="export the task again",
            )
    assert isinstance(told, dict)
    return told


def fitted_of_export(folder: Path, description: Mapping[str, Any]) -> Fitted:
    """Open the model of an exported folder. Raises `ConfigError` for a format that Graftwork doesn't run."""
    name = str(description["export"]["to"])
    exporter: Any = exporters.get(name)
    if not hasattr(exporter, "open"):
        raise ConfigError(
            f"Graftwork doesn't run what it exported to {name}",
            where=str(folder),
            do="README.md there says how to run it; use the task module that it was exported from",
        )
    fitted: Fitted = exporter.open(folder, description)
    return fitted


def with_cause(error: IncompatibleModule, cause: str) -> IncompatibleModule:
    """Return the error of a failed self-test that says which part has changed, or `error` itself for no `cause`."""
    if not cause:
        return error
    got = ": ".join(part for part in (error.what, error.got) if part)
    return IncompatibleModule(cause, where=error.where, got=got, expected=error.expected, do="export the task again")


def cause_of(
    folder: Path, description: Mapping[str, Any], stored: Mapping[str, Any], examples: Sequence[Example]
) -> str:
    """Return which part of an exported folder differs from what its self-test records, or an empty string."""
    if not isinstance(stored.get(PARTS), dict):
        return ""
    exporter: Any = exporters.get(str(description["export"]["to"]))
    return str(exporter.changed_part(folder, description, stored[PARTS], examples))


def require_answers(stored: Mapping[str, Any], task: Task, examples: Sequence[Example], folder: Path) -> None:
    """Raise `IncompatibleModule` if the stored logits decode to other predictions than those stored with them.

    This finds labels in another order, which the logits can't show. A self-test without predictions passes.
    """
    if ANSWERS not in stored:
        return
    found = predictions_of(stored["logits"], task, examples)
    if found != stored[ANSWERS]:
        odd = next(i for i, (one, other) in enumerate(zip(found, stored[ANSWERS], strict=True)) if one != other)
        raise IncompatibleModule(
            "the logits of the self-test mean other answers than when the folder was made: its labels have changed",
            where=str(folder),
            got=str(found[odd]),
            expected=str(stored[ANSWERS][odd]),
            do="export the task again",
        )


def predictions_of(logits: Sequence[Any], task: Task, examples: Sequence[Example]) -> list[Any]:
    """Decode logits in JSON to the prediction of each example, as JSON."""
    answers = kinds.get(task.kind).decode(from_lists(logits), task, examples)
    return [next(iter(answer.values())) for answer in answers]
