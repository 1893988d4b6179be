"""The store of runs: `runs/<id>/`, complete as soon as it is there, because it is renamed into place last."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graftwork.core.meter import Cost, Phase
from graftwork.core.method import Logits
from graftwork.core.ragged import from_lists
from graftwork.core.run import RunResult, RunSpec
from graftwork.core.task import Split
from graftwork.errors import StorageError, UnknownName
from graftwork.files import read_json, storage_errors, sync_folder, write_json, write_text

FORMAT = 1
PLACING_ATTEMPTS = 3


class RunStore:
    """Looks a run up before it is computed. Two processes may share one store: a run is renamed into place whole.

    `root` is an existing folder; it is written to only by `writing`.
    """

    def __init__(self, root: Path):
        self.root = root

    def find(self, run_id: str) -> RunResult | None:
        """The finished, successful run of this id; failed ones are tried again."""
        path = self.root / run_id / "result.json"
        if not path.is_file():
            return None
        result = read_result(path)
        return result if result.status == "ok" else None

    def checkpoint(self, run_id: str) -> Path:
        """Where the checkpoints of a run on its way are; nothing, once it is finished."""
        return self.root / f".{run_id}.checkpoint"

    @contextlib.contextmanager
    def writing(self, run_id: str) -> Iterator[Path]:
        """A folder to fill; it becomes `runs/<id>` when the block ends well and is removed otherwise."""
        with storage_errors(self.root):
            folder = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{run_id}."))
        try:
            yield folder
            self._place(folder, self.root / run_id)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _place(self, folder: Path, final: Path) -> None:
        """Rename into place. A run that another process finished first is kept; a failed one is replaced."""
        with storage_errors(final):
            folder.chmod(0o755)
            for attempt in range(PLACING_ATTEMPTS):
                if self.find(final.name) is not None:
                    return
                self._clear(final, folder.with_name(f"{folder.name}.replaced"))
                try:
                    os.rename(folder, final)
                    break
                except OSError:  # another process placed a failed run meanwhile
                    if attempt == PLACING_ATTEMPTS - 1:
                        raise
            sync_folder(self.root)

    def _clear(self, final: Path, aside: Path) -> None:
        """Take a failed run away in one rename, so that nobody sees half of it."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(final, aside)
            shutil.rmtree(aside)

    def ids(self) -> list[str]:
        """Every complete run, oldest first."""
        found = [path.parent for path in self.root.glob("[!.]*/result.json")]
        return [folder.name for folder in sorted(found, key=lambda folder: folder.stat().st_mtime)]

    def folder(self, start: str) -> Path:
        """The run whose id begins with `start`. Raises `UnknownName`, or `StorageError` when several do."""
        matching = [run_id for run_id in self.ids() if run_id.startswith(start)]
        if not matching:
            raise UnknownName("run", start, self.ids()[-10:], where=str(self.root))
        if len(matching) > 1:
            raise StorageError(f"{start!r} begins several runs", where=str(self.root), got=", ".join(matching))
        return self.root / matching[0]


def write_run(folder: Path, spec: RunSpec, result: RunResult) -> None:
    """The receipt; `result.json` last, so that its presence means complete."""
    write_json(folder / "spec.json", {"format": FORMAT} | spec.content())
    write_json(folder / "result.json", {"format": FORMAT} | asdict(result))


def read_result(path: Path) -> RunResult:
    """A `result.json`."""
    content = read_json(path)
    if content.pop("format") != FORMAT:
        raise StorageError("written by another version of Graftwork", where=str(path), expected=f"format {FORMAT}")
    content["costs"] = {name: Cost(**cost) for name, cost in content["costs"].items()}
    content["spent"] = Phase(**content["spent"])
    return RunResult(**content)


def write_predictions(folder: Path, splits: Sequence[tuple[Split, Logits]], decoded: Mapping[str, list[Any]]) -> None:
    """`predictions.jsonl`: a line per validation and test example, with its logits at full precision."""
    lines = []
    for split, logits in splits:
        for example, answer, row in zip(split.examples, decoded[split.name], logits.tolist(), strict=True):
            line = {"id": example.id, "split": split.name, "target": example.target}
            line |= {"prediction": next(iter(answer.values())), "logits": row}
            lines.append(json.dumps(line, ensure_ascii=False))
    write_text(folder / "predictions.jsonl", "\n".join(lines) + "\n")


def read_logits(folder: Path, split: str) -> Logits:
    """Those of one split, in the data set's order, as they were written."""
    path = folder / "predictions.jsonl"
    with storage_errors(path):
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    return from_lists([line["logits"] for line in lines if line["split"] == split])
