"""The last rungs of a ladder with a runtime: they export the module made so far to the runtime's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graftwork.core.method import Entries
from graftwork.core.progress import Progress, silent
from graftwork.errors import UnknownName
from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters
from graftwork.ship.compression import CompressionData
from graftwork.ship.export import write_export
from graftwork.ship.exporter import Opens, Quantizes
from graftwork.ship.unwrapped import unwrapped

INT8 = "int8"


@dataclass(frozen=True)
class RuntimeRung:
    """Exports a module to a format that Graftwork itself can run. Implements `Compression`."""

    runtime: str  # the exporter
    int8: bool  # weights as 8-bit integers, else fp32

    EXACT: ClassVar[bool] = False  # a module in bf16 has other logits in fp32
    STORES: ClassVar[bool] = True
    ORDER: ClassVar[int] = 100
    LADDER: ClassVar[Entries] = ()

    def unfit(self, module: TaskModule) -> str:
        """Return why the exporter can't write `module`."""
        return exporters.get(self.runtime).unfit(unwrapped(module))

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Export the module. Raises `IncompatibleModule` if the runtime gives other logits, and as `export`."""
        told, _ = write_export(module, folder, self.runtime, self.int8, [data.validation, data.train], progress)
        return {name: told[name] for name in ("texts", "largest_difference", INT8) if name in told}


def runtimes() -> list[str]:
    """Return the names of the exporters whose folders Graftwork can open and run."""
    return [name for name in exporters.names() if isinstance(exporters.get(name), Opens)]


def runtime_rungs(runtime: str | None) -> list[tuple[str, RuntimeRung]]:
    """Return label and rung of each export to `runtime`, fp32 first; none for None (torch). Raises `UnknownName`."""
    if runtime is None:
        return []
    if runtime not in runtimes():
        raise UnknownName("runtime", runtime, runtimes())
    able = isinstance(exporters.get(runtime), Quantizes)
    return [
        (f"{runtime} {INT8}" if int8 else runtime, RuntimeRung(runtime, int8)) for int8 in ((False, True)[: 1 + able])
    ]
