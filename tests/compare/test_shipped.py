"""Where compressed modules of a board may go, which methods are compressed, and what is told of those that are not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from boards import board, decision, row

from graftwork.compare.listeners import unwatched
from graftwork.compare.shipped import compressed_modules, require_shippable
from graftwork.errors import ConfigError, StorageError
from graftwork.run.session import Session
from graftwork.testing import tiny_dataset


def session(tmp_path: Path, device: str = "cpu") -> Session:
    """As much of a session as is asked."""
    found: Any = SimpleNamespace(
        numerics={"device": device}, dataset=tiny_dataset(), store=SimpleNamespace(root=tmp_path / "runs")
    )
    return cast(Session, found)


def test_a_gpu_and_a_foreign_folder_are_refused_before_any_run(tmp_path: Path) -> None:
    require_shippable(session(tmp_path), tmp_path)
    with pytest.raises(ConfigError, match="timed on a GPU"):
        require_shippable(session(tmp_path, "cuda"), tmp_path)
    (tmp_path / "shipped").mkdir()
    with pytest.raises(StorageError, match="something else"):
        require_shippable(session(tmp_path), tmp_path)
    (tmp_path / "shipped" / "module.json").write_text("{}")
    require_shippable(session(tmp_path), tmp_path)


def test_the_chosen_method_comes_first_and_an_older_module_goes_where_none_is_shipped(tmp_path: Path) -> None:
    rows = [row("majority", 0.3, 0.001), row("lora", 0.8, 20), row("full", 0.93, 200), row("adapter", 0.79, 30)]
    made = board(rows, decision=decision("lora", {"lora": 0.001}))
    (tmp_path / "shipped").mkdir()
    found = compressed_modules(made, session(tmp_path), tmp_path, unwatched)
    assert found["left_out"] == [(name, "none of its runs has a task module") for name in ("lora", "full", "majority")]
    assert (found["rows"], found["chosen"], found["module"]) == ([], None, None)
    assert [*tmp_path.iterdir()] == [] and found["rows_needed"] == 598
