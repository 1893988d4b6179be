"""Trained modules on a tiny network, and the data that a compression learns from."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.module.task_module import TaskModule
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.train import train_in
from graftwork.ship.compression import CompressionData
from graftwork.testing import tiny_dataset

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.fixture(scope="session")
def teacher(kept_session: Callable[..., Session], tmp_path_factory: pytest.TempPathFactory) -> Teacher:
    """Trains `method` on toy data for an epoch, once: its module, and the data without the test split."""

    @functools.cache
    def tagging() -> Session:
        folder = tmp_path_factory.mktemp("tagging")
        rows = [
            {"tokens": [*example.inputs["words"], str(number)], "tags": [*example.target, "O"]}
            for split in tiny_dataset("tagging").splits.values()
            for number, example in enumerate(split.examples)
        ]
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        setup = RunSettings("tiny_text", runs=str(folder / "runs"), precision="fp32")
        return open_session(Task.from_file(folder / "rows.jsonl", kind="tagging"), [parse_method("full")], setup)

    def trained(
        kind: str = "classification", method: str = "full", pair: bool = False
    ) -> tuple[TaskModule, CompressionData]:
        session = tagging() if kind == "tagging" else kept_session(kind, pair)
        run = train_in(session, parse_method(method), Recipe(epochs=1), 0, silent)
        return run.module, CompressionData(session.dataset.train, session.dataset.validation)

    return trained
