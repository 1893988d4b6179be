"""The store of runs: `runs/<id>/`, complete whenever it exists, because it is renamed into place last.

Runs in progress have hidden entries beside it: `.<id>.claim`, a file locked by the process that executes the run, and
the folder that it fills, with its heartbeat. The next process to lock the claim removes the folder of a killed process,
but only if its heartbeat has stopped: some shared file systems grant a lock to every process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftwork.core.kind import Kind, outputs_from
from graftwork.core.meter import Cost, Phase
from graftwork.core.method import Logits
from graftwork.core.run import RunResult, RunSpec
from graftwork.core.task import Split
from graftwork.errors import StorageError, UnknownName
from graftwork.io.files import read_json, storage_errors, sync_folder, sync_tree, write_json, write_text
from graftwork.io.heartbeat import beating, is_alive
from graftwork.io.locks import holding

FORMAT = 1
PLACING_ATTEMPTS = 3
HEARTBEAT = ".heartbeat"  # file of a folder that is being filled
LISTED = 10  # number of latest runs that a message lists
ON_THE_WAY = re.compile(r"\.([0-9a-f]+)\.(claim|[a-z0-9_]{8}(\.replaced)?)")  # of a run in progress, not its checkpoint
SCRATCH = re.compile(r"\.forecast\.[a-z0-9_]{8}")  # scratch folder of a forecast
SCRATCH_SECONDS = 86_400.0  # older ones are abandoned


class RunStore:
    """The store of runs in one folder, which several processes may share: a finished run is placed by a rename.

    `root` is an existing folder; only `claim`, `writing` and `sweep` write to it.
    """

    def __init__(self, root: Path):
        self.root = root
        self._refused: dict[str, int | None] = {}  # run -> `_stamp` when another process was first seen executing it

    def find(self, run_id: str) -> RunResult | None:
        """Return the successful run with this id, else None: failed runs are retried."""
        result = self._read(run_id)
        return result if result is not None and result.status == "ok" else None

    def find_claimed(self, run_id: str) -> RunResult | None:
        """As `find`, but also return a run that failed in another process while this one waited: it is not retried."""
        result = self._read(run_id)
        fresh = run_id in self._refused and self._refused[run_id] != self._stamp(run_id)
        return result if result is not None and (fresh or result.status == "ok") else None

    @contextlib.contextmanager
    def claim(self, run_id: str) -> Iterator[bool]:
        """Try to lock the run for the block; yield whether this process may execute it.

        A claim ends with its process, however that ends. On a file system without locks every process may execute the
        run, and the first result is kept. Raises `StorageError`.
        """
        with contextlib.ExitStack() as held:
            with storage_errors(self.root):
                claim = self.root / f".{run_id}.claim"
                ours = held.enter_context(holding(claim))
                if ours:
                    os.utime(claim)
                    ours = self._clean(run_id, claim.stat().st_mtime)
            if ours is False:
                self.refuse(run_id, self._stamp(run_id))
            yield ours is not False

    def refuse(self, run_id: str, stamp: int | None) -> None:
        """Record that another process executes the run, and the `stamp` of its result now: only a later result counts.

        `stamp` comes from `refused`, here or in another process of the same command.
        """
        self._refused.setdefault(run_id, stamp)

    def refused(self, run_id: str) -> int | None:
        """Return the stamp of the result when another process was first seen executing the run; None: no result."""
        return self._refused[run_id]

    def sweep(self) -> None:
        """Remove the remains of killed processes for runs that no process executes now. Raises `StorageError`."""
        with storage_errors(self.root):
            names = [path.name for path in self.root.glob(".*")]
        for run_id in sorted({found[1] for name in names if (found := ON_THE_WAY.fullmatch(name))}):
            with self.claim(run_id):
                pass
        for folder in (self.root / name for name in names if SCRATCH.fullmatch(name)):
            with contextlib.suppress(FileNotFoundError):
                if folder.stat().st_mtime < time.time() - SCRATCH_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def checkpoint(self, run_id: str) -> Path:
        """Return the path of the checkpoints of a run in progress; they are removed when it is finished."""
        return self.root / f".{run_id}.checkpoint"

    @contextlib.contextmanager
    def writing(self, run_id: str) -> Iterator[Path]:
        """Yield a folder to fill; it becomes `runs/<id>` if the block succeeds and is removed otherwise.

        Raises `StorageError`, also if the folder was removed meanwhile.
        """
        final = self.root / run_id
        with storage_errors(final):
            if final.is_symlink() or final.is_file():
                final.mkdir(exist_ok=True)  # raises before hours of work if it is not a folder
        with storage_errors(self.root):
            folder = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{run_id}."))
        try:
            with _kept_open(folder) as handle, contextlib.ExitStack() as beats:
                with storage_errors(folder):
                    beats.enter_context(beating(folder / HEARTBEAT))
                yield folder
                _require_same(folder, handle)
                self._place(folder, final)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _place(self, folder: Path, final: Path) -> None:
        """Rename the folder into place, replacing a failed run; keep a successful run that was placed first."""
        aside = folder.with_name(f"{folder.name}.replaced")
        with storage_errors(final):
            folder.chmod(0o755)
            sync_tree(folder)
            (folder / HEARTBEAT).unlink(missing_ok=True)
            try:
                for attempt in range(PLACING_ATTEMPTS):
                    if self.find(final.name) is not None:
                        return
                    if os.path.lexists(final):
                        _remove(aside)
                        os.rename(final, aside)  # atomically, so that no process sees a partial run
                    try:
                        os.rename(folder, final)
                        break
                    except OSError:  # another process placed a failed run meanwhile
                        if attempt == PLACING_ATTEMPTS - 1:
                            raise
            finally:
                self._settle(aside, final)
            sync_folder(self.root)

    def _settle(self, aside: Path, final: Path) -> None:
        """Remove a failed run that was replaced, or restore it."""
        if final.exists():
            _remove(aside)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.rename(aside, final)

    def _clean(self, run_id: str, now: float) -> bool:
        """Remove unfinished folders of this run; restore a failed run that was about to be replaced.

        Return False and change nothing if a live process fills such a folder; `now` as in `is_alive`.
        """
        found = [(path, ON_THE_WAY.fullmatch(path.name)) for path in self.root.glob(f".{run_id}.*")]
        unfinished = [(path, name[3]) for path, name in found if name is not None and name[2] != "claim"]
        if any(is_being_filled(path, now) for path, replaced in unfinished if not replaced):
            return False
        for path, replaced in unfinished:
            self._settle(path, self.root / run_id) if replaced else _remove(path)
        return True

    def _read(self, run_id: str) -> RunResult | None:
        """Return the stored result, if any; retries while another process replaces a failed one."""
        path = self.root / run_id / "result.json"
        while path.is_file():
            try:
                return read_result(path)
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return None

    def _stamp(self, run_id: str) -> int | None:
        """Return the modification time of the result in ns, which changes when a result is placed; None without one."""
        with contextlib.suppress(FileNotFoundError):
            return (self.root / run_id / "result.json").stat().st_mtime_ns
        return None

    def ids(self) -> list[str]:
        """Return the ids of all complete runs, oldest first."""
        found = []
        for path in self.root.glob("[!.]*/result.json"):
            with contextlib.suppress(FileNotFoundError):  # a failed run that another process is replacing
                found.append((path.parent.stat().st_mtime, path.parent.name))
        return [name for _, name in sorted(found)]

    def folder(self, start: str) -> Path:
        """Return the folder of the run with this id prefix. Raises `UnknownName`, or `StorageError` for several."""
        matching = [run_id for run_id in self.ids() if run_id.startswith(start)]
        if not matching:
            listed = self.ids()
            latest = (["…"] if len(listed) > LISTED else []) + listed[-LISTED:]
            raise UnknownName("run", start, latest, where=str(self.root), else_do="graft ls lists all")
        if len(matching) > 1:
            raise StorageError(
                f"{start!r} begins several runs",
                where=str(self.root),
                got=", ".join(matching),
                do="give more of the id",
            )
        return self.root / matching[0]


def is_being_filled(folder: Path, now: float) -> bool:
    """Return whether a live process fills this folder of a run; `now` as in `is_alive`. Raises `OSError`."""
    with contextlib.suppress(FileNotFoundError):  # placed or removed meanwhile
        return is_alive(folder / HEARTBEAT, now)
    return False


def _remove(folder: Path) -> None:
    """Remove a folder or a link to one; ignore errors, a later process will retry."""
    with contextlib.suppress(OSError):
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)


@contextlib.contextmanager
def _kept_open(folder: Path) -> Iterator[int | None]:
    """Yield a file descriptor of the folder, which identifies it; None on Windows, which can't open folders."""
    handle = None if sys.platform == "win32" else os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _require_same(folder: Path, handle: int | None) -> None:
    if handle is None:
        return
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.stat(folder), os.fstat(handle)):
            return
    raise StorageError(
        "the folder of a run was removed while the run filled it",
        where=str(folder),
        do="run the same command again; finished runs are kept",
    )


def write_run(folder: Path, spec: RunSpec, result: RunResult) -> None:
    """Write `spec.json`, then `result.json` last, so that its presence means that the run is complete."""
    write_json(folder / "spec.json", {"format": FORMAT} | spec.content())
    write_json(folder / "result.json", {"format": FORMAT} | asdict(result))


def read_result(path: Path) -> RunResult:
    """Read a `result.json`. Raises `StorageError`, also for one of another format."""
    content = read_json(path)
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise StorageError("written by another version of Graftwork", where=str(path), expected=f"format {FORMAT}")
    content.pop("seeds", None)  # now only in the receipt
    content["interval"] = tuple(content["interval"]) if content.get("interval") else None
    content["costs"] = {name: Cost(**cost) for name, cost in content["costs"].items()}
    content |= {name: Phase(**content.get(name, {})) for name in ("spent", "shared", "opening")}
    return RunResult(**content)


def write_predictions(folder: Path, splits: Sequence[tuple[Split, Logits]], decoded: Mapping[str, list[Any]]) -> None:
    """Write `predictions.jsonl`: a line per validation and test example, with its logits at full precision."""
    lines = []
    for split, logits in splits:
        for example, answer, row in zip(split.examples, decoded[split.name], logits.tolist(), strict=True):
            line = {"id": example.id, "split": split.name, "target": example.target}
            line |= {"prediction": next(iter(answer.values())), "logits": row}
            lines.append(json.dumps(line, ensure_ascii=False))
    write_text(folder / "predictions.jsonl", "\n".join(lines) + "\n")


def read_logits(folder: Path, split: str, kind: Kind | None = None) -> Logits:
    """Read the stored logits of one split, or outputs of a kind with `OwnOutputs`, in the data set's order.

    Raises `StorageError`.
    """
    return outputs_from(kind, [line["logits"] for line in read_predictions(folder) if line["split"] == split])


def read_predictions(folder: Path) -> list[dict[str, Any]]:
    """Read the lines of `predictions.jsonl`. Raises `StorageError`, also for a malformed line."""
    path = folder / "predictions.jsonl"
    with storage_errors(path):
        lines = path.read_bytes().split(b"\n")
    found = []
    for number, line in enumerate(lines, 1):
        try:
            read = json.loads(line) if line else None
            if read is not None:
                found.append({key: read[key] for key in ("id", "split", "target", "prediction", "logits")})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(
                f"not the predictions of a run: {type(error).__name__}: {error}",
                where=f"{path}, line {number}",
                do="restore predictions.jsonl from a copy, or remove the run's folder and run it again",
            ) from None
    return found
