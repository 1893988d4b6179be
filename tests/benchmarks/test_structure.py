"""The counts of the source: what is a line of what, what a cycle is, and which files a call passes."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FILES = {
    "__init__.py": '"""All."""\nfrom small.one import first\n',
    "one.py": '"""One.\n\nMore."""\n\n# why\nfrom small.room import two\n\ndef first():\n    return two.second()\n',
    "room/two.py": "from small.room import three\n\ndef second():\n    from small import one\n    return three.Third",
    "room/three.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import small.one\nclass Third: pass\n",
}


@pytest.fixture(scope="module")
def structure(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("structure")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / "small" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "small" / name).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "small"


def test_lines_functions_and_cycles_are_counted(structure: ModuleType, small: Path) -> None:
    values, rooms = structure.counted(small)
    assert rooms == {"in none": 2, "room": 2}
    assert (values["files"], values["lines"], values["functions"], values["cycles of imports"]) == (4, 20, 2, 1)
    assert [values[f"lines: {kind}"] for kind in ("code", "docstrings", "comments", "blank")] == [12, 4, 1, 3]
    assert values["longest file, lines"] == "9 (`one.py`)" and values["longest function, lines"] == "3 (`second`)"


def test_files_whose_functions_are_called_are_passed(structure: ModuleType, small: Path) -> None:
    before = sys.getprofile()
    first = importlib.import_module("small").first
    trace = structure.Trace(small)
    try:
        trace.listen()
        first()
        assert not trace.files, "it is off"
        trace.on = True
        thread = threading.Thread(target=first)
        thread.start()
        thread.join()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
        for name in [name for name in sys.modules if name.partition(".")[0] == "small"]:
            del sys.modules[name]
    assert trace.files == {"one.py", "room/two.py"}


def test_what_a_part_touched(structure: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"a": "A\tsrc/graftwork/new.py\nM\tsrc/graftwork/old.py", "b": "M\tsrc/graftwork/new.py"}
    monkeypatch.setattr(structure, "git", lambda checkout, *words: told[words[3]])
    assert structure.touched(["a", "b"]) == (["new.py"], ["old.py"])
