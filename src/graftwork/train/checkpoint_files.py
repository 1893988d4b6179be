"""Checkpoints in a folder: the last two, each written atomically and labelled with the arithmetic that computed it.

Checkpoint N is `N.safetensors`, the tensors, and `N.json`, the numbers, with the hash of the tensors and of itself. The
JSON is written last, so that its presence means complete. A corrupt checkpoint is skipped for the one before.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.checkpoint import Checkpoint
from graftwork.errors import IncompatibleModule, StorageError
from graftwork.io.files import digest, file_digest, finite, read_json, safe_load, storage_errors, write_json, writing
from graftwork.io.safetensors_header import Header, end_to_end

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
KEPT = 2  # the last checkpoint and the one before it
EVERY_SECONDS = 60.0
SHARE = 0.01  # largest share of time that writing may take
ABOUT, TENSORS = ".json", ".safetensors"
HASH = re.compile("[0-9a-f]{64}")

log = logging.getLogger("graftwork")  # with no handler set up, a warning is one line on the error stream


class Checkpoints:
    """The checkpoints of one run. `arithmetic` returns the settings that affect the bits of results, such as threads.
    It is called once, at the first read or write. A checkpoint made under other settings is not resumed."""

    def __init__(self, folder: Path, run: str, arithmetic: Callable[[], Mapping[str, Any]]):
        self.folder, self.run, self.arithmetic = folder, run, arithmetic
        self._troubled = False  # a failed write has been reported

    @cached_property
    def computed_in(self) -> Any:
        """The settings of `arithmetic` as recorded in a checkpoint, as JSON."""
        return finite({"format": FORMAT, **self.arithmetic()})

    def try_write(self, checkpoint: Checkpoint) -> None:
        """Like `write`, but warn once on failure: checkpoints only save work."""
        try:
            self.write(checkpoint)
        except StorageError as error:
            if not self._troubled:
                log.warning("graft: no checkpoint can be written; the run goes on without: %s", error.what)
            self._troubled = True

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and delete all earlier ones but the last. Raises `StorageError`."""
        before = self._numbers()
        number = max(before, default=0) + 1
        with storage_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        about: dict[str, Any] = {"run": self.run, "computed_in": self.computed_in}
        about["sha256"] = _write_tensors(self._path(number, TENSORS), checkpoint.tensors)
        about["numbers"] = finite(dict(checkpoint.numbers))
        write_json(self._path(number, ABOUT), about | {"seal": digest(about)})
        for old in before[: len(before) + 1 - KEPT]:
            self._forget(old)

    def read(self, *, follows: bool = False) -> Checkpoint | None:
        """Return the last intact checkpoint; None if there is none or, with a warning, if other settings made it.

        With `follows`, other settings are accepted. Partial files of a killed process are removed.
        Raises `IncompatibleModule` for the checkpoints of another run.
        """
        here = self.computed_in
        for part in self.folder.glob(".*"):
            part.unlink(missing_ok=True)
        for number in reversed(self._numbers()):
            about = self._whole(number)
            if about is None:
                log.warning("graft: the checkpoint %s is torn, and passed over", self._path(number, ABOUT))
                self._forget(number)
                continue
            self._require_this_run(about)
            others = [] if follows else list(_differences(about["computed_in"], here))
            if not others:
                return Checkpoint(about["numbers"], safe_load(self._path(number, TENSORS)))
            told = "; ".join(others)
            log.warning("graft: the checkpoint in %s was computed otherwise (%s): beginning anew", self.folder, told)
            return None
        return None

    def remove(self) -> None:
        """Remove all checkpoints: the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self.folder.glob(f"*{ABOUT}") if path.stem.isdecimal())

    def _path(self, number: int, ending: str) -> Path:
        return self.folder / f"{number}{ending}"

    def _forget(self, number: int) -> None:
        for ending in (ABOUT, TENSORS):
            self._path(number, ending).unlink(missing_ok=True)

    def _whole(self, number: int) -> dict[str, Any] | None:
        """Return the JSON of a checkpoint if its own hash and that of the tensors match."""
        try:
            about = read_json(self._path(number, ABOUT))
            if not isinstance(about, dict) or about.pop("seal", None) != digest(about):
                return None
            return about if file_digest(self._path(number, TENSORS)) == about["sha256"] else None
        except (StorageError, ValueError, KeyError):
            return None

    def _require_this_run(self, about: Mapping[str, Any]) -> None:
        if about["run"] != self.run:
            raise IncompatibleModule(
                "the checkpoint is of another configuration",
                where=str(self.folder),
                got=f"run {about['run']}",
                expected=f"run {self.run}",
                do="repeat the options of the interrupted command, or move the folder to start again",
            )


class Interval:
    """A timer for the next checkpoint: due after `seconds`, or longer if writing is slow; always due with 0."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._since, self._took = time.monotonic(), 0.0

    def is_due(self) -> bool:
        """Return whether a checkpoint is due."""
        passed = time.monotonic() - self._since
        return not self.seconds or passed >= max(self.seconds, self._took / SHARE)

    def wrote(self, seconds: float) -> None:
        """Record that a checkpoint was just written and how many seconds it took."""
        self._since, self._took = time.monotonic(), seconds


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file tensor by tensor, as a copy of all could double a run's memory; return its sha256."""
    import torch

    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))  # widest first: all aligned
    header = Header(end_to_end((name, tensors[name].dtype, tensors[name].shape) for name in order)).to_bytes()
    found = hashlib.sha256(header)
    with writing(path) as stream:
        stream.write(header)
        for name in order:
            flat = tensors[name].detach().cpu().contiguous().reshape(-1)
            raw = flat.view(torch.uint8).numpy().data
            stream.write(raw)
            found.update(raw)
    return found.hexdigest()


def _differences(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences, such as "threads 1 then, 2 now"; for a table, such as variables, one per entry."""
    for name in sorted(recorded.keys() | here.keys()):
        then, now = recorded.get(name), here.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from _differences(then, now)
        elif then != now:
            yield f"{name} {_shown(then)} then, {_shown(now)} now"


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    return f"{value[:8]}…" if isinstance(value, str) and HASH.fullmatch(value) else str(value)
