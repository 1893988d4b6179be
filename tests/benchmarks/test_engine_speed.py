"""The benchmark of the engine: its driver with contenders that measure nothing, its table, its workers on few rows."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "benchmarks" / "engine_speed"
FAKE = Path(__file__).with_name("fake_worker.py")
RESULTS = sorted((FOLDER / "results").rglob("*.json"))


@pytest.fixture
def driver(imported: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = imported("engine_speed/driver")
    monkeypatch.setattr(module, "REST_SECONDS", 0.0)
    return module


@pytest.fixture(scope="module")
def choosing(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("engine_speed/choosing")


@pytest.fixture(scope="module")
def pieces(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("engine_speed/pieces")


@pytest.fixture(scope="module")
def questions(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("engine_speed/questions")


@pytest.fixture(scope="module")
def table(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("engine_speed/table")


def heat(driver: ModuleType, **contenders: dict[str, Any]) -> Any:
    entrants = [driver.Entrant(name, "fake", settings) for name, settings in contenders.items()]
    first, *others = contenders
    return driver.Heat("fakes", entrants, seeds=2, epochs=3, ratios=[(first, other) for other in others])


def test_contenders_take_turns_and_the_order_alternates(driver: ModuleType) -> None:
    result = driver.run(heat(driver, ours={"seconds": [2, 3, 4]}, peer={"seconds": [4, 9, 16]}), FAKE)
    asked = [(answer["turn"], answer["contender"], answer["do"]) for answer in result["raw"]]
    assert asked[:6] == [
        (0, "ours", "start"), (0, "peer", "start"),
        (1, "peer", "epoch"), (1, "ours", "epoch"),
        (2, "ours", "epoch"), (2, "peer", "epoch"),
    ]  # fmt: skip
    assert [do for _, name, do in asked if name == "peer"] == ["start", "epoch", "epoch", "epoch", "score"] * 2
    assert result["status"] == "ok"


def test_medians_sums_and_ratios(driver: ModuleType) -> None:
    result = driver.run(heat(driver, ours={"seconds": [2, 3, 4]}, peer={"seconds": [4, 9, 16]}), FAKE)
    ours = result["contenders"]["ours"]
    assert ours["epoch_seconds"] == {"median": 3, "mean": 3, "min": 2, "max": 4, "n": 6}
    assert ours["fit_seconds"]["median"] == 10 and ours["all_fits_seconds"] == 20
    assert ours["tokens_per_second"]["max"] == 50
    assert ours["test"]["mean"] == pytest.approx(0.55)
    (ratio,) = result["ratios"]
    assert (ratio["epoch"]["median"], ratio["epoch"]["min"], ratio["epoch"]["max"]) == (3, 2, 4)
    assert ratio["all_fits"] == 3


def test_a_part_of_an_epoch_is_scaled(driver: ModuleType) -> None:
    peer = {"seconds": [1, 1, 1], "share": 0.25}
    (ratio,) = driver.run(heat(driver, ours={"seconds": [2, 2, 2]}, peer=peer), FAKE)["ratios"]
    assert ratio["epoch"]["median"] == 2 and ratio["all_fits"] is None


def test_a_heat_without_a_number_of_epochs_takes_the_recipes(driver: ModuleType) -> None:
    unbounded = dataclasses.replace(
        heat(driver, ours={"seconds": [2, 3], "own_epochs": 2}, peer={"seconds": [4, 9]}), epochs=None
    )
    result = driver.run(unbounded, FAKE)
    assert [entry["epoch_seconds"]["n"] for entry in result["contenders"].values()] == [4, 4]


def test_a_failure_is_kept_and_the_others_go_on(driver: ModuleType, table: ModuleType) -> None:
    peer = {"seconds": [1, 1, 1], "fails_after": 2}
    result = driver.run(heat(driver, ours={"seconds": [2, 2, 2]}, peer=peer, other={"seconds": [4, 4, 4]}), FAKE)
    assert result["status"] == "partial"
    assert "out of luck" in result["contenders"]["peer"]["error"]
    assert result["contenders"]["peer"]["epoch_seconds"]["n"] == 1
    assert result["contenders"]["other"]["epoch_seconds"]["n"] == 6
    assert [ratio["peer"] for ratio in result["ratios"]] == ["other"]
    shown = table._contenders({"heats": [result]})
    assert "| fakes | other | 4 s (4–4) | 13 s (13–13) | 25 | 55.0 | 2.00 (2.00–2.00); 1.86 |" in shown


def test_the_fastest_of_equals_is_the_peers_best(choosing: ModuleType) -> None:

    def entry(seconds: float, validation: float) -> dict[str, Any]:
        return {"epoch_seconds": {"median": seconds}, "validation": {"median": validation}}

    contenders = {"slow": entry(3, 0.9), "fast": entry(2, 0.895), "bad": entry(1, 0.8), "broken": {"error": "x"}}
    assert choosing.fastest({"contenders": contenders}) == "fast"
    assert choosing.most_accurate({"contenders": contenders}) == "slow"
    best = choosing.Chosen({"all@trec6": {"attention": "eager", "learning_rate": 1e-4}})
    assert best.best("all", "sst2") == {"attention": "eager", "learning_rate": 1e-4, "trains": "all"}
    assert best.best("bias", "sst2")["trains"] == "bias"


def test_the_share_of_the_machine_counts_blocks_and_attention(questions: ModuleType) -> None:
    about = {"block_parameters": 10, "tokens": 7, "blocks": 2, "width": 3, "squared_lengths": 5}
    raw = [
        {"do": "epoch", "turn": 1, "contender": "graftwork full", "seconds": 2.0},
        {"do": "epoch", "turn": 1, "contender": "machine", "seconds": 9.0, "flops_per_second": 1560.0},
    ]
    found = questions.share({"status": "ok", "contenders": {"graftwork full": {"about": about}}, "raw": raw})
    assert found["flops_per_epoch"] == 6 * 10 * 7 + 12 * 2 * 3 * 5
    assert found["shares"] == [pytest.approx(0.25)]


def test_runs_at_once_add_their_rates(questions: ModuleType) -> None:
    about = {"block_parameters": 10, "tokens": 7, "blocks": 2, "width": 3, "squared_lengths": 5}  # 780 FLOP an epoch
    contenders = {
        "graftwork full": {"about": about, "epoch_seconds": {"median": 2.0}},
        "machine": {"flops_per_second": {"median": 1560.0}},
    }
    training = [{"epochs": 2, "seconds": 4.0}, {"epochs": 1, "seconds": 3.0}]
    raw = [{"do": "score", "contender": questions.EXHAUSTIVE, "training": training}]
    found = questions.together({"status": "ok", "contenders": contenders, "raw": raw})
    assert found["share"] == pytest.approx((390 + 260) / 1560) and found["share_alone"] == pytest.approx(0.25)
    assert found["times_as_fast"] == pytest.approx(650 / 390)


def test_growth(questions: ModuleType) -> None:
    sizes = {str(n): {"about": {"train_rows": n}, "fit_seconds": {"median": n**2}} for n in (10, 20, 1000)}
    assert questions.slope({"contenders": sizes}) == pytest.approx(2)


def boards(questions: ModuleType) -> dict[str, Any]:
    """A heat of both boards, 29 and 58 seconds, and the peers, 1 second to start and 2 an epoch."""
    peer = {"start_seconds": {"median": 1.0}, "epoch_seconds": {"median": 2.0}}
    contenders: dict[str, Any] = {f"{questions.TRAINER}: {trains}": peer for trains in questions.TRAINED}
    slow = {"start_seconds": {"median": 1.0}, "epoch_seconds": {"median": 2.0}, "about": {"share": 0.1}}
    contenders |= {f"{questions.DEFAULTS}: {trains}": slow for trains in questions.TRAINED}
    raw = []
    for name, seconds, scores in (
        (questions.COMPARE, 29.0, {"lora": 0.9, "full": 0.875}),
        (questions.EXHAUSTIVE, 58.0, {"full": 0.91, "lora": 0.905}),
    ):
        contenders[name] = {"epoch_seconds": {"median": seconds, "min": seconds, "max": seconds}}
        said = {
            "headline_metric": "accuracy",
            "best": next(iter(scores)),
            "test_by_method": {method: {"accuracy": score, "f1": 0.0} for method, score in scores.items()},
            "epochs_of_a_run": 5,
            "decision": {"left": ["bitfit"] if name == questions.COMPARE else []},
        }
        raw += [{"contender": name, "do": "epoch"}, {"contender": name, "do": "score"} | said]
    return {"label": "fakes", "status": "ok", "contenders": contenders, "raw": raw}


def test_the_board_of_the_peers(questions: ModuleType, table: ModuleType) -> None:
    computed = questions.one_by_one(boards(questions), 5, questions.COMPARE)
    assert computed["sum"] == 5 * (5 * 11 + 3) and computed["ratio"] == 10 and computed["epochs"] == 5
    slow = questions.one_by_one(boards(questions), 5, questions.COMPARE, questions.DEFAULTS)
    assert slow["sum"] == 5 * 6 * (1 + 5 * 20)  # a tenth of an epoch is measured; nobody keeps frozen features
    heat = boards(questions)
    heat["contenders"] = {questions.COMPARE: heat["contenders"].pop(questions.COMPARE)} | heat["contenders"]
    shown = table._board({"heats": [heat], "seeds": 5, "peers": computed, "peers_at_defaults": slow})
    assert "| peers one by one, computed | 4 min 50 s | 10.00 |" in shown
    assert "| peers one by one at run_glue's defaults, computed | 50 min 30 s | 104.48 |" in shown
    assert questions.one_by_one(boards(questions) | {"status": "partial"}, 5, questions.COMPARE) is None


def test_what_a_race_saves_and_loses(questions: ModuleType, table: ModuleType) -> None:
    heat = boards(questions)
    race = questions.race_of(heat, 5)
    assert [winner["method"] for winner in race["winners"].values()] == ["lora", "full"]
    assert race["points_lost"] == pytest.approx(1.0) and race["exhaustive_ratio"] == 2
    assert race["left"] == ["bitfit"]

    def told(race: dict[str, Any]) -> str:
        found = {"heats": [heat], "races": {"fakes": race}, "seeds": 5, "bars": questions.RACING_BARS}
        shown: str = table._racing(found)
        return shown

    shown = told(race)
    assert (
        "| fakes | 5 | 29 s (29–29) | 4 min 50 s | 10.00 | 58 s (58–58); 2.00 | lora 90.0 | full 91.0 | +1.00 |"
        in shown
    )
    assert "- fakes: accuracy; dropped: bitfit." in shown
    assert "- fakes: accuracy; dropped: nothing." in told(race | {"left": []})
    of_before = {**race, "dropped": [{"method": "lora", "stage": "seed 0", "why": "worse"}]}
    assert "- fakes: accuracy; dropped: lora after seed 0." in told(of_before)
    heat["contenders"][questions.EXHAUSTIVE]["error"] = "out of luck"
    assert questions.race_of(heat, 5) is None


def curve(contender: str, seed: int, start: float, *epochs: float) -> list[dict[str, Any]]:
    """A start and epochs of 10 seconds, with the test accuracy after each."""
    said: dict[str, Any] = {"contender": contender, "seed": seed}
    told = [said | {"do": "epoch", "epoch": i, "seconds": 10.0, "test_now": test} for i, test in enumerate(epochs, 1)]
    return [said | {"do": "start", "seconds": start, "test_now": 0.99}, *told]


def test_the_time_to_a_score_ends_with_the_first_epoch_that_has_it(questions: ModuleType) -> None:
    raw = [*curve("x", 0, 1.0, 0.8, 0.9, 0.7), *curve("x", 1, 2.0, 0.9, 0.9, 0.9), *curve("x", 2, 3.0, 0.8, 0.8, 0.8)]
    found = questions.arrival(raw, 0.9)
    assert found == {"epochs": [2, 1, None], "seconds": [21.0, 12.0, None], "median": 21.0}
    assert questions.arrival(raw, 0.95)["median"] is None


@pytest.mark.parametrize(("peer", "at_least"), [((0.5, 0.9), False), ((0.5, 0.8), True)])
def test_the_trainer_takes_times_as_long_to_the_quality_of_full(
    questions: ModuleType, peer: tuple[float, ...], at_least: bool, table: ModuleType
) -> None:
    curves = {"graftwork linear_probe": (0.6, 0.6), "graftwork adapter": (0.8975, 0.5), "graftwork full": (0.8, 0.9)}
    raw = [answer for name, tests in curves.items() for answer in curve(name, 0, 1.0, *tests)]
    raw += curve(questions.TRAINER, 0, 2.0, *peer)
    finals = {name: {"test": {"mean": tests[-1]}} for name, tests in (curves | {questions.TRAINER: peer}).items()}
    spread = {"median": 22.0, "min": 22.0, "max": 22.0}
    entries = {name: entry | {"start_seconds": spread, "fit_seconds": spread} for name, entry in finals.items()}
    heat = {"label": "fakes", "status": "ok", "contenders": entries, "raw": raw}
    found = questions.arrivals_of(heat)
    assert found["target"] == pytest.approx(0.8955) and found["at_least"] is at_least
    assert found["quickest"] == "graftwork adapter"
    assert found["times_as_long"] == {"graftwork adapter": 2.0, "graftwork full": pytest.approx(22 / 21)}
    shown = table._time_to_full({"heats": [heat], "arrivals": {"fakes": found}, "bar": 4.0})
    assert f"| {'at least ' if at_least else ''}2.00 |" in shown
    assert "| fakes (89.5) | graftwork linear_probe | never | never |" in shown
    assert questions.arrivals_of(heat | {"status": "partial"}) is None


def test_rows_are_drawn_once_and_for_all(pieces: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for stem in ("train", "dev", "test"):
        lines = [f"text {i}\t{'ab'[i % 2]}" for i in range(50)]
        (tmp_path / "given" / f"{stem}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    tasks = [pieces.task(pieces.Piece("given", train=20, test=5), tmp_path, tmp_path / place) for place in "xy"]
    files = [[getattr(task, split).read_text() for split in ("data", "validation", "test")] for task in tasks]
    assert files[0] == files[1]
    assert [len(text.splitlines()) for text in files[0]] == [21, 6, 6]
    whole = pieces.task(pieces.Piece("given"), tmp_path, tmp_path / "z")
    assert whole.data == tmp_path / "given" / "train.tsv" and not (tmp_path / "z").exists()


def test_a_data_set_without_an_official_split_is_drawn_from(pieces: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "all.tsv").write_text("text\tlabel\nyes\ta\nno\tb\n")
    task = pieces.task(pieces.Piece("given"), tmp_path, tmp_path / "x")
    assert (task.data.name, task.validation, task.test) == ("all.tsv", None, None)
    cut = pieces.task(pieces.Piece("given").at_most(1), tmp_path, tmp_path / "x")
    assert len(cut.data.read_text().splitlines()) == 2 and cut.test is None


def test_the_readme_shows_the_committed_numbers(table: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert readme.partition("## Results\n")[2].strip() == table.table().strip()


def test_without_results_the_table_is_empty(table: ModuleType, tmp_path: Path) -> None:
    assert table.table(tmp_path) == ""


def test_what_another_machine_answered_follows_under_its_name(table: ModuleType, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "small_laptop"):
        place.mkdir(exist_ok=True)
        shutil.copy(FOLDER / "results" / "growth.json", place)
    titles = [line for line in table.table(tmp_path).splitlines() if line.startswith("### ")]
    assert titles == ["### Growth with the rows", "### Growth with the rows (`small_laptop`)"]


def test_the_readme_names_every_question_and_switch(questions: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {"peer_settings", *questions.QUESTIONS} <= set(re.findall(r"^\| `(\w+)` \|", readme, flags=re.MULTILINE))
    switches = {switch for used in questions.RULES.values() for switch in used}
    assert switches <= set(re.findall(r"`(\w+)`", readme))


def test_results_are_whole_and_private() -> None:
    for path in RESULTS:
        text = path.read_text(encoding="utf-8")
        result = json.loads(text)
        assert result["format"] == 1 and result["question"] == path.stem and result["rows_at_most"] is None
        assert result["environment"]["commit"]["hash"]
        assert not re.search(r'["/ ](home|root|tmp|work|Users)/', text), path.name


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("question", ["machine_share", "adapters"])  # two of ten: minutes for all
def test_a_question_runs_on_a_few_rows(question: str, shared: Path, table: ModuleType, tmp_path: Path) -> None:
    for peer in ("accelerate", "peft"):
        pytest.importorskip(peer)
    words = ["--data", str(shared / "data"), "--out", str(tmp_path), "--rows", "64", "--epochs", "1", "--seeds", "1"]
    subprocess.run([sys.executable, str(FOLDER / "run.py"), *words, "--only", "trec6", "--", question], check=True)
    result = json.loads((tmp_path / f"{question}.json").read_text())
    errors = [entry.get("error") for heat in result["heats"] for entry in heat["contenders"].values()]
    assert not [error for error in errors if error]
    assert "### " in table.table(tmp_path)
