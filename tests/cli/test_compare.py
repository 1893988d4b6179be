"""`graft compare` end to end: the board's contract, the second call, another folder, task files and flags."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]
Boards = Callable[[str], Any]

KINDS = ("classification", "pair", "regression", "multilabel")
QUICK = ("--backbone", "tiny_text", "--epochs", "1", "--seeds", "1")
TOP = {
    "format": int, "task": dict, "backbone": dict, "rows": list, "headline_metric": str, "frontier": list,
    "differences": list, "search_costs": dict, "data_report": dict,
}  # fmt: skip
TOP_ADDED = {
    "frontier_cost": str,
    "notes": list,
    "statistics": dict,
    "environment": dict,
    "command": str,
    "race": type(None),
    "majority": float,
    "expected_best": list,
}
ROW = {
    "method": str, "config": dict, "status": str, "n_seeds": int, "scores": dict, "costs": dict,
    "below_majority": bool, "runs": list,
}  # fmt: skip
ROW_ADDED = {"n_failed": int, "n_diverged": int, "counted": float, "errors": list, "dropped": type(None)}
RACE = {"rule": str, "trials": dict, "rates": dict, "looks": int, "dropped": list, "search_costs": dict}
DIFFERENCE = {
    "a": str, "b": str, "metric": str, "delta": float, "low": float, "high": float, "p_a_better": float, "verdict": str,
}  # fmt: skip
DIFFERENCE_ADDED = {"p", "p_holm", "smallest_detectable", "runs", "failed", "aso"}
COSTS = {
    "train_seconds": "s", "train_cpu_seconds": "s", "total_seconds": "s", "trained_parameters": "parameters",
    "stored_parameters": "parameters", "stored_bytes": "bytes", "train_flops": "FLOP", "predict_flops": "FLOP",
    "peak_memory_bytes": "bytes", "energy_joules": "J", "co2e_grams": "g", "money": "",
    "predict_latency_seconds": "s", "predict_per_second": "per second",
}  # fmt: skip
COSTS_ADDED = {"padding_flops", "peak_accelerator_bytes"}
UNKNOWN_WITHOUT_A_PRICE_LIST = {"co2e_grams", "money"}


def require_types(found: dict[str, Any], expected: dict[str, type], added: set[str]) -> None:
    assert found.keys() == expected.keys() | added
    for name, kind in expected.items():
        assert type(found[name]) is kind, f"{name} is {found[name]!r}"


def scores_and_runs(board: dict[str, Any]) -> list[Any]:
    """What must come out the same however often the command is given."""
    kept = ("method", "config", "status", "n_seeds", "scores", "below_majority", "runs")
    return sorted(json.dumps({key: row[key] for key in kept}, sort_keys=True) for row in board["rows"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_has_exactly_the_keys_and_types_of_its_contract(kind: str, boards: Boards) -> None:
    board = boards(kind).board
    require_types(board, TOP | TOP_ADDED, set())
    assert board["format"] == 1
    assert board["task"]["kind"] == ("classification" if kind == "pair" else kind)
    assert board["backbone"]["id"] == "tiny_text"
    assert board["headline_metric"] == board["task"]["metrics"][0]
    for row in board["rows"]:
        require_types(row, ROW | ROW_ADDED, set())
        assert row["status"] == "ok"
        assert len(row["runs"]) == row["n_seeds"]
        assert row["config"]["name"] == row["method"].partition(":")[0]
        assert row["scores"].keys() == set(board["task"]["metrics"])
        for score in row["scores"].values():
            require_types(score, dict.fromkeys(("mean", "sd", "low", "high"), float), set())
            assert -1 <= score["low"] <= score["mean"] <= score["high"] <= 1, "a score is a fraction"
    assert set(board["frontier"]) <= {row["method"] for row in board["rows"]}
    assert board["frontier"]
    for pair in board["differences"]:
        require_types({key: pair[key] for key in pair if key not in DIFFERENCE_ADDED}, DIFFERENCE, set())
        assert pair["verdict"] in ("better", "worse", "cannot tell")
    methods = len(board["rows"])
    assert len(board["differences"]) == methods * (methods - 1) // 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_the_whole_price_tag(kind: str, boards: Boards) -> None:
    for row in boards(kind).board["rows"]:
        assert row["costs"].keys() == COSTS.keys() | COSTS_ADDED
        for name, unit in COSTS.items():
            cost = row["costs"][name]
            assert cost.keys() == {"value", "unit", "grade"}
            assert (cost["unit"], cost["grade"] in ("meter", "counter", "model", "guess")) == (unit, True)
            assert (cost["value"] is None) == (name in UNKNOWN_WITHOUT_A_PRICE_LIST), name


def test_methods_that_can_learn_beat_the_majority_class(boards: Boards) -> None:
    board = boards("classification").board
    means = {row["method"]: row["scores"]["accuracy"]["mean"] for row in board["rows"]}
    rows = board["task"]["rows"]
    counts = board["data_report"]["classes"]["test"]
    assert means["majority"] == counts["billing"] / rows["test"]
    assert means["tfidf_svm"] == 1.0
    assert means["linear_probe"] > means["majority"]


def test_the_page_is_whole_and_names_every_method(boards: Boards) -> None:
    compared = boards("classification")
    page = (compared.folder / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    for row in compared.board["rows"]:
        assert row["method"] in page
        assert row["runs"][0] in page
    assert sorted(path.name for path in compared.folder.iterdir()) == ["leaderboard.json", "report.html"]


def test_the_table_says_what_was_found(boards: Boards) -> None:
    out = boards("classification").outcome.out
    for words in ("tfidf_svm", "accuracy", "Verdicts", "Price of the search", "Written: "):
        assert words in out
    assert "were there already" not in out
    assert re.search(r'^Use it:  graft predict .*/runs/[0-9a-f]{12}/module "a text"  \(', out, flags=re.MULTILINE)
    assert max(map(len, out.split("Written: ")[0].splitlines())) <= 100


def test_the_second_call_executes_nothing_and_says_so(boards: Boards, graft: Graft) -> None:
    first = boards("classification")
    before = {path: path.stat().st_mtime_ns for path in first.runs.rglob("*")}
    again = graft("compare", *first.arguments, "--out", "second")
    assert again.code == 0
    assert "12 of 12 runs were there already and cost nothing." in again.out
    board = json.loads(Path("second/leaderboard.json").read_text(encoding="utf-8"))
    assert board["rows"] == first.board["rows"]
    assert board["differences"] == first.board["differences"]
    assert board["search_costs"] == first.board["search_costs"]
    assert {path: path.stat().st_mtime_ns for path in first.runs.rglob("*")} == before


def test_json_prints_what_is_written_and_nothing_else(boards: Boards, graft: Graft) -> None:
    first = boards("regression")
    printed = graft("compare", *first.arguments, "--out", "second", "--json")
    assert printed.code == 0
    assert json.loads(printed.out) == json.loads(Path("second/leaderboard.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_command_elsewhere_gives_the_same_bits(kind: str, boards: Boards, graft: Graft) -> None:
    first = boards(kind)
    done = graft("compare", *first.arguments, "--out", "again", "--runs", "fresh")
    assert done.code == 0
    assert "were there already" not in done.out
    second = json.loads(Path("again/leaderboard.json").read_text(encoding="utf-8"))
    assert scores_and_runs(second) == scores_and_runs(first.board)
    ids = [run for row in second["rows"] for run in row["runs"]]
    for run in ids:
        for name in ("predictions.jsonl", "module/delta.safetensors", "spec.json"):
            assert (Path("fresh") / run / name).read_bytes() == (first.runs / run / name).read_bytes(), (run, name)


def test_a_run_that_is_missing_is_executed_and_the_others_are_not(boards: Boards, graft: Graft) -> None:
    first = boards("pair")
    shutil.copytree(first.runs, "runs")
    gone = Path("runs") / first.run_of("linear_probe").name
    shutil.rmtree(gone)
    again = graft("compare", *first.arguments, "--out", "board", "--runs", "runs")
    assert "1 of 2 runs were there already" in again.out
    assert (gone / "result.json").is_file()


def test_two_methods_share_no_run_and_hyper_parameters_name_the_row(graft: Graft, tickets: Path) -> None:
    asked = "majority,top_layers:k=1,top_layers:k=1:learning_rate=0.01"
    done = graft("compare", tickets, *QUICK, "--methods", asked, "--json")
    rows = {row["method"]: row for row in json.loads(done.out)["rows"]}
    assert rows.keys() == set(asked.split(","))
    assert rows["top_layers:k=1:learning_rate=0.01"]["config"]["learning_rate"] == 0.01
    assert len({row["runs"][0] for row in rows.values()}) == 3


@pytest.mark.slow
def test_all_methods_that_fit_are_compared_and_the_others_named(graft: Graft, tickets: Path) -> None:
    done = graft("compare", tickets, *QUICK, "--json")
    board = json.loads(done.out)
    fitting = {
        "adapter", "bitfit", "dan", "full", "linear_probe", "lora", "majority", "prototype", "scalar_mix", "tfidf_svm",
        "ulmfit",
    }  # fmt: skip
    assert {row["method"] for row in board["rows"]} == fitting
    assert [row["status"] for row in board["rows"]] == ["ok"] * len(fitting)
    assert any(note.startswith("top_layers was left out: ") for note in board["notes"])
    assert not any("tagger" in note for note in board["notes"]), "what is for another sort of task is no news"


def test_a_task_file_says_everything_and_flags_go_before_it(graft: Graft, tickets: Path) -> None:
    Path("tasks").mkdir()
    shutil.copy(tickets, "tasks/rows.csv")
    Path("tasks/triage.toml").write_text(
        'name = "triage"\ndata = "rows.csv"\ntext = "text"\nlabel = "label"\nmetrics = ["macro_f1", "accuracy"]\n'
        'backbone = "tiny_text"\nmethods = ["majority", "tfidf_svm"]\nseeds = 2\nout = "from_file"\n',
        encoding="utf-8",
    )
    assert graft("compare", "tasks/triage.toml").code == 0
    board = json.loads(Path("from_file/leaderboard.json").read_text(encoding="utf-8"))
    assert (board["task"]["name"], board["headline_metric"]) == ("triage", "macro_f1")
    assert {row["method"]: row["n_seeds"] for row in board["rows"]} == {"majority": 2, "tfidf_svm": 2}
    flags = ("--methods", "majority", "--seeds", "1", "--out", "from_flag", "--metrics", "accuracy")
    assert graft("compare", "tasks/triage.toml", *flags).code == 0
    board = json.loads(Path("from_flag/leaderboard.json").read_text(encoding="utf-8"))
    assert board["task"]["metrics"] == ["accuracy"]
    assert {row["method"]: row["n_seeds"] for row in board["rows"]} == {"majority": 1}


def test_a_race_is_told_and_exhaustive_leaves_it_out(graft: Graft, tickets: Path) -> None:
    chosen = "majority,bitfit,no_transfer:by=bitfit"
    command = ("compare", tickets, *QUICK, "--methods", chosen, "--out", "board", "--json")
    raced, whole = json.loads(graft(*command).out), json.loads(graft(*command, "--exhaustive").out)
    require_types(raced["race"], RACE, set())
    (tried,) = raced["race"]["rates"].values()
    row = next(row for row in raced["rows"] if row["method"] == "bitfit")
    assert [one["learning_rate"] for one in tried if one["chosen"]] == [row["config"]["learning_rate"]]
    assert whole["race"] is None
    assert raced["search_costs"]["runs"]["value"] > whole["search_costs"]["runs"]["value"] == 3
    unfair = "no_transfer:by=bitfit: the race did not search its learning rate, as it did that of bitfit"
    assert [any(unfair in note for note in board["notes"]) for board in (raced, whole)] == [True, False]
    page = Path("board/report.html").read_text(encoding="utf-8")
    assert "<h2>The race</h2>" not in page
    assert "<h2>The race</h2>" in (graft(*command) and Path("board/report.html").read_text(encoding="utf-8"))


def test_a_task_file_may_ask_for_everything(graft: Graft, tickets: Path) -> None:
    lines = [f'data = "{tickets.name}"', 'backbone = "tiny_text"', "epochs = 1", "seeds = 1", 'methods = ["bitfit"]']
    Path("t.toml").write_text("\n".join([*lines, "exhaustive = true"]), encoding="utf-8")
    assert json.loads(graft("compare", "t.toml", "--json").out)["race"] is None
    Path("t.toml").write_text("\n".join([*lines, 'exhaustive = "yes"']), encoding="utf-8")
    assert "true or false" in graft("compare", "t.toml").err


def test_given_files_are_the_splits(graft: Graft, tickets: Path, written: Callable[..., Path]) -> None:
    test = written("test.csv", ("text", "label"), [("a parcel", "delivery"), ("an invoice", "billing")])
    validation = written("dev.csv", ("text", "label"), [("the app", "technical"), ("my parcel", "delivery")])
    flags = ("--test", test, "--validation", validation, "--methods", "majority,tfidf_svm")
    board = json.loads(graft("compare", tickets, *QUICK, *flags, "--json").out)
    assert board["task"]["rows"] == {"train": 40, "validation": 2, "test": 2}
    run = Path("runs") / board["rows"][0]["runs"][0]
    answered = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["split"], line["target"]) for line in answered] == [
        ("validation", "technical"),
        ("validation", "delivery"),
        ("test", "delivery"),
        ("test", "billing"),
    ]


def test_columns_positive_class_and_prices_are_taken_from_flags(graft: Graft, written: Callable[..., Path]) -> None:
    rows = [
        (f"{'free money' if i % 4 == 0 else 'see you'} {i}", ("spam", "ham", "ham", "ham")[i % 4]) for i in range(40)
    ]
    data = written("mail.csv", ("body", "verdict"), rows)
    Path("prices.toml").write_text(
        'currency = "EUR"\nper_hour = 3.6\ndate = 2026-01-31\nsource = "an invoice"\n', encoding="utf-8"
    )
    flags = ("--text", "body", "--label", "verdict", "--positive", "ham", "--prices", "prices.toml")
    board = json.loads(graft("compare", data, *QUICK, *flags, "--methods", "majority", "--json").out)
    assert board["task"]["positive"] == "ham"
    scores = board["rows"][0]["scores"]
    assert scores["f1"]["mean"] > scores["accuracy"]["mean"]  # the majority class is the positive one
    costs = board["rows"][0]["costs"]
    assert costs["money"]["unit"] == "EUR"
    assert costs["money"]["value"] == pytest.approx(costs["total_seconds"]["value"] * 3.6 / 3600)


def test_a_board_of_baselines_needs_no_backbone(graft: Graft, tickets: Path) -> None:
    """Nothing is opened, so that even a name that does not exist does no harm."""
    done = graft(
        "compare", tickets, "--backbone", "hf:/nowhere", "--seeds", "1", "--methods", "majority,tfidf_svm", "--json"
    )
    assert done.code == 0
    assert json.loads(done.out)["backbone"] is None


def test_builtin_data_needs_no_file(graft: Graft) -> None:
    done = graft("compare", "builtin:same_question", "--seeds", "1", "--methods", "majority")
    assert done.code == 0
    assert Path("boards/same_question/leaderboard.json").is_file()
    assert "same_question · accuracy" in done.out


def test_threads_are_part_of_what_a_run_is(graft: Graft, tickets: Path, keep_threads: None) -> None:
    flags = (tickets, "--methods", "majority", "--seeds", "1", "--json")
    one = json.loads(graft("compare", *flags, "--threads", "1").out)
    two = json.loads(graft("compare", *flags, "--threads", "2", "--jobs", "1").out)
    assert one["rows"][0]["runs"] != two["rows"][0]["runs"]
    beside = json.loads(graft("compare", *flags, "--threads", "2", "--jobs", "2").out)  # one thread each
    assert one["rows"][0]["runs"] == beside["rows"][0]["runs"]
    assert one["rows"][0]["scores"] == two["rows"][0]["scores"]


@pytest.mark.slow
def test_one_source_of_luck_varies_alone(graft: Graft, tickets: Path) -> None:
    command = (
        "compare",
        tickets,
        *QUICK[:4],
        "--seeds",
        "2",
        "--methods",
        "majority,adapter:size=2:learning_rate=0.01",
    )

    def runs(*flags: str) -> dict[int, dict[str, Any]]:
        board = json.loads(graft(*command, "--exhaustive", "--json", *flags).out)
        (row,) = [row for row in board["rows"] if row["method"] != "majority"]
        found = [json.loads((Path("runs") / run / "receipt.json").read_text(encoding="utf-8")) for run in row["runs"]]
        return {receipt["randomness"]["seed"]: receipt for receipt in found} | {-1: board}

    whole, order = runs(), runs("--vary", "order")
    assert whole[0]["identity"] == order[0]["identity"]  # seed 0 is the same run
    assert whole[1]["identity"] != order[1]["identity"]
    first, second = (order[seed]["randomness"]["derived"] for seed in (0, 1))
    assert first.keys() == {"init", "order", "augmentation"}
    assert [source for source in ("init", "order") if first[source] != second[source]] == ["order"]
    assert any(note.startswith("only order varies between runs") for note in order[-1]["notes"])
    assert runs("--vary", "init,order,augmentation")[1]["identity"] == whole[1]["identity"]
    assert "nothing is dropped out" in graft(*command, "--vary", "dropout").err


def test_another_split_is_other_data(graft: Graft, tickets: Path) -> None:
    command = ("compare", tickets, *QUICK, "--methods", "majority", "--json")
    drawn = ((), ("--split-seed", "0"), ("--split-seed", "1"))
    first, same, other = (json.loads(graft(*command, *flags).out) for flags in drawn)
    assert first["rows"][0]["runs"] == same["rows"][0]["runs"] != other["rows"][0]["runs"]
    assert first["task"]["rows"] == other["task"]["rows"] and first["task"]["data"] != other["task"]["data"]
    assert other["data_report"]["split_seed"] == 1 and "and the split seed 1" in other["data_report"]["splits"]
    receipt = json.loads((Path("runs") / other["rows"][0]["runs"][0] / "receipt.json").read_text(encoding="utf-8"))
    assert receipt["randomness"]["split"] == 1
    assert "must be 0 or more" in graft(*command, "--split-seed", "-1").err


def test_a_failed_method_is_a_row_and_a_board_of_failures_exits_1(
    graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graftwork.methods.tfidf_svm import TfidfSvm

    def explode(self: TfidfSvm, bench: Any) -> Any:
        raise RuntimeError("the solver gave up")

    monkeypatch.setattr(TfidfSvm, "fit", explode)
    done = graft("compare", tickets, *QUICK, "--methods", "majority,tfidf_svm", "--out", "board")
    assert done.code == 0
    assert "tfidf_svm: failed; the solver gave up" in done.out
    rows = {
        row["method"]: row for row in json.loads(Path("board/leaderboard.json").read_text(encoding="utf-8"))["rows"]
    }
    assert (rows["tfidf_svm"]["status"], rows["tfidf_svm"]["scores"]) == ("failed", {})
    assert rows["tfidf_svm"]["costs"]["train_seconds"]["value"] > 0
    assert rows["tfidf_svm"]["errors"] == ["the solver gave up"]
    log = Path("runs") / rows["tfidf_svm"]["runs"][0] / "log.jsonl"
    assert "Traceback" in log.read_text(encoding="utf-8")
    only = graft("compare", tickets, *QUICK, "--methods", "tfidf_svm", "--out", "board")
    assert only.code == 1
    assert "No method finished" in only.out


def test_several_tasks_have_boards_of_their_own_and_one_over_them(graft: Graft, tickets: Path) -> None:
    Path("other.toml").write_text(
        f'data = "{tickets.name}"\nname = "other"\nmethods = ["majority"]\n', encoding="utf-8"
    )
    flags = ("--seeds", "1", "--methods", "majority,tfidf_svm", "--against", "tfidf_svm", "--threads", "1")
    done = graft("compare", tickets, "other.toml", *flags)
    assert done.code == 0
    for words in ("tasks · 2 tasks, points", "ratio to tfidf_svm", "Verdicts", "Price of it all", "Under 3 tasks"):
        assert words in done.out
    assert max(map(len, done.out.split("Written: ")[0].splitlines())) <= 100
    assert Path("boards/tasks/tickets/leaderboard.json").is_file() and Path("boards/tasks/other/report.html").is_file()
    again = graft("compare", tickets, "other.toml", *flags, "--json")
    assert json.loads(again.out) == json.loads(Path("boards/tasks/tasks.json").read_text(encoding="utf-8"))
    assert (
        graft("compare", tickets, "other.toml", *flags, "--out", "elsewhere").out.count("runs were there already") == 1
    )
    assert Path("elsewhere/other/leaderboard.json").is_file()


def test_of_several_tasks_one_that_fails_is_told(graft: Graft, tickets: Path) -> None:
    Path("bad.csv").write_text("text,label\nonly a text\n", encoding="utf-8")
    done = graft("compare", tickets, "bad.csv", "--seeds", "1", "--methods", "majority")
    assert done.code == 0 and "1 of 2 tasks" in done.out and "bad failed: " in done.out
    Path("bad2.csv").write_text("text,label\n,empty\n", encoding="utf-8")
    assert graft("compare", "bad.csv", "bad2.csv", "--seeds", "1", "--methods", "majority").code == 1
    alone = graft("compare", tickets, "--against", "full")
    assert alone.code == 2 and "several tasks" in alone.err


@pytest.mark.slow
def test_no_transfer_adds_the_named_methods_on_random_weights(graft: Graft, tickets: Path) -> None:
    done = graft("compare", tickets, *QUICK, "--methods", "majority,linear_probe", "--no-transfer", "--json")
    rows = {row["method"]: row for row in json.loads(done.out)["rows"]}
    assert rows.keys() == {"majority", "linear_probe", "no_transfer:by=linear_probe"}
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert rows["linear_probe"]["runs"] != rows["no_transfer:by=linear_probe"]["runs"]
    refused = graft("compare", tickets, *QUICK, "--methods", "majority", "--no-transfer")
    assert refused.code == 2 and "none can start from random weights" in refused.err


def test_a_board_of_pairs_hides_each_side_and_tells_a_shortcut(graft: Graft, written: Callable[..., Path]) -> None:
    rows = [(f"order {i}", f"it is {('late', 'fine')[i % 2]}, {i}", ("yes", "no")[i % 2]) for i in range(60)]
    data = written("leaky.csv", ("text_a", "text_b", "label"), rows)
    by = ("partial_input:side=first:by=tfidf_svm", "partial_input:side=second:by=tfidf_svm")
    done = graft("compare", data, "--seeds", "3", "--methods", ",".join(["majority", "tfidf_svm", *by]), "--json")
    board = json.loads(done.out)
    means = {row["method"]: row["scores"]["accuracy"]["mean"] for row in board["rows"]}
    assert means[by[1]] == 1.0 > means[by[0]]
    assert any(note.startswith(f"The data has a shortcut: {by[1]} sees the second text") for note in board["notes"])
    page = Path("boards/leaky/report.html").read_text(encoding="utf-8")
    assert "The data has a shortcut" in page
