"""The interface of an exporter. `exporters/NAME.py` registers one; it writes a task module in another tool's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.module.task_module import TaskModule


class Exporter(Protocol):
    """One format of files that another tool opens."""

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
