"""Integrity of a run's files, against its receipt and against another execution of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graftwork.core.kind import OwnOutputs
from graftwork.core.run import ENGINE, RunSpec
from graftwork.errors import StorageError
from graftwork.io.files import digest, file_digest, read_json, storage_errors
from graftwork.receipts.differences import OUTCOME, RECORD, Difference, leaves, method_differences, short
from graftwork.registry import kinds
from graftwork.run.receipt import with_seal
from graftwork.run.store import read_predictions
from graftwork.train.seeds import DRAWN, seeds_of


def read_spec(folder: Path) -> RunSpec:
    """Read the `spec.json` of a run. Raises `StorageError`."""
    content = _content(folder)
    try:
        return RunSpec(**content)
    except TypeError as error:
        raise _damaged("specification", folder / "spec.json", error) from None


def _damaged(what: str, path: Path, error: Exception) -> StorageError:
    return StorageError(
        f"not the {what} of a run: {type(error).__name__}: {error}",
        where=str(path),
        do=f"restore {path.name} from a copy",
    )


def id_of(folder: Path, engine: int) -> str:
    """Return the id of the run's `spec.json` for that engine version."""
    return digest({"engine": engine} | _content(folder))[:12]


def _content(folder: Path) -> dict[str, Any]:
    content = read_json(folder / "spec.json")
    if not isinstance(content, dict):
        raise _damaged("specification", folder / "spec.json", TypeError("it is not a JSON object"))
    listed = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    return {name: value for name, value in listed.items() if name != "format"}


def record_differences(folder: Path, spec: RunSpec, receipt: Mapping[str, Any]) -> list[Difference]:
    """Return what was changed in the run's folder after it was written. Raises `StorageError` for a missing file."""
    found = [*_of_the_receipt(receipt), *_of_the_spec(folder, spec, receipt)]
    outcome = receipt["outcome"]
    found += _file(folder / "log.jsonl", "log", outcome["log"]["sha256"])
    if outcome["predictions"] is not None:
        found += _file(folder / "predictions.jsonl", "predictions", outcome["predictions"]["sha256"])
    if outcome["weights"] is not None:
        module = folder / "module"
        found += _file(module / "delta.safetensors", "delta", outcome["weights"]["sha256"])
        for name, sha in outcome["weights"].get("files", {}).items():  # older receipts have none
            found += _file(module / name, "self-test" if name.startswith("selftest") else "module", sha)
    try:
        return [*found, *_of_the_result(read_json(folder / "result.json"), receipt)]
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged("result", folder / "result.json", error) from None


def _of_the_receipt(receipt: Mapping[str, Any]) -> list[Difference]:
    seal = with_seal(receipt)["seal"]
    return [] if seal == receipt["seal"] else [Difference("receipt", RECORD, short(receipt["seal"]), short(seal))]


def _of_the_spec(folder: Path, spec: RunSpec, receipt: Mapping[str, Any]) -> list[Difference]:
    """Compare specification and receipt, and check that the specification gives the run's id."""
    numerics = receipt["numerics"]
    model = receipt["model"]
    told = {
        "seed": receipt["randomness"]["seed"],
        "held": receipt["randomness"]["held"],
        "data": receipt["data"]["digest"],
        "backbone": model and model["revision"],
        **{name: numerics[name] for name in spec.numerics if name in numerics},
    }
    said = {"seed": spec.seed, "held": list(spec.held), "data": spec.data, "backbone": spec.backbone, **spec.numerics}
    found = [Difference(path, RECORD, f"{a} in receipt.json", f"{b} in spec.json") for path, a, b in leaves(told, said)]
    found += method_differences(
        {name: receipt["method"][name] for name in ("config", "recipe", "question")},
        {"config": dict(spec.method), "recipe": dict(spec.recipe), "question": dict(spec.question)},
        RECORD,
    )
    run = receipt["identity"]["run"]
    randomness = receipt["randomness"]
    drawn = [source for source in DRAWN if source in randomness["derived"]]
    if seeds_of(randomness["seed"], randomness["held"], drawn) != randomness["derived"]:
        found.append(Difference("seed", RECORD, "seeds of other purposes", f"those of seed {said['seed']}"))
    engine = receipt["identity"]["engine"]
    if id_of(folder, engine) != run and not found:
        about = "engine" if id_of(folder, ENGINE) == run else "run id"
        shown = (f"engine {ENGINE}", f"engine {engine}") if about == "engine" else (run, id_of(folder, engine))
        found.append(Difference(about, RECORD, *shown))
    return found


def _file(path: Path, about: str, sha: str) -> Iterator[Difference]:
    found = file_digest(path)
    if found != sha:
        yield Difference(about, RECORD, short(sha), f"{short(found)} in {path.name}")


def _of_the_result(result: Mapping[str, Any], receipt: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare `result.json` with the receipt."""
    outcome = receipt["outcome"]
    failure = {"class": result["failure"], "message": result["error"]} if result["status"] != "ok" else None
    pairs = (
        ("run id", receipt["identity"]["run"], result["id"]),
        ("seed", receipt["randomness"]["seed"], result["seed"]),
        ("status", outcome["status"], result["status"]),
        ("scores", outcome["scores"], result["scores"]),
        ("interval", outcome.get("interval"), result.get("interval")),
        ("validation scores", outcome["validation"], result["validation"]),
        ("failure", outcome["failure"], failure),
        ("facts", outcome.get("facts", result["facts"]), result["facts"]),  # early receipts have none
        ("price tag", receipt["price_tag"], result["costs"]),
        ("wall time", receipt["timeline"]["wall_seconds"], result["spent"]["wall_seconds"]),
    )
    for about, told, said in pairs:
        for path, a, b in leaves(told, said):
            yield Difference(about, RECORD, f"{path} {a} in receipt.json".strip(), f"{b} in result.json")


def losses_of(folder: Path) -> list[float]:
    """Read the logged loss of every step. Raises `StorageError`."""
    path = folder / "log.jsonl"
    with storage_errors(path):
        lines = path.read_text(encoding="utf-8").splitlines()
    try:
        return [line["loss"] for line in map(json.loads, lines) if "step" in line]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged("log", path, error) from None


def predictions_of(folder: Path) -> dict[str, tuple[Any, list[float]]]:
    """Return "SPLIT ID" of each example -> its prediction and its flat logits, or the numbers in other outputs.

    Raises `StorageError`.
    """
    return {
        f"{line['split']} {line['id']}": (line["prediction"], _flat(line["logits"]))
        for line in read_predictions(folder)
    }


def _flat(logits: Any) -> list[float]:
    if isinstance(logits, list):
        return [number for part in logits for number in _flat(part)]
    return [logits] if isinstance(logits, int | float) else []


def first_other_step(folder: Path, again: Path) -> list[Difference]:
    """Return the first step whose loss differs."""
    pairs = zip(losses_of(folder), losses_of(again), strict=False)
    first = next(((step, a, b) for step, (a, b) in enumerate(pairs) if a != b), None)
    return [Difference("losses", OUTCOME, f"step {first[0]}: {first[1]!r}", repr(first[2]))] if first else []


def compared_predictions(folder: Path, again: Path, kind: str) -> dict[str, Any]:
    """Return the number of equal predictions, and the largest logit difference (None if the rows don't match).

    If the kind's outputs are not logits, the difference is that of the numbers in them, and the key "numbers" says so.
    """
    stored, found = predictions_of(folder) if (folder / "predictions.jsonl").is_file() else {}, predictions_of(again)
    same = sum(key in stored and stored[key][0] == prediction for key, (prediction, _) in found.items())
    apart: float | None = 0.0
    for key, (_, logits) in found.items():
        if key not in stored or len(stored[key][1]) != len(logits):
            apart = None
            break
        apart = max(apart or 0.0, *(abs(a - b) for a, b in zip(stored[key][1], logits, strict=True)), 0.0)
    told = {"rows": len(found), "equal": same, "largest_logit_difference": apart}
    return told | ({"numbers": "output"} if isinstance(kinds.get(kind), OwnOutputs) else {})
