"""What the tests of benchmarks share: scripts as modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def forgotten() -> dict[str, ModuleType]:
    """Whatever was imported until now under the name of a script."""
    names = {path.stem for path in BENCHMARKS.rglob("*.py")}
    return {name: sys.modules.pop(name) for name in names & sys.modules.keys()}


@pytest.fixture(scope="module")
def imported() -> Iterator[Callable[[str], ModuleType]]:
    """`imported("robust/kills")` is benchmarks/robust/kills.py as a module, which finds the scripts beside it.

    They are forgotten after the tests of a file: several folders have a `table`, and other tests a `boards`.
    """
    before, path = forgotten(), list(sys.path)

    def script(name: str) -> ModuleType:
        file = BENCHMARKS / name
        sys.path.insert(0, str(file.parent))
        return importlib.import_module(file.name)

    yield script
    sys.path[:] = path
    forgotten()
    sys.modules.update(before)
