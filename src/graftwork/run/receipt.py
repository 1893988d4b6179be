"""`receipt.json`: everything that determined a run, and its outcome, in numbers and hashes.

It is stored beside `spec.json` and `result.json`; runs older than receipts have none. It is no part of a run's id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import ConfiguredMethod, configured_from
from graftwork.core.metric import signatures
from graftwork.core.run import ENGINE, RunResult, RunSpec
from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import digest, file_digest, finite, header_of, read_json, write_json
from graftwork.machine.environment import ARITHMETIC
from graftwork.machine.memory import IN_PARTS
from graftwork.pretrained.model_folder import hub_revision
from graftwork.pretrained.open_backbone import FRESH, lasting_name
from graftwork.run.recorded_code import recorded_code
from graftwork.run.recorded_data import lasting_path, recorded_data, recorded_files
from graftwork.run.recorded_numerics import recorded_numerics
from graftwork.run.session import Session
from graftwork.targets.words import FIRST_RULE
from graftwork.train.method_files import lasting_files
from graftwork.train.seeds import seeds_of
from graftwork.train.wrapper_method import drawn_by

NAME = "receipt.json"
FORMAT = 1
FIRST_LOSSES = 10
GENERATORS = {"torch": "mt19937", "numpy": "PCG64"}  # random generators of tensors and of arrays


@dataclass(frozen=True)
class SearchRecord:
    """The trials before a run, by which its hyper-parameters were chosen."""

    space: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameter -> values tried
    tried: tuple[str, ...] = ()  # ids of the trials


NOTHING_TRIED = SearchRecord()


def write_receipt(
    folder: Path,
    session: Session,
    method: ConfiguredMethod,
    spec: RunSpec,
    result: RunResult,
    search: SearchRecord,
    began: datetime,
) -> None:
    """Write the receipt of the run in `folder`, which holds its log and, on success, its predictions and module."""
    content = inputs_of(session, spec)
    resumes = result.facts.get("attempts", 1) - 1
    parted = result.facts.get("accumulation")
    content["numerics"] |= {"accumulation": parted["parts"], "cuts": parted["cuts"]} if parted else {}
    content["numerics"] |= {name: result.facts[name] for name in IN_PARTS if name in result.facts}
    content["method"]["search"] = {
        "space": dict(search.space),
        "tried": list(search.tried),
        "trials": len(search.tried),
    }
    content |= {
        "outcome": outcome_of(folder, result)
        | ({"signatures": signed} if (signed := signatures(result.scores, session.dataset.test.targets)) else {}),
        "price_tag": {name: asdict(cost) for name, cost in result.costs.items()},
        "timeline": {
            "started": began.isoformat(timespec="milliseconds"),
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "wall_seconds": result.spent.wall_seconds,
            "interruptions": resumes,  # interruptions before the first checkpoint are unknown
            "resumes": resumes,
        },
        "rerun": rerun_of(session, lasting_files(method.config, spec.method)),
    } | session.prices.as_json()
    write_json(folder / NAME, with_seal(content))


def with_seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the receipt with a seal, the sha256 of all its other content, which reveals later changes."""
    rest = finite({key: value for key, value in content.items() if key != "seal"})
    return {**rest, "seal": digest(rest)}


def read_receipt(folder: Path) -> dict[str, Any]:
    """Read the receipt of a run. Raises `StorageError` if it has none, or one of another format.

    Raises `ConfigError` for a pre-training, which never has one.
    """
    path = folder / NAME
    if not path.is_file():
        _refuse_pretraining(folder)
        raise StorageError(
            "this run has no receipt.json: it was made by an older version",
            where=str(folder),
            do="run it again: remove the folder and give the same command",
        )
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StorageError("written by another version of Graftwork", where=str(path), expected=f"format {FORMAT}")
    return content


def _refuse_pretraining(folder: Path) -> None:
    spec = folder / "spec.json"
    if spec.is_file() and read_json(spec).get("question", {}).get("kind") == "pretraining":
        raise ConfigError(
            "a pre-training has no receipt.json and can't be verified: only runs on a task have receipts",
            where=str(folder),
            do=f"see its result.json: graft show {folder}; run it again to compare",
        )


def inputs_of(session: Session, spec: RunSpec) -> dict[str, Any]:
    """Return what is known before the run starts: identity, code, model, data, method, randomness and numerics."""
    by = session.opened_by
    name = by.setup.backbone if by and spec.backbone else None
    return {
        "format": FORMAT,
        "identity": {"run": spec.id, "engine": ENGINE, "parents": _parents(name) if name else []},
        "code": recorded_code(),
        "model": _model(session) if spec.backbone else None,
        "data": data_of(session),
        "method": {
            "config": dict(spec.method),
            "recipe": dict(spec.recipe),
            "question": dict(spec.question),
            "selection": {"metric": session.dataset.task.metrics[0], "split": "validation"},
            "early_stopping": spec.recipe.get("kept", "no recipe: as the method does it"),
        }
        | ({"words": spec.words} if spec.words != FIRST_RULE else {}),
        "randomness": randomness_of(spec, session.dataset.report.get("split_seed")),
        "numerics": recorded_numerics(session, spec) | {"arithmetic": ARITHMETIC},
    }


def data_of(session: Session) -> dict[str, Any]:
    """Return the record of the session's data; the files are hashed by the first call, before the first run.

    Raises `StorageError` for a missing file.
    """
    known, asked = (
        f"data {session.dataset.digest}",
        session.opened_by.task if session.opened_by else session.dataset.task,
    )
    if "files" not in session.recorded:  # shared by the sessions over the draws of one data set
        session.recorded["files"] = recorded_files(asked)
    if known not in session.recorded:
        session.recorded[known] = recorded_data(session.dataset, session.recorded["files"])
    found: dict[str, Any] = session.recorded[known]
    return found


def randomness_of(spec: RunSpec, split: int | None) -> dict[str, Any]:
    """Return the seed of every source of variation; `split` is None if none was drawn. A board's bootstrap uses 0."""
    return {
        "seed": spec.seed,
        "held": list(spec.held),
        "derived": seeds_of(spec.seed, spec.held, drawn_by(configured_from(spec.method).method)),
        "split": split,
        "bootstrap": 0,
        "generators": dict(GENERATORS),
    }


def outcome_of(folder: Path, result: RunResult) -> dict[str, Any]:
    """Return the outcome of the run, and the hashes of the files that hold it."""
    failure = {"class": result.failure, "message": result.error} if result.status != "ok" else None
    return {
        "status": result.status,
        "failure": failure,
        "scores": dict(result.scores),
        "interval": result.interval and list(result.interval),
        "validation": dict(result.validation),
        "facts": dict(result.facts),
        "log": _log(folder / "log.jsonl"),
        "predictions": _predictions(folder / "predictions.jsonl"),
        "weights": _weights(folder / "module"),
    }


def rerun_of(session: Session, read: Mapping[str, str] = {}) -> dict[str, Any] | None:
    """Return the task and backbone to reopen for the same run, from any folder; None if not opened by names.

    `read` holds the files that the method reads.
    """
    if session.opened_by is None:
        return None
    task = session.opened_by.task
    paths = {"data" if split == "train" else split: lasting_path(path) for split, path in task.files.items()}
    of_method = {"method": dict(read)} if read else {}
    drawn = session.dataset.report.get("draw")
    draw = {"draw": {name: drawn[name] for name in ("size", "number", "seed")}} if drawn else {}
    return (
        {"task": task.as_record() | paths, "backbone": lasting_name(session.opened_by.setup.backbone)}
        | of_method
        | draw
    )


def _parents(name: str) -> list[str]:
    """Return the id of the run that made the backbone, if it was pre-trained here."""
    made = Path(lasting_name(name).removeprefix(FRESH)) / "result.json"
    return [read_json(made)["id"]] if made.is_file() else []


def _model(session: Session) -> dict[str, Any]:
    assert session.backbone is not None
    card, files = session.backbone.card, _model_files(session)
    paths = [Path(path) for path in files]
    above = {parent for path in paths[:1] for parent in path.parents if all(parent in one.parents for one in paths)}
    folder = max(above, key=lambda path: len(path.parts), default=None)
    commit = hub_revision(folder) if folder else None
    return {
        "id": card.id,
        "revision": card.revision,
        "family": card.family,
        "modality": card.modality,
        "seed": session.backbone_seed,
        "folder": str(folder.resolve()) if folder else None,  # None: generated by code
        "files": {str(path.relative_to(folder)): files[str(path)] for path in paths} if folder else {},
        "parameters": card.parameters,
        "pooling": card.pooling,
        "max_length": card.max_length,
    } | ({"commit": commit} if commit else {})  # commit of the hub repository


def _model_files(session: Session) -> dict[str, str]:
    """Return path -> sha256. Files of a family that only hashes its parsed content (word vectors) are hashed here."""
    assert session.backbone is not None
    known = f"files of {session.backbone.card.revision}"
    if not session.model_files and known not in session.recorded:
        source = Path(lasting_name(session.opened_by.setup.backbone if session.opened_by else "").rpartition(":")[2])
        there = source.is_absolute() and source.exists()
        listed = (source.rglob("*") if source.is_dir() else [source]) if there else ()
        session.recorded[known] = {str(path): file_digest(path) for path in sorted(listed) if path.is_file()}
    found: dict[str, str] = dict(session.model_files) or session.recorded[known]
    return found


def _log(path: Path) -> dict[str, Any]:
    """Summarise the log: counts, the first losses and the hash."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    losses = [line["loss"] for line in lines if "step" in line]
    return {
        "lines": len(lines),
        "steps": len(losses),
        "epochs": sum("epoch" in line for line in lines),
        "first_losses": losses[:FIRST_LOSSES],
        "sha256": file_digest(path) if path.is_file() else None,
    }


def _predictions(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    content = path.read_bytes()
    return {"rows": content.count(b"\n"), "bytes": len(content), "sha256": file_digest(path)}


def _weights(module: Path) -> dict[str, Any] | None:
    """Describe the delta: the trained weights, or all that a method without a backbone learned. None if not stored."""
    if not (module / "module.json").is_file():
        return None
    tensors = header_of(module / "delta.safetensors").numbers
    groups: dict[str, int] = {}
    for name, numbers in tensors.items():
        group = name.partition(".")[0]
        groups[group] = groups.get(group, 0) + numbers
    description = read_json(module / "module.json")
    beside = [path for path in sorted(module.iterdir()) if path.name not in ("delta.safetensors", "README.md")]
    return {
        "sha256": description["delta_sha256"],
        "files": {path.name: file_digest(path) for path in beside},  # files needed for prediction and the self-test
        "tensors": len(tensors),
        "stored_parameters": sum(groups.values()),
        "trained_parameters": description["trained_parameters"],
        "groups": groups,
    }
