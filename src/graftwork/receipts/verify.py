"""`verify`: check a receipt by comparing its inputs, executing the run again and comparing the outcomes."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.own_metric import require_own_metrics
from graftwork.core.progress import Progress, silent
from graftwork.core.run import ENGINE, RunSpec
from graftwork.core.task import FILES, Task
from graftwork.data.readers.hub_datasets import is_hub
from graftwork.data.splits.draws import drawn_again
from graftwork.data.splits.split_folder import with_split_files
from graftwork.errors import GraftworkError, StorageError
from graftwork.io.files import canonical, file_digest, read_json, storage_errors, write_text
from graftwork.io.locks import waiting
from graftwork.machine.environment import environment, usable_cores
from graftwork.machine.memory import Cut
from graftwork.machine.thread_count import limited_to
from graftwork.pretrained.download_policy import kept_only
from graftwork.receipts.differences import (
    DATA_FILE,
    INPUT,
    OUTCOME,
    RECORD,
    SURROUNDINGS,
    Difference,
    data_differences,
    failed_alike,
    may_round,
    method_differences,
    model_differences,
    outcome_differences,
    surroundings_differences,
)
from graftwork.receipts.file_integrity import compared_predictions, first_other_step, read_spec, record_differences
from graftwork.receipts.seed_group import Band, plausible_repeat, row_of
from graftwork.run.execute import execute_spec
from graftwork.run.receipt import inputs_of, read_receipt
from graftwork.run.receipt_fields import missing
from graftwork.run.recorded_data import recorded_file
from graftwork.run.recorded_numerics import numerics_of
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import RunStore
from graftwork.train.method_files import method_again

EQUAL, IN_BAND, IN_TOLERANCE, DIFFERENT = "bitwise equal", "within the band", "within the tolerance", "different"
SESSIONS_KEPT = 2  # sessions of one board: for methods with the backbone and for methods without
VERIFIED = "verified.jsonl"


@dataclass(frozen=True)
class MovedInputs:
    """New locations of a run's inputs that were moved."""

    data: str | None = None
    validation: str | None = None
    test: str | None = None
    backbone: str | None = None

    @property
    def files(self) -> dict[str, str]:
        """The moved data files."""
        return {name: path for name in FILES if (path := getattr(self, name)) is not None}


HERE = MovedInputs()


@dataclass(frozen=True)
class Verification:
    """The verdict on one run, and its reasons."""

    run: str
    method: str
    seed: int
    verdict: str  # EQUAL, IN_BAND, IN_TOLERANCE or DIFFERENT
    differences: tuple[Difference, ...]
    executed: bool  # True if the run was executed again, False if its inputs differ
    seconds: float  # time of the re-execution
    score: Mapping[str, Any] = field(default_factory=dict)  # of the headline: metric, split, recorded, found
    predictions: Mapping[str, Any] = field(default_factory=dict)  # of `compared_predictions`
    band: Band | None = None  # used to judge the score; None if the bits decided

    @property
    def holds(self) -> bool:
        """True if the receipt was confirmed."""
        return self.verdict != DIFFERENT

    @property
    def failed_alike(self) -> bool:
        """True if the run failed again with the same error class, but with other bits."""
        return self.verdict == IN_TOLERANCE and self.band is None

    def as_json(self) -> dict[str, Any]:
        """Return as JSON."""
        return asdict(self)


class Verifier:
    """Verifies runs one by one; runs over the same data and backbone share a session.

    `scratch` is an empty folder for the re-executed runs.
    """

    def __init__(self, scratch: Path, moved: MovedInputs = HERE):
        self.scratch, self.moved = scratch, moved
        self._sessions: dict[str, Session] = {}

    def verify(self, folder: Path, progress: Progress = silent) -> Verification:
        """Verify the run in `folder`.

        Nothing is downloaded from the hub except what `moved` names. Raises `StorageError` if its receipt, data or
        backbone is missing, or the receipt is incomplete, and `ConfigError` for a pre-training and for what this
        machine can't do.
        """
        folder = folder.resolve()  # for ".", whose parent must be the folder of the other runs
        spec, receipt = read_spec(folder), _whole_receipt(folder)
        found = record_differences(folder, spec, receipt)
        item, others = _method_here(spec, receipt)
        found += others
        if any(one.group == RECORD and one.about in _of_the_spec(spec) for one in found) or _inputs(found):
            return self._verdict(folder, spec, receipt, found)
        with _threads(receipt), kept_only(*astuple(self.moved)):
            try:
                session = self._session(item, spec, receipt)
            except GraftworkError:
                changed = [*_changed_files(receipt, self.moved), *_changed_model(receipt)]
                if not changed:
                    raise
                return self._verdict(folder, spec, receipt, [*found, *changed])
            found += self._session_differences(session, spec, receipt)
            if (rule := session.word_rule(item)) != spec.words:
                found.append(Difference("word rule", INPUT, f"rule {spec.words}", f"rule {rule}"))
            if _inputs(found):
                return self._verdict(folder, spec, receipt, found)
            return self._again(folder, spec, receipt, found, item, session, progress)

    def _session(self, item: ConfiguredMethod, spec: RunSpec, receipt: Mapping[str, Any]) -> Session:
        """Return a session over the run's data and backbone, with its threads; opened once for runs that share them."""
        require_own_metrics(receipt["method"]["question"])
        numerics = numerics_of(receipt)
        uses = item.method.uses_backbone
        task = _task(receipt, self.moved)
        backbone = self.moved.backbone or receipt["rerun"]["backbone"]
        precision = numerics["precision"] or "fp32"
        opens = {name: value for name, value in receipt["rerun"].items() if name != "method"}
        key = canonical([opens, uses and precision, numerics["device"]])
        if key not in self._sessions:
            for old in list(self._sessions)[: 1 - SESSIONS_KEPT]:
                del self._sessions[old]
            runs = self.scratch / f"session-{len(list(self.scratch.iterdir()))}"
            setup = RunSettings(
                backbone, runs=str(runs), precision=precision, device=numerics["device"], cache_size="0"
            )
            opened = open_session(task, [item], setup)
            self._sessions[key] = replace(opened, dataset=drawn_again(opened.dataset, receipt["rerun"].get("draw")))
        session = self._sessions[key]
        cuts = [Cut(**cut) for cut in numerics.get("cuts", ())]
        alike = {**session.numerics, "threads": numerics["threads"]}
        return replace(session, numerics=alike, cuts=cuts, max_memory=numerics.get("max_memory"))

    def _session_differences(self, session: Session, spec: RunSpec, receipt: Mapping[str, Any]) -> list[Difference]:
        """Compare the open session with the receipt."""
        here = inputs_of(session, spec)
        found = data_differences(receipt["data"], here["data"])
        if here["model"] is not None:
            found += model_differences(receipt["model"], here["model"]["files"], here["model"]["revision"])
        asked = {"question": session.dataset.task.question()}
        if not found:
            found += method_differences({"question": receipt["method"]["question"]}, json.loads(json.dumps(asked)))
        return found

    def _again(
        self,
        folder: Path,
        spec: RunSpec,
        receipt: Mapping[str, Any],
        found: list[Difference],
        item: ConfiguredMethod,
        session: Session,
        progress: Progress,
    ) -> Verification:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=self.scratch) as place:
            execute_spec(replace(session, store=RunStore(Path(place))), item, spec, progress)
            seconds = time.perf_counter() - began
            again = Path(place) / spec.id
            other = read_receipt(again)
            found += surroundings_differences(receipt, other) + _threads_here(receipt)
            found += outcome_differences(receipt["outcome"], other["outcome"])
            if not any(one.about in ("log", "losses") for one in found):
                found += first_other_step(folder, again)
            damaged = any((one.group, one.about) == (RECORD, "predictions") for one in found)
            comparable = other["outcome"]["predictions"] and not damaged
            predictions = compared_predictions(folder, again, session.dataset.task.kind) if comparable else {}
        return self._verdict(folder, spec, receipt, found, other, seconds, predictions)

    def _verdict(
        self,
        folder: Path,
        spec: RunSpec,
        receipt: Mapping[str, Any],
        found: list[Difference],
        again: Mapping[str, Any] | None = None,
        seconds: float = 0.0,
        predictions: Mapping[str, Any] = {},
    ) -> Verification:
        groups = {one.group for one in found}
        verdict, band, score = DIFFERENT, None, _score(receipt, again)
        sound = again is not None and not groups & {INPUT, RECORD}
        if sound and OUTCOME not in groups:
            verdict = EQUAL
        elif sound and may_round(receipt, found) and failed_alike(receipt, again):
            verdict = IN_TOLERANCE
        elif sound and may_round(receipt, found) and score and score["found"] is not None:
            row = [one for _, one in row_of(folder.parent, spec) if one.status == "ok" and one.id != spec.id]
            others = [(result.scores or result.validation)[score["metric"]] for result in row]
            band, alike = plausible_repeat(others, score["recorded"], score["found"])
            if alike:
                verdict = IN_BAND if band.runs else IN_TOLERANCE
        return Verification(
            run=receipt["identity"]["run"],
            method=spec.method["name"],
            seed=spec.seed,
            verdict=verdict,
            differences=tuple(found),
            executed=again is not None,
            seconds=seconds,
            score=score,
            predictions=predictions,
            band=band,
        )


@contextlib.contextmanager
def verifier(moved: MovedInputs = HERE) -> Iterator[Verifier]:
    """Yield a `Verifier` whose scratch folder is removed when the block ends."""
    with tempfile.TemporaryDirectory(prefix="graftwork-verify-") as scratch:
        yield Verifier(Path(scratch), moved)


def keep(folder: Path, verification: Verification) -> None:
    """Append the verdict to the run's `verified.jsonl` with time, versions and machine. Its folder's mtime is kept."""
    here, folder = environment(), folder.resolve()
    about = {key: here[key] for key in ("time", "graftwork", "commit", "python", "platform", "processor")}
    line = json.dumps({"format": 1} | about | verification.as_json(), ensure_ascii=False) + "\n"
    path, lock = folder / VERIFIED, folder.parent / f".{folder.name}.{VERIFIED}.lock"
    with storage_errors(path), waiting(lock):
        age = folder.stat()
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        write_text(path, before + line)
        os.utime(folder, ns=(age.st_atime_ns, age.st_mtime_ns))


def runs_of_board(folder: Path) -> list[str]:
    """Return the ids of all runs of a board, each once.

    Raises `StorageError` if there is no `leaderboard.json`.
    """
    content = read_json(folder / "leaderboard.json")
    return list(dict.fromkeys(run for row in content["rows"] for run in row["runs"]))


def _whole_receipt(folder: Path) -> dict[str, Any]:
    receipt = read_receipt(folder)
    lost = missing(receipt)
    if lost:
        raise StorageError(
            "the receipt is incomplete",
            where=str(folder / "receipt.json"),
            got="; ".join(lost[:5]) + (f"; and {len(lost) - 5} more" if len(lost) > 5 else ""),
            do="restore the receipt from a copy",
        )
    if receipt["rerun"] is None:
        raise StorageError(
            "this run was made from objects in memory, so it can't be opened again",
            where=str(folder),
            do="train from a file and a named backbone",
        )
    return receipt


def _of_the_spec(spec: RunSpec) -> set[str]:
    """Return the names of differences that make the identity of the run ambiguous."""
    named = {"seed", "data", "backbone", "run id", "engine", "method version", "label map", *spec.numerics}
    return named | set(spec.method) | set(spec.recipe) | {f"question.{name}" for name in spec.question}


def _inputs(found: list[Difference]) -> bool:
    return any(one.group == INPUT for one in found)


def _method_here(spec: RunSpec, receipt: Mapping[str, Any]) -> tuple[ConfiguredMethod, list[Difference]]:
    """Return the method as this version defines it, and its differences from the record.

    Raises `ConfigError` for a method that no longer exists, `StorageError` for a missing file of it.
    """
    item = method_again(spec.method, receipt["method"]["config"], receipt["rerun"].get("method", {}))
    found = []
    if receipt["identity"]["engine"] != ENGINE:
        found.append(Difference("engine", INPUT, str(receipt["identity"]["engine"]), str(ENGINE)))
    here = json.loads(json.dumps(item.identity))
    return item, found + method_differences({"config": dict(spec.method)}, {"config": here})


def _task(receipt: Mapping[str, Any], moved: MovedInputs) -> Task:
    """Return the recorded task with the files' current locations. Raises `StorageError` for a missing file."""
    own = moved.data is not None and is_hub(Path(moved.data))  # a hub data set has its own splits
    asked: dict[str, Any] = {
        name: value for name, value in receipt["rerun"]["task"].items() if not (own and is_hub(value))
    }
    asked |= _moved_files(moved)
    asked |= {"rejects": ""} if asked.get("rejects") else {}  # bad rows are skipped again, but not written
    asked |= {name: Task.find(asked[name]) for name in FILES if asked.get(name) is not None}
    task = Task.from_json(asked)
    for split, path in task.files.items():
        told = receipt["data"]["files"].get(split, {"sha256": None, "bytes": 0})
        if told["sha256"] is not None and not path.exists():
            flag = "--data" if split == "train" else f"--{split}"
            raise StorageError(
                f"the {split} data of this run is missing",
                where=str(path),
                expected=f"{told['bytes']:,} bytes with sha256 {told['sha256']}",
                do=f"restore it, or give its new place: {flag} FILE",
            )
    return task


def _moved_files(moved: MovedInputs) -> dict[str, Any]:
    """Return the moved data files; for a folder of splits all its files."""
    if moved.data is None:
        return moved.files
    inside = with_split_files(Task("moved", Task.find(moved.data)))
    found = {name: path for name in FILES if (path := getattr(inside, name)) is not None}
    return found | moved.files | {"data": inside.data}


def _changed_files(receipt: Mapping[str, Any], moved: MovedInputs) -> list[Difference]:
    """Return the data files whose bytes changed, for data that can no longer be read."""
    found = []
    for split, path in _task(receipt, moved).files.items():
        told = receipt["data"]["files"].get(split)
        here = recorded_file(path) if told is not None and told["sha256"] is not None else told
        if told is not None and here is not None and told["sha256"] != here["sha256"]:
            sizes = [f"{file['bytes']:,} bytes, sha256 {file['sha256'][:12]}…" for file in (told, here)]
            found.append(Difference(f"{DATA_FILE} {split}", INPUT, *sizes))
    return found


def _changed_model(receipt: Mapping[str, Any]) -> list[Difference]:
    """Return the backbone's files whose bytes changed, for a backbone that can no longer be opened."""
    model = receipt["model"]
    if model is None or model["folder"] is None or not Path(model["folder"]).is_dir():
        return []
    paths = {name: Path(model["folder"]) / name for name in model["files"]}
    return model_differences(model, {name: file_digest(path) for name, path in paths.items() if path.is_file()}, None)


@contextlib.contextmanager
def _threads(receipt: Mapping[str, Any]) -> Iterator[None]:
    """Set the run's thread counts in torch and in numpy's BLAS for the block."""
    wanted = receipt["numerics"]["threads"]
    of_blas = max((item["threads"] for item in receipt["numerics"]["blas"]), default=wanted)
    with limited_to(wanted), threadpool_limits(of_blas, user_api="blas"):
        yield


def _threads_here(receipt: Mapping[str, Any]) -> list[Difference]:
    """Report a run with more threads than this machine has cores; it is still executed with them, only more slowly."""
    cores, threads = usable_cores() or 0, receipt["numerics"]["threads"]
    if threads <= cores:
        return []
    return [Difference("threads", SURROUNDINGS, f"{threads}", f"{cores} cores, run with {threads} threads")]


def _score(receipt: Mapping[str, Any], again: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the headline score on test, or on validation for an older version's trial; empty for a failed run."""
    metric, outcome = receipt["method"]["selection"]["metric"], receipt["outcome"]
    split = "scores" if outcome["scores"] else "validation"
    if metric not in outcome[split]:
        return {}
    found = again["outcome"][split].get(metric) if again is not None else None
    told = {"metric": metric, "split": "test" if split == "scores" else "validation"}
    told |= {"positive": receipt["method"]["question"].get("positive")}
    return told | {"recorded": outcome[split][metric], "found": found}
