"""The interface of an exporter. `exporters/NAME.py` registers one; it writes a task module in another tool's format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from graftwork.core.example import Example
from graftwork.core.method import Fitted, Logits
from graftwork.module.task_module import TaskModule


class Exporter(Protocol):
    """One format of files that another tool opens.

    The modules that it is given are in fp32, on the CPU. `ship.export` compares their logits with those of the
    written files, and removes the files where it refuses them.
    """

    def unfit(self, module: TaskModule) -> str:
        """Return why `module` can't be exported to this format, or an empty string."""

    def write(self, module: TaskModule, folder: Path) -> None:
        """Write the files to the new `folder`, with a README.md whose code opens them without Graftwork.

        Raises `GraftworkError`; the caller removes what was written then.
        """

    def logits(self, folder: Path, module: TaskModule, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C) or (W, C) that the exported files give, opened and run by the other tool's library.

        The export is refused where they differ from the module's own.
        """


@runtime_checkable
class Opens(Protocol):
    """An exporter whose folders Graftwork itself opens, predicts with and serves, like any task module."""

    def open(self, folder: Path, description: Mapping[str, Any]) -> Fitted:
        """Open the folder, whose files have their recorded hashes; `description` is the content of graftwork.json."""

    def parts(self, folder: Path, description: Mapping[str, Any], examples: Sequence[Example]) -> dict[str, Any]:
        """Return digests of the folder's parts, as JSON; `examples` are those of its self-test."""

    def changed_part(
        self, folder: Path, description: Mapping[str, Any], recorded: Mapping[str, Any], examples: Sequence[Example]
    ) -> str:
        """Return which of the `recorded` parts has changed, or an empty string; called if the self-test fails."""


@runtime_checkable
class ExportsBanks(Protocol):
    """An exporter that can write many tasks together with the one backbone that they share."""

    def unfit_in_bank(self, module: TaskModule) -> str:
        """Return why `module` can't share a backbone with others in this format, or an empty string."""

    def write_bank(self, modules: Mapping[str, TaskModule], folder: Path, stored_as: Mapping[str, str]) -> None:
        """Write all tasks, `modules` by name, as `write` writes one; files of an earlier call are overwritten.

        `stored_as` maps a task to "fp32" or "int8", the type of its stored adapters; all others are stored in fp16.
        """

    def bank_logits(
        self, folder: Path, wanted: Mapping[str, Sequence[Example]], apart: bool = False
    ) -> Mapping[str, Logits]:
        """Return each task's logits for its examples, computed by the other tool's library.

        Rows of all tasks share batches; with `apart`, each task has batches of its own.
        """

    def bank_parts(self, folder: Path, tests: Mapping[str, Sequence[Example]]) -> tuple[Any, Mapping[str, Any]]:
        """Return digests of the shared parts and of each task's own parts, as `Opens.parts`; `tests`: self-tests."""


@runtime_checkable
class Quantizes(Protocol):
    """An exporter whose folders can be converted to 8-bit integers."""

    def quantize(self, folder: Path) -> None:
        """Replace the weights in the written `folder` by 8-bit integers, and record that in its description."""
