"""The committed measurements: the table in a benchmark's README is theirs, and nothing tells where they were made."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "bank": "table.py",
    "bulk_prediction": "table.py",
    "calibration": "table.py",
    "domain_shift": "table.py",
    "decision": "table.py",
    "ladder": "table.py",
    "label_errors": "table.py",
    "many_tasks": "table.py",
    "out_of_scope": "table.py",
    "glue": "table.py",
    "learning_curves": "table.py",
    "data_report": "table.py",
    "snli": "../boards.py",
    "robust": "table.py",
    "superglue": "../boards.py",
    "tagging": "../boards.py",
    "imbalance": "table.py",
}
RESULTS = sorted((CHECKOUT / "benchmarks").glob("*/results/**/*.json"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_readme_shows_the_committed_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = CHECKOUT / "benchmarks" / name
    if not any((folder / "results").rglob("*.json")):
        pytest.skip("not measured yet")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    script = (folder / FOLDERS[name]).resolve()
    before = {*sys.modules}
    monkeypatch.setattr(sys, "argv", [str(script), name])
    monkeypatch.syspath_prepend(script.parent)
    runpy.run_path(str(script), run_name="__main__")
    for module in {*sys.modules} - before:  # another benchmark's may have the same name
        if str(CHECKOUT / "benchmarks") in str(getattr(sys.modules[module], "__file__", "")):
            del sys.modules[module]
    printed = capsys.readouterr().out
    assert readme.partition("## Results\n")[2].strip() == printed.strip()
    assert len(printed.splitlines()) > 2


@pytest.mark.parametrize(
    "path", RESULTS, ids=lambda path: "-".join(path.relative_to(CHECKOUT / "benchmarks").with_suffix("").parts)
)
def test_a_result_is_private(path: Path) -> None:
    assert not re.search(r'["/ ](home|root|tmp|work|Users)/', path.read_text(encoding="utf-8"))
