"""Module folders without weights, for what a bank does with files only, and what must hold of a bank on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.ledger import replay
from graftwork.bank.task_version import require_digest
from graftwork.io.files import write_json, write_text

BACKBONE = {"id": "tiny_text", "revision": "a" * 64}


def fake_module(folder: Path, mark: str = "", **changes: Any) -> Path:
    """What a bank reads of a module; `mark` makes it another one."""
    described = {
        "task": {"name": "tiny", "kind": "classification", "labels": ["bad", "good"]},
        "roles": ["text"],
        "method": {"name": "lora"},
        "precision": "fp32",
        "backbone": BACKBONE,
        "backbone_seed": 0,
        "delta_sha256": mark,
        "scores": {"accuracy": 0.5},
    }
    write_json(folder / "module.json", described | changes)
    write_text(folder / "delta.safetensors", f"weights {mark}")
    return folder


def well(path: Path) -> None:
    """Nothing was tested: there are no weights."""


def named(bank: BankFolder) -> Mapping[str, tuple[int, str]]:
    """What a reader sees, after looking at every file of it."""
    state = bank.state()
    for name, placed in state.tasks.items():
        assert bank.entry(name, state=state).description["roles"] == ["text"]
        require_digest(bank.folder(name, placed.version), placed.digest)
    return {name: (placed.version, placed.digest) for name, placed in state.tasks.items()}


def require_tidy(bank: BankFolder) -> None:
    """On disk is what the ledger tells, and nothing else."""
    kept = replay(bank.ledger(bank.state()).changes)
    for name, task in kept.items():
        for version, digest in task.versions.items():
            require_digest(bank.folder(name, version), digest)
    found = {str(path.relative_to(bank.root / "tasks")) for path in (bank.root / "tasks").glob("*/*")}
    assert found == {f"{name}/{version}" for name, task in kept.items() for version in task.versions}
    assert {path.name for path in (bank.root / "tasks").iterdir()} == set(kept)
    assert {path.name for path in bank.root.iterdir()} == {"bank.json", "ledger.jsonl", "tasks", ".lock"}
