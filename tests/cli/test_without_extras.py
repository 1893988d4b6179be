"""Commands in a process without the libraries of the extras: text works, the rest says what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# top-level modules of each extra
MODULES = {
    "elmo": ["h5py"],
    "gguf": ["gguf"],
    "generation": ["rouge_score", "sacrebleu"],
    "hub": ["datasets"],
    "images": ["PIL"],
    "parquet": ["pyarrow"],
    "sentence-transformers": ["sentence_transformers"],
    "serve": ["httptools", "prometheus_client", "pydantic", "starlette", "uvicorn"],
    "sound": ["soundfile"],
    "vectors": ["gensim"],
}
WITHOUT = """
import sys
from pathlib import Path
for name in {names!r}:
    sys.modules[name] = None
from graftwork.cli.main import main
for arguments in {commands!r}:
    code = main([str(next(Path("runs").glob(word))) if "*" in word else word for word in arguments])
    if code:
        sys.exit(code)
"""


def graft(folder: Path, lacking: list[str], *commands: list[str]) -> tuple[int, str]:
    """Run the commands in one child process without the modules `lacking`; return the exit code and the output."""
    code = WITHOUT.format(names=lacking, commands=commands)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert "Traceback" not in output, output
    return done.returncode, output


@pytest.mark.parametrize("library", ["starlette", pytest.param("uvicorn", marks=pytest.mark.slow)])
def test_serve_says_what_to_install(library: str, tmp_path: Path) -> None:
    code, told = graft(tmp_path, [library], ["serve", "shop.bank"])
    assert code == 2 and f"graft serve needs {library}" in told and 'pip install "graftwork[serve]"' in told


@pytest.mark.slow
def test_text_works_without_any_extra(tmp_path: Path) -> None:
    every = [name for names in MODULES.values() for name in names]
    short = ["--backbone", "tiny_text", "--epochs", "1"]
    code, told = graft(
        tmp_path,
        every,
        ["--help"],
        ["train", "builtin:tickets", "--method", "linear_probe", "--runs", "runs", *short],
        ["predict", "*/module", "my card is lost"],
        ["compare", "builtin:tickets", "--methods", "majority,linear_probe", "--seeds", "2", "--out", "board", *short],
    )
    assert code == 0, told
    assert len(json.loads((tmp_path / "board" / "leaderboard.json").read_text())["rows"]) == 2
    assert "Score against price" in (tmp_path / "board" / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "file"), [("images", "a.png"), ("sound", "a.wav"), ("parquet", "a.parquet")])
def test_a_task_over_files_says_what_to_install(extra: str, file: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for label in ("red", "blue"):
        (data / label).mkdir(parents=True)
        (data / label / file).write_bytes(b"content")
    given = data / "red" / file if extra == "parquet" else data
    code, told = graft(tmp_path, MODULES[extra], ["data", str(given)])
    assert code == 2 and f'pip install "graftwork[{extra}]"' in told
