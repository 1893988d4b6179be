"""The fields of a receipt, and the check that they are complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from graftwork.core.task import SPLITS
from graftwork.machine.memory import IN_PARTS
from graftwork.run.receipt import with_seal
from graftwork.train.seeds import SOURCES

Check = Callable[[Any], bool]
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MISSING = object()


def _is(*types: type) -> Check:
    """Return a check for these types; True and False do not count as numbers."""
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _hash(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _all(check: Check) -> Check:
    """Return a check for a table whose values all pass `check`."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _cuts(value: Any) -> bool:
    """Check the list of the cuts of batches."""
    return isinstance(value, list) and all(
        isinstance(cut, dict)
        and cut.keys() == {"step", "positions", "why"}
        and COUNT(cut["step"])
        and COUNT(cut["positions"])
        for cut in value
    )


TEXT, COUNT, NUMBER, FLAG, TABLE, LIST = _is(str), _is(int), _is(int, float), _is(bool), _is(dict), _is(list)
SPLIT_HASHES = ("ids_sha256", "inputs_sha256", "targets_sha256", "inputs_in_any_order", "rows_in_any_order")

FIELDS: Mapping[str, Check] = {
    "format": COUNT, "identity.run": TEXT, "identity.engine": COUNT, "identity.parents": LIST,
    "code.graftwork": TEXT, "code.source_sha256": _hash, "code.commit": _or_none(TEXT), "code.dirty": _or_none(FLAG),
    "code.diff_sha256": _or_none(_hash), "code.constraints_sha256": _or_none(_hash), "code.python": TEXT,
    "code.distributions": TABLE, "code.distributions.numpy": TEXT,
    "model": _or_none(TABLE),
    "data.name": TEXT, "data.digest": _hash, "data.files": TABLE, "data.files.train": TABLE, "data.columns": TABLE,
    "data.splits": TABLE, "data.split_rule.made": TEXT, "data.split_rule.salt": TEXT,
    "data.split_rule.seed": _or_none(COUNT), "data.duplicates_within": TABLE, "data.duplicates_across": TABLE,
    "data.labels.count": COUNT, "data.labels.sha256": _hash, "data.rejected_rows": COUNT, "data.mended": TABLE,
    "method.config.name": TEXT, "method.config.version": COUNT, "method.recipe": TABLE, "method.question.kind": TEXT,
    "method.question.labels": LIST, "method.question.metrics": LIST, "method.question.positive": _or_none(TEXT),
    "method.question.scale": LIST, "method.selection.metric": TEXT, "method.selection.split": TEXT,
    "method.search.space": TABLE, "method.search.tried": LIST, "method.search.trials": COUNT,
    "method.early_stopping": TEXT,
    "randomness.seed": COUNT, "randomness.held": LIST,
    **{f"randomness.derived.{source}": COUNT for source in SOURCES},
    "randomness.split": _or_none(COUNT), "randomness.bootstrap": COUNT, "randomness.generators.torch": TEXT,
    "randomness.generators.numpy": TEXT,
    "numerics.device": TEXT, "numerics.precision": _or_none(TEXT), "numerics.trained_in": TEXT,
    "numerics.autocast": FLAG, "numerics.attention": _or_none(TEXT), "numerics.threads": COUNT,
    "numerics.runs_at_once": COUNT, "numerics.world_size": COUNT, "numerics.micro_batch": _or_none(COUNT),
    "numerics.accumulation": COUNT, "numerics.processor": _or_none(TEXT), "numerics.cores": _or_none(COUNT),
    "numerics.accelerator": _or_none(TEXT), "numerics.cuda": _or_none(TEXT), "numerics.cudnn": _or_none(COUNT),
    "numerics.blas": LIST, "numerics.variables": TABLE, "numerics.arithmetic": COUNT,
    "outcome.status": TEXT, "outcome.failure": _or_none(TABLE), "outcome.scores": TABLE, "outcome.validation": TABLE,
    "outcome.log.lines": COUNT, "outcome.log.steps": COUNT, "outcome.log.first_losses": LIST,
    "outcome.log.sha256": _hash, "outcome.predictions": _or_none(TABLE), "outcome.weights": _or_none(TABLE),
    "price_tag": TABLE,
    "timeline.started": TEXT, "timeline.ended": TEXT, "timeline.wall_seconds": NUMBER,
    "timeline.interruptions": COUNT, "timeline.resumes": COUNT,
    "rerun": _or_none(TABLE), "seal": _hash,
}  # fmt: skip
OF_TORCH: Mapping[str, Check] = {  # None if torch was not imported; a run with a backbone imports it
    "numerics.interop_threads": COUNT, "numerics.deterministic": FLAG, "numerics.matmul_precision": TEXT,
    "numerics.cpu_capability": TEXT, "numerics.mkldnn": FLAG, "numerics.built_with": LIST,
}  # fmt: skip
SINCE: Mapping[str, Check] = {  # fields that older receipts lack
    "outcome.weights.files": _all(_hash), "rerun.method": _all(TEXT), "outcome.interval": _or_none(LIST),
    "data.test_in_validation": COUNT, "outcome.log.epochs": COUNT, "numerics.max_memory": _or_none(COUNT),
    "numerics.cuts": _cuts, **{f"numerics.{name}": _all(COUNT) for name in IN_PARTS}, "method.words": COUNT,
}  # fmt: skip
OF_A_MODEL: Mapping[str, Check] = {
    "id": TEXT, "revision": _hash, "family": TEXT, "modality": TEXT, "seed": COUNT, "folder": _or_none(TEXT),
    "files": TABLE, "parameters": COUNT, "pooling": TEXT, "max_length": COUNT,
}  # fmt: skip
OF_A_RECIPE: Mapping[str, Check] = {
    "epochs": COUNT, "batch_size": COUNT, "learning_rate": _or_none(NUMBER), "steps": COUNT, "weight_decay": NUMBER,
    "clip": NUMBER, "schedule": TEXT, "dropout": TEXT, "head_start": TEXT, "kept": TEXT, "kept_share": NUMBER,
    "head_rate": NUMBER,
}  # fmt: skip
OF_A_FILE: Mapping[str, Check] = {"path": TEXT, "files": COUNT, "bytes": COUNT, "sha256": _or_none(_hash)}
OF_A_SPLIT: Mapping[str, Check] = {"rows": COUNT, "media": COUNT, **dict.fromkeys(SPLIT_HASHES, _hash)}
OF_PREDICTIONS: Mapping[str, Check] = {"rows": COUNT, "bytes": COUNT, "sha256": _hash}
OF_WEIGHTS: Mapping[str, Check] = {
    "sha256": _hash, "tensors": COUNT, "stored_parameters": COUNT, "trained_parameters": COUNT, "groups": TABLE,
}  # fmt: skip
OF_A_FAILURE: Mapping[str, Check] = {"class": TEXT, "message": TEXT}
OF_A_COST: Mapping[str, Check] = {"value": _or_none(NUMBER), "unit": TEXT, "grade": TEXT}
OF_A_RERUN: Mapping[str, Check] = {"task": TABLE, "backbone": TEXT}


def problems(receipt: Mapping[str, Any]) -> list[str]:
    """Return the missing or malformed fields of a receipt, a line each; empty for a valid one.

    Unknowable values (the commit of an installed package) are present and None. Any other change since it was
    written breaks its seal.
    """
    found = missing(receipt)
    broken = not found and with_seal(receipt)["seal"] != receipt["seal"]
    return found or ["seal: the receipt was changed after it was written"] * broken


def missing(receipt: Mapping[str, Any]) -> list[str]:
    """Return the fields that are missing or malformed, a line each."""
    return [line for path, check in _expected_fields(receipt).items() if (line := _wrong(receipt, path, check))]


def _expected_fields(receipt: Mapping[str, Any]) -> dict[str, Check]:
    """Return path -> check of the required fields of this receipt and of the optional ones that it has."""
    fields = dict(FIELDS) | {path: check for path, check in SINCE.items() if _at(receipt, path) is not _MISSING}
    if _at(receipt, "model") is not None:
        fields |= _inside("model", OF_A_MODEL) | {"code.distributions.torch": TEXT}
    imported = "code.distributions.torch" in fields or _at(receipt, "code.distributions.torch") is not _MISSING
    fields |= {path: check if imported else _or_none(check) for path, check in OF_TORCH.items()}
    recipe = _at(receipt, "method.recipe")
    if isinstance(recipe, dict) and recipe.keys() - {"rates"}:  # otherwise the method uses no recipe
        fields |= _inside("method.recipe", OF_A_RECIPE)
    for split in SPLITS:
        fields |= _inside(f"data.splits.{split}", OF_A_SPLIT)
    files = _at(receipt, "data.files")
    for split in files if isinstance(files, dict) else ():
        fields |= _inside(f"data.files.{split}", OF_A_FILE)
    costs = _at(receipt, "price_tag")
    for name in costs if isinstance(costs, dict) else ():  # the meters at that time, not today's
        fields |= _inside(f"price_tag.{name}", OF_A_COST)
    if _at(receipt, "rerun") is not None:
        fields |= _inside("rerun", OF_A_RERUN) | {"rerun.task.data": TEXT}
    return fields | _of_the_outcome(receipt)


def _of_the_outcome(receipt: Mapping[str, Any]) -> dict[str, Check]:
    """Return the fields of the outcome: predictions, scores and weights of a successful run, else the failure.

    Trials of older versions, which trained for a fraction of the steps, have only validation scores.
    """
    if _at(receipt, "outcome.status") != "ok":
        return _inside("outcome.failure", OF_A_FAILURE)
    fields = _inside("outcome.predictions", OF_PREDICTIONS)
    trial = _at(receipt, "method.recipe.share") is not _MISSING
    fields |= {} if trial else _inside("outcome.weights", OF_WEIGHTS)
    metrics = _at(receipt, "method.question.metrics")
    for metric in metrics if isinstance(metrics, list) else ():
        fields |= {f"outcome.validation.{metric}": NUMBER} | ({} if trial else {f"outcome.scores.{metric}": NUMBER})
    return fields


def _inside(path: str, fields: Mapping[str, Check]) -> dict[str, Check]:
    return {f"{path}.{name}": check for name, check in fields.items()}


def _at(receipt: Mapping[str, Any], path: str) -> Any:
    value: Any = receipt
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _wrong(receipt: Mapping[str, Any], path: str, check: Check) -> str:
    value = _at(receipt, path)
    if value is _MISSING:
        return f"{path} is missing"
    return "" if check(value) else f"{path} is not what it should be: {str(value)[:60]!r}"
