"""What a board and a curve are in Python: an answer, rows that lead to modules, a frame, and a card."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.compare.advice import advice
from graftwork.compare.curve import Curves
from graftwork.compare.leaderboard_display import Leaderboard, scored_columns
from graftwork.errors import StorageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("board")


@pytest.fixture(scope="module")
def board(folder: Path) -> Leaderboard:
    rows = [(f"{word} {number}", word) for number in range(30) for word in ("good", "<b>bad")]
    data = folder / "films.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows), encoding="utf-8")
    return gw.compare(data, methods=["majority", "tfidf_svm"], seeds=1, runs=folder / "runs", out=folder / "out")


@pytest.fixture(scope="module")
def curves(board: Leaderboard, folder: Path) -> Curves:
    where = {"runs": folder / "runs", "out": folder / "curve"}
    return gw.curve(folder / "films.csv", sizes="4/class", methods="tfidf_svm", draws=2, **where)  # type: ignore[arg-type]


def test_in_text_it_is_a_few_lines_with_its_answer_and_place(board: Leaderboard, folder: Path) -> None:
    lines = repr(board).splitlines()
    assert len(lines) <= 6 and "films · accuracy" in lines[0] and lines[1].strip().startswith("Use tfidf_svm")
    assert str(folder / "out") in lines[-1] and str(board.chosen and board.chosen.module_folder) in lines[-1]
    assert board.answer.splitlines() == advice(board.content)


def test_the_chosen_row_leads_to_its_module(board: Leaderboard) -> None:
    chosen, best = board.chosen, board.best
    assert chosen is not None and best is not None
    assert chosen.method == best.method == "tfidf_svm" and chosen.score == best.score > 0.9
    assert chosen.module.predict(["good 77"])[0]["label"] == "good"
    assert repr(chosen).startswith("tfidf_svm: accuracy ") and "module" in repr(chosen)
    lost = Leaderboard(board.content, None, 0, 0, Path("nowhere"))
    assert lost.chosen is not None and lost.chosen.module_folder is None
    with pytest.raises(StorageError, match="no run of tfidf_svm has left a task module"):
        _ = lost.chosen.module


def test_a_board_without_a_choice_has_none(board: Leaderboard) -> None:
    empty = Leaderboard(dict(board.content) | {"decision": None, "rows": []}, None, 0, 0)
    assert empty.chosen is None and empty.best is None and empty.answer == "No method finished."
    assert "No method finished." in repr(empty) and "No method finished." in empty._repr_html_()


def test_its_card_is_small_escaped_and_runs_nothing(board: Leaderboard) -> None:
    page = board._repr_html_()
    assert len(page) < 60_000 and "<script" not in page and "src=" not in page and "href" not in page
    assert "<svg" in page and "Use tfidf_svm" in page and "&gt; tfidf_svm" in page
    assert not re.search(r"background(-color)?:\s*#", page)


def test_its_frame_has_scores_and_costs_with_units(board: Leaderboard) -> None:
    pytest.importorskip("pandas")
    frame = board.to_frame()
    assert list(frame.columns[:5]) == ["method", "rank", "status", "runs", "failed"]
    first = frame.iloc[0]
    assert first["method"] == "tfidf_svm" and first["rank"] == 1 and first["status"] == "ok"
    assert first["accuracy_low"] <= first["accuracy_mean"] == board.rows[0]["scores"]["accuracy"]["mean"]
    assert first["stored_bytes"] == board.rows[0]["costs"]["stored_bytes"]["value"] > 0
    assert {"train_seconds", "energy_joules", "macro_f1_high"} <= set(frame.columns)


def test_a_cost_without_its_unit_in_its_name_has_it_behind() -> None:
    row = {
        "scores": {},
        "costs": {"money": {"value": 2.0, "unit": "EUR"}, "train_seconds": {"value": 1.0, "unit": "s"}},
    }
    assert scored_columns(row, [row]) == {"train_seconds": 1.0, "money_EUR": 2.0}


def test_a_curve_has_them_too(curves: Curves) -> None:
    pytest.importorskip("pandas")
    assert "films" in repr(curves) and len(repr(curves)) < 1000
    page, frame = curves._repr_html_(), curves.to_frame()
    assert "<svg" in page and "4/class" in page and "<script" not in page and len(page) < 60_000
    assert frame[["method", "size", "n_draws"]].values.tolist() == [["tfidf_svm", "4/class", 2]]
    assert "train_seconds" in frame.columns


def test_tasks_runs_ladders_modules_and_banks_show_themselves(board: Leaderboard, folder: Path) -> None:
    task = gw.Task.from_file(folder / "films.csv", labels="good,<b>bad")
    assert repr(task) == f"Task films: classification of {folder / 'films.csv'}, 2 labels: good, <b>bad"
    assert "&lt;b&gt;bad" in task._repr_html_() and "gw.data_report" in task._repr_html_()
    run = gw.train(folder / "films.csv", method="tfidf_svm", runs=folder / "runs")
    assert run.result.id in repr(run) and "accuracy" in repr(run) and str(run.folder) in repr(run)
    assert "stored size" in run._repr_html_() and "it existed already" in run._repr_html_()
    assert repr(run.module).startswith("TaskModule films: classification by tfidf_svm\n  accuracy ")
    assert "&lt;b&gt;bad, good" in run.module._repr_html_()
    ladder = gw.climb(
        folder / "films.csv", "60s", rungs="majority,tfidf_svm", runs=folder / "runs", out=folder / "ladder"
    )
    assert ladder.answer.startswith("Use tfidf_svm") and ladder.answer.splitlines()[0] in repr(ladder)
    assert "tfidf_svm" in ladder._repr_html_() and str(folder / "ladder") in ladder._repr_html_()
    bank = gw.Bank.create(folder / "films.bank")
    bank.add(run.folder / "module", "films")
    assert repr(bank) == f"Bank {folder / 'films.bank'} · 1 task on no backbone yet: films"
    assert "<td>films</td>" in bank._repr_html_() and "tfidf_svm" in bank._repr_html_()


def test_scores_and_prices_show_themselves(board: Leaderboard, folder: Path) -> None:
    assert board.chosen is not None and board.chosen.module_folder is not None
    scored = gw.score(board.chosen.module_folder, folder / "films.csv")
    assert "tfidf_svm" in repr(scored) and "accuracy" in repr(scored) and len(repr(scored)) < 1000
    priced = gw.price(folder / "out", 1e6)
    assert repr(priced).splitlines()[0] == "seconds of 1,000,000 predictions in full batches, training included"
    assert {line.split(":")[0].strip() for line in repr(priced).splitlines()[1:]} == {"majority", "tfidf_svm"}
