"""What a command imports: starting is a part of every answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graftwork.registry import backbones

OTHERS = [f"graftwork.backbones.{name}" for name in backbones.names() if name != "minilm"]
IMPORTED = """
import sys
from graftwork.cli.main import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), sep="\\n", file=open("imported", "w"))
sys.exit(code)
"""
ROWS = "".join(
    f"{text} {number}\t{label}\n" for number in range(20) for text, label in (("my card", "a"), ("a loan", "b"))
)


def imported_by(folder: Path, *arguments: str) -> set[str]:
    """The modules that a fresh process has once it ran a command in `folder`."""
    surroundings = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], cwd=folder, env=surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set((folder / "imported").read_text().split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With rows to learn."""
    (tmp_path / "rows.tsv").write_text(f"text\tlabel\n{ROWS}")
    return tmp_path


@pytest.mark.parametrize("method", ["majority", pytest.param("tfidf_svm", marks=pytest.mark.slow)])
def test_a_method_without_a_backbone_needs_no_torch(folder: Path, method: str) -> None:
    found = imported_by(folder, "train", "rows.tsv", "--method", method)
    assert "numpy" in found and not {"torch", "transformers", "safetensors.torch"} & found
    assert list(folder.glob("runs/*/module/module.json"))


@pytest.mark.slow
def test_a_module_on_minilm_imports_no_other_backbone_and_no_transformers(folder: Path) -> None:
    imported_by(folder, "train", "rows.tsv", "--method", "linear_probe", "--cache-size", "0")
    (module,) = folder.glob("runs/*/module")
    found = imported_by(folder, "predict", str(module), "my card is lost")
    assert "torch" in found and "graftwork.backbones.minilm" in found
    assert not {"transformers", "sklearn", "scipy", "torch._dynamo", *OTHERS} & found
