"""The page on notebooks, carried out in one: every block is a cell."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from docs.blocks import CHECKOUT, blocks

pytestmark = pytest.mark.slow
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
TICKETS = Path(gw.__file__).parent / "data" / "builtin" / "tickets.csv"


def executed(cells: list[str], folder: Path) -> tuple[list[list[Any]], list[str]]:
    """The outputs of each cell, and all texts that were shown while they ran."""
    shown: list[str] = []

    class Watched(nbclient.NotebookClient):  # type: ignore[misc,name-defined,unused-ignore]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] == "update_display_data":
                shown.append(message["content"]["data"]["text/plain"])
            return super().process_message(message, cell, index)

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    Watched(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return [cell["outputs"] for cell in book.cells], shown


def last(outputs: list[Any]) -> dict[str, str]:
    """The data of the result of a cell."""
    found: dict[str, str] = next(one["data"] for one in reversed(outputs) if one["output_type"] == "execute_result")
    return found


@pytest.fixture
def of_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels import what the tests import; nbclient talks to them over local sockets."""
    monkeypatch.setenv("PYTHONPATH", str(Path(gw.__file__).parents[1]))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")


@pytest.mark.usefixtures("of_this_checkout")
def test_the_page_is_carried_out_in_a_notebook(tmp_path: Path) -> None:
    header, *rows = TICKETS.read_text(encoding="utf-8").splitlines()
    random.Random(0).shuffle(rows)
    (tmp_path / "tickets.csv").write_text("\n".join([header, *rows[:200]]), encoding="utf-8")
    cells = [
        block.text for block in blocks(CHECKOUT / "docs" / "how-to" / "notebooks.md") if block.language == "python"
    ]
    outputs, shown = executed(cells, tmp_path)
    assert len(outputs) == 5, sys.version
    board, answer, frame, priced, mine = outputs
    page = last(board)["text/html"]
    assert "<svg" in page and "Use " in page and "<script" not in page and len(page) < 60_000
    assert any("validation" in text and "tfidf_svm" in text for text in shown), "the table fills while it runs"
    assert any("majority" in text and "linear_probe" not in text for text in shown), "baselines are seen first"
    assert "Use " in answer[0]["text"] and "'label'" in last(answer)["text/plain"]
    assert "accuracy_mean" in last(frame)["text/plain"]
    assert "missed" in last(priced)["text/html"]
    assert "accuracy" in last(mine)["text/html"]
    assert all(one["output_type"] != "error" for outputs_of in outputs for one in outputs_of)


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
import graftwork as gw
from graftwork.registry import methods
from graftwork.train.loop import fit_by_gradient, restore_by_attaching

@methods.register("only_head")
@dataclass(frozen=True)
class OnlyHead:
    learning_rate: float = RATE
    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    def unfit(self, task, card):
        return ""
    def attach(self, model):
        pass
    fit = fit_by_gradient
    restore = restore_by_attaching

run = gw.train("builtin:tickets", method="only_head:learning_rate=0.01", backbone="tiny_text", epochs=1)
print(run.result.id, run.reused, run.module.predict(["my card is lost"])[0]["label"] != "")
"""


@pytest.mark.usefixtures("of_this_checkout")
def test_the_cell_of_a_method_can_be_run_again(tmp_path: Path) -> None:
    first, other = METHOD.replace("RATE", "1e-3"), METHOD.replace("RATE", "2e-3")
    outputs, _ = executed([first, first, other], tmp_path)
    told = ["".join(one["text"] for one in of_cell if one.get("name") == "stdout").split() for of_cell in outputs]
    assert [words[1:] for words in told] == [["False", "True"], ["True", "True"], ["False", "True"]]
    assert told[0][0] == told[1][0] != told[2][0], "another text of the cell is another method"


@pytest.mark.usefixtures("of_this_checkout")
@pytest.mark.parametrize("name", ["decision", "many-tasks", "pretrain-and-adapt"])
def test_a_tutorial_notebook_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    book = nbformat.read(CHECKOUT / "docs" / "notebooks" / f"{name}.ipynb", as_version=4)
    cells = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not committed"
    outputs, _ = executed(cells, tmp_path)
    assert last(outputs[-1]) if name != "pretrain-and-adapt" else outputs[-1]
