"""`graft compare` end to end: the board's contract, the second call, another folder, task files and flags."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.ship.rung_measure import RelativeSpeed

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
    "disagreements": list,
    "notes": list,
    "statistics": dict,
    "environment": dict,
    "command": str,
    "race": type(None),
    "majority": float,
    "expected_best": list,
    "decision": dict,
}
ROW = {
    "method": str, "config": dict, "status": str, "n_seeds": int, "scores": dict, "costs": dict,
    "below_majority": bool, "runs": list,
}  # fmt: skip
ROW_ADDED = {"n_failed": int, "n_diverged": int, "counted": float, "errors": list, "dropped": type(None)}
DECISION = {
    "worth": float, "chosen": str, "within": bool, "rivals": list, "methods": list, "traits": dict,
    "validation_rows": int, "boards": int, "left": list,
}  # fmt: skip
WEIGHED = {
    "method": str, "runs": int, "validation": float, "seconds": float, "shortfall": float, "low": float, "high": float,
}  # fmt: skip
BESIDE = {"method": str, "ran": bool, "gain": list, "prior": list, "rows_alone": list}
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
SHIPPED = {
    "worth": float, "validation_rows": int, "rows_needed": int, "originals": list, "rows": list, "left_out": list,
    "frontier_cost": str, "frontier": list, "chosen": str, "module": str, "price": dict,
}  # fmt: skip
SHIPPED_ROW = {
    "method": str, "of": str, "rungs": list, "config": dict, "status": str, "n_seeds": int, "n_failed": int,
    "scores": dict, "counted": float, "costs": dict, "below_majority": bool, "runs": list, "validation": float,
    "loss": float, "loss_at_most": float, "exact": bool, "shown": bool, "speed_ratio": float, "latency_ratio": float,
    "bytes": int, "seconds": float,
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
def test_the_decision_has_exactly_the_keys_and_types_of_its_contract(kind: str, boards: Boards) -> None:
    board = boards(kind).board
    decision = board["decision"]
    require_types({key: decision[key] for key in decision if key != "cheaper"}, DECISION, set())
    labels = {row["method"] for row in board["rows"]}
    assert decision["chosen"] in labels == {one["method"] for one in decision["methods"]}
    for one in decision["methods"]:
        require_types(one, WEIGHED, set())
        assert 0 <= one["low"] <= one["shortfall"] and one["low"] <= one["high"]
        assert one["runs"] == next(row["n_seeds"] for row in board["rows"] if row["method"] == one["method"])
    for other in [*decision["rivals"], *filter(None, [decision["cheaper"]])]:
        require_types({key: other[key] for key in other if key not in ("rows", "runs")}, BESIDE, set())
        assert other["method"] in labels - {decision["chosen"]}
        for interval in (other["gain"], other["prior"], other["rows_alone"]):
            assert [type(number) for number in interval] == [float] * 3 and interval[1] <= interval[2]
    for rival in decision["rivals"]:
        assert {type(rival[key]) for key in ("rows", "runs")} <= {int, type(None)}
    assert (decision["worth"], decision["left"]) == (0.005, [])  # half a point; everything ran
    assert decision["validation_rows"] == board["task"]["rows"]["validation"]


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


def test_the_answer_comes_first_and_the_table_below_it(boards: Boards) -> None:
    compared = boards("classification")
    out, chosen = compared.outcome.out, compared.board["decision"]["chosen"]
    heading, answer, table, *_ = out.split("\n\n")
    assert heading.startswith("data · accuracy, points · tiny_text")
    assert re.match(rf"Use {re.escape(chosen)}: accuracy \d+\.\d on test \(", answer)
    assert "below the best" in answer and table.lstrip().startswith("method")
    for row in compared.board["rows"]:
        (line,) = re.findall(rf"^([>*! ]) {re.escape(row['method'])} ", table, flags=re.MULTILINE)
        assert (line == ">") == (row["method"] == chosen)
    assert "existed already" not in out
    assert re.search(r'^Use it:  graft predict .*/runs/[0-9a-f]{12}/module "a text"  \(', out, flags=re.MULTILINE)
    assert f"({chosen}, one of its runs)" in out and "Written: " in out
    assert max(map(len, out.split("Written: ")[0].splitlines())) <= 100


def test_verdicts_prices_and_notes_are_folded(boards: Boards, graft: Graft) -> None:
    first = boards("classification")
    folded = first.outcome.out
    again = graft("compare", *first.arguments, "--verbose")
    titles = ("Verdicts", "Price of the search")
    for title in titles:
        assert not re.search(f"^{title}", folded, flags=re.MULTILINE)
        assert re.search(f"^{title}", again.out, flags=re.MULTILINE)
        assert f"{title[0].lower()}{title[1:]}" in " ".join(folded.split("With --verbose")[1].split())
    assert "With --verbose" not in again.out
    assert folded.split("With --verbose")[0].strip() in again.out  # the answer and the table are the same


def test_the_second_call_executes_nothing_and_says_so(boards: Boards, graft: Graft) -> None:
    first = boards("classification")
    before = {path: path.stat().st_mtime_ns for path in first.runs.rglob("*")}
    again = graft("compare", *first.arguments, "--out", "second")
    assert again.code == 0
    assert "12 of 12 runs existed already and were reused." in again.out
    board = json.loads(Path("second/leaderboard.json").read_text(encoding="utf-8"))
    assert board["rows"] == first.board["rows"]
    assert board["differences"] == first.board["differences"]
    assert board["search_costs"] == first.board["search_costs"]
    assert {path: path.stat().st_mtime_ns for path in first.runs.rglob("*")} == before


def test_json_prints_what_is_written_and_nothing_else(boards: Boards, graft: Graft) -> None:
    first = boards("regression")
    printed = graft("compare", *first.arguments, "--out", "second", "--json")
    assert printed.code == 0 and printed.err == ""
    assert json.loads(printed.out) == json.loads(Path("second/leaderboard.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "pair" else pytest.mark.slow) for kind in KINDS]
)
def test_the_same_command_elsewhere_gives_the_same_bits(kind: str, boards: Boards, graft: Graft) -> None:
    first = boards(kind)
    done = graft("compare", *first.arguments, "--out", "again", "--runs", "fresh")
    assert done.code == 0
    assert "existed already" not in done.out
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
    assert "1 of 2 runs existed already" in again.out
    assert (gone / "result.json").is_file()


def test_two_methods_share_no_run_and_hyper_parameters_name_the_row(graft: Graft, tickets: Path) -> None:
    asked = "majority,top_layers:k=1,top_layers:k=1:learning_rate=0.01"
    done = graft("compare", tickets, *QUICK, "--methods", asked, "--exhaustive", "--json")
    rows = {row["method"]: row for row in json.loads(done.out)["rows"]}
    assert rows.keys() == set(asked.split(","))
    assert rows["top_layers:k=1:learning_rate=0.01"]["config"]["learning_rate"] == 0.01
    assert len({row["runs"][0] for row in rows.values()}) == 3


@pytest.mark.slow
def test_all_methods_that_fit_are_compared_and_the_others_named(graft: Graft, tickets: Path) -> None:
    done = graft("compare", tickets, *QUICK, "--exhaustive", "--json")
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
        'backbone = "tiny_text"\nmethods = ["majority", "tfidf_svm"]\nseeds = 2\nworth = 2\nexhaustive = true\n'
        'out = "from_file"\n',
        encoding="utf-8",
    )
    assert graft("compare", "tasks/triage.toml").code == 0
    board = json.loads(Path("from_file/leaderboard.json").read_text(encoding="utf-8"))
    assert (board["task"]["name"], board["headline_metric"]) == ("triage", "macro_f1")
    assert {row["method"]: row["n_seeds"] for row in board["rows"]} == {"majority": 2, "tfidf_svm": 2}
    assert board["decision"]["worth"] == 0.02
    flags = ("--methods", "majority", "--seeds", "1", "--out", "from_flag", "--metrics", "accuracy", "--worth", "0")
    assert graft("compare", "tasks/triage.toml", *flags).code == 0
    board = json.loads(Path("from_flag/leaderboard.json").read_text(encoding="utf-8"))
    assert board["task"]["metrics"] == ["accuracy"] and board["decision"]["worth"] == 0
    assert {row["method"]: row["n_seeds"] for row in board["rows"]} == {"majority": 1}


def test_it_ends_early_and_exhaustive_runs_everything(graft: Graft, tickets: Path) -> None:
    command = ("compare", tickets, "--seeds", "5", "--methods", "majority,tfidf_svm", "--json")
    early, whole = json.loads(graft(*command).out), json.loads(graft(*command, "--exhaustive").out)
    counts = [{row["method"]: row["n_seeds"] for row in board["rows"]} for board in (early, whole)]
    assert counts[1] == {"majority": 5, "tfidf_svm": 5}
    assert counts[0]["tfidf_svm"] == 3 >= counts[0]["majority"], "so many runs show the spread of what was chosen"
    assert early["search_costs"]["runs"]["value"] == sum(counts[0].values())
    assert early["decision"]["chosen"] == whole["decision"]["chosen"] == "tfidf_svm"
    assert early["race"] is whole["race"] is None


def test_what_stands_over_another_method_is_a_row_and_no_choice(graft: Graft, tickets: Path) -> None:
    chosen = "majority,linear_probe,no_transfer:by=linear_probe"
    board = json.loads(graft("compare", tickets, *QUICK, "--methods", chosen, "--json").out)
    assert {row["method"] for row in board["rows"]} == set(chosen.split(","))
    assert {one["method"] for one in board["decision"]["methods"]} == {"majority", "linear_probe"}


def test_a_task_file_may_ask_for_everything(graft: Graft, tickets: Path) -> None:
    lines = [f'data = "{tickets.name}"', "seeds = 4", 'methods = ["majority", "tfidf_svm"]']
    runs = []
    for more in ("exhaustive = false", "exhaustive = true"):
        Path("t.toml").write_text("\n".join([*lines, more]), encoding="utf-8")
        runs.append(json.loads(graft("compare", "t.toml", "--json").out)["search_costs"]["runs"]["value"])
    assert runs[0] < runs[1] == 8
    for wrong, expected in (('exhaustive = "yes"', "true or false"), ('worth = "much"', "a number")):
        Path("t.toml").write_text("\n".join([*lines, wrong]), encoding="utf-8")
        done = graft("compare", "t.toml")
        assert done.code == 2 and expected in done.err


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (
            "-0.1",
            "--worth, the points by which a dearer method must be better, is out of range got: -0.1 expected: 0 … 100",
        ),
        ("100.5", "got: 100.5 expected: 0 … 100 do: --worth 0.5 is the default"),
        ("nan", "got: nan expected: 0 … 100"),
        ("inf", "got: inf expected: 0 … 100"),
        ("much", "Invalid value for '--worth': 'much' is not a valid float"),
    ],
)
@pytest.mark.parametrize("command", [("compare", "--methods", "majority"), ("train", "--budget", "1min")])
def test_what_is_no_number_of_points_is_told_before_any_run(
    command: tuple[str, ...], points: str, message: str, graft: Graft, tickets: Path
) -> None:
    name, *flags = command
    done = graft(name, tickets, *flags, "--worth", points)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split()) and "Traceback" not in done.err
    assert not Path("runs").exists() and not Path("boards").exists() and not Path("ladders").exists()


@pytest.mark.parametrize(("points", "chosen"), [("0", "linear_probe"), ("100", "tfidf_svm")])
def test_the_least_points_that_matter_decide_the_choice(
    points: str, chosen: str, graft: Graft, written: Callable[..., Path]
) -> None:
    """The network's features tell the classes apart; the words do so less often, and cost next to nothing."""
    rows = [(f"{'ab'[i % 2] * (1 + i % 7)} {i}", "ab"[i % 2]) for i in range(120)]
    data = written("letters.csv", ("text", "label"), rows)
    methods = ("--methods", "majority,tfidf_svm,linear_probe", "--worth", points, "--json")
    assert json.loads(graft("compare", data, *QUICK, *methods).out)["decision"]["chosen"] == chosen


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


def test_the_plan_is_told_beside_the_answer_and_not_in_it(graft: Graft, tickets: Path) -> None:
    """Piped, a line of it goes to the error stream; nothing goes there with --json."""
    command = ("compare", tickets, "--seeds", "2", "--methods", "majority,tfidf_svm")
    done = graft(*command)
    assert re.fullmatch(r"reading the data\nBaselines in about .*; then runs .*, at most 4 runs in .*\.\n", done.err)
    assert "Baselines in about" not in done.out and done.out.startswith("tickets · ")
    assert re.fullmatch(r"reading the data\n4 runs, about .*\.\n", graft(*command, "--exhaustive").err)
    assert graft(*command, "--json").err == ""


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
    assert "other blocks run in eval mode" in graft(*command, "--vary", "dropout").err


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
    for words in (
        "tasks · 2 tasks, points",
        "ratio to tfidf_svm",
        "Verdicts",
        "Price of it all",
        "With fewer than 3 tasks",
    ):
        assert words in done.out
    assert max(map(len, done.out.split("Written: ")[0].splitlines())) <= 100
    assert Path("boards/tasks/tickets/leaderboard.json").is_file() and Path("boards/tasks/other/report.html").is_file()
    again = graft("compare", tickets, "other.toml", *flags, "--json")
    assert json.loads(again.out) == json.loads(Path("boards/tasks/tasks.json").read_text(encoding="utf-8"))
    assert graft("compare", tickets, "other.toml", *flags, "--out", "elsewhere").out.count("runs existed already") == 1
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
def test_ship_adds_compressed_modules_and_writes_the_one_to_ship(
    graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graftwork.ship.rung_search.pace", lambda *_: RelativeSpeed(next(ratios)))
    asked = ("compare", tickets, *QUICK, "--methods", "majority,top_layers:k=1", "--exhaustive", "--out", "board")
    boards = {}
    for worth in ("99", "0.5"):
        ratios = iter((1.5, 3.0))
        done = graft(*asked, "--worth", worth, "--ship")
        assert done.code == 0, done.err
        board = boards[worth] = json.loads(Path("board/leaderboard.json").read_text(encoding="utf-8"))
        require_types(board["shipped"], SHIPPED, set())
        for row in board["shipped"]["rows"]:
            require_types(row, SHIPPED_ROW, set())
        assert (
            f"Ship {board['shipped']['chosen']}: " in done.out and "Ship it:  graft predict board/shipped" in done.out
        )
        assert set(board["shipped"]["frontier"]) <= {
            row["method"] for row in [*board["rows"], *board["shipped"]["rows"]]
        }
    merged, smaller = (f"top_layers:k=1 > {rungs}" for rungs in ("merge", "merge > int8"))
    assert [row["method"] for row in board["shipped"]["rows"]] == [merged, smaller]
    assert (boards["99"]["shipped"]["chosen"], board["shipped"]["chosen"]) == (smaller, merged)
    assert [row["shown"] for row in board["shipped"]["rows"]] == [True, False], "too few rows for half a point"
    assert board["shipped"]["left_out"] == [["majority", "it uses no network"]]
    (own,) = (row["costs"] for row in board["rows"] if row["method"] == "top_layers:k=1")
    made = board["shipped"]["rows"][1]["costs"]
    assert made["predict_per_second"]["value"] == pytest.approx(3 * own["predict_per_second"]["value"])
    assert made["total_seconds"]["value"] > own["total_seconds"]["value"]
    assert "Score against price per prediction" in Path("board/report.html").read_text(encoding="utf-8")
    assert graft("predict", "board/shipped", "an invoice").code == 0
    priced = json.loads(graft("price", "board", "--predictions", "1e6", "--json").out)
    assert {merged, smaller} <= {row["name"] for row in priced["rows"]} and priced["chosen"] == merged
    assert sorted(path.name for path in Path("board").iterdir()) == ["leaderboard.json", "report.html", "shipped"]
    ratios = iter((0.95, 3.0))  # merged it is slower, and no row
    slower = json.loads(graft(*asked, "--worth", "99", "--ship", "--json").out)
    assert [row["method"] for row in slower["shipped"]["rows"]] == [smaller]


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
