"""The committed measurements: the table in a benchmark's README is theirs, and nothing tells where they were made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "bank": "table.py",
    "bulk_prediction": "table.py",
    "domain_shift": "table.py",
    "decision": "table.py",
    "ladder": "table.py",
    "many_tasks": "table.py",
    "glue": "table.py",
    "learning_curves": "table.py",
    "data_report": "table.py",
    "snli": "../boards.py",
    "robust": "table.py",
    "superglue": "../boards.py",
    "tagging": "../boards.py",
}
RESULTS = sorted((CHECKOUT / "benchmarks").glob("*/results/**/*.json"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_readme_shows_the_committed_numbers(name: str) -> None:
    folder = CHECKOUT / "benchmarks" / name
    if not any((folder / "results").rglob("*.json")):
        pytest.skip("not measured yet")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, str((folder / FOLDERS[name]).resolve()), name]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert readme.partition("## Results\n")[2].strip() == printed.strip()
    assert len(printed.splitlines()) > 2


@pytest.mark.parametrize(
    "path", RESULTS, ids=lambda path: "-".join(path.relative_to(CHECKOUT / "benchmarks").with_suffix("").parts)
)
def test_a_result_is_private(path: Path) -> None:
    assert not re.search(r'["/ ](home|root|tmp|work|Users)/', path.read_text(encoding="utf-8"))
