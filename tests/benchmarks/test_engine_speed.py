"""The benchmark of the engine: its driver with contenders that measure nothing, its table, its workers on few rows."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "benchmarks" / "engine_speed"
FAKE = Path(__file__).with_name("fake_worker.py")
RESULTS = sorted((FOLDER / "results").glob("*.json"))
MODULES = ("protocol", "driver", "pieces", "choosing", "questions")


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The benchmark's modules can be imported as its script imports them, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = importlib.import_module("driver")
    monkeypatch.setattr(module, "REST_SECONDS", 0.0)
    return module


@pytest.fixture
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("engine_speed_table", FOLDER / "table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_the_fastest_of_equals_is_the_peers_best() -> None:
    choosing = importlib.import_module("choosing")

    def entry(seconds: float, validation: float) -> dict[str, Any]:
        return {"epoch_seconds": {"median": seconds}, "validation": {"median": validation}}

    contenders = {"slow": entry(3, 0.9), "fast": entry(2, 0.895), "bad": entry(1, 0.8), "broken": {"error": "x"}}
    assert choosing.fastest({"contenders": contenders}) == "fast"
    assert choosing.most_accurate({"contenders": contenders}) == "slow"
    best = choosing.Chosen({"all@trec6": {"attention": "eager", "learning_rate": 1e-4}})
    assert best.best("all", "sst2") == {"attention": "eager", "learning_rate": 1e-4, "trains": "all"}
    assert best.best("bias", "sst2")["trains"] == "bias"


def test_the_share_of_the_machine_counts_blocks_and_attention() -> None:
    questions = importlib.import_module("questions")
    about = {"block_parameters": 10, "tokens": 7, "blocks": 2, "width": 3, "squared_lengths": 5}
    raw = [
        {"do": "epoch", "turn": 1, "contender": "graftwork full", "seconds": 2.0},
        {"do": "epoch", "turn": 1, "contender": "machine", "seconds": 9.0, "flops_per_second": 1560.0},
    ]
    found = questions.share({"status": "ok", "contenders": {"graftwork full": {"about": about}}, "raw": raw})
    assert found["flops_per_epoch"] == 6 * 10 * 7 + 12 * 2 * 3 * 5
    assert found["shares"] == [pytest.approx(0.25)]


def test_growth_and_the_board_of_the_peers() -> None:
    questions = importlib.import_module("questions")
    sizes = {str(n): {"about": {"train_rows": n}, "fit_seconds": {"median": n**2}} for n in (10, 20, 1000)}
    assert questions.slope({"contenders": sizes}) == pytest.approx(2)
    peer = {"start_seconds": {"median": 1.0}, "epoch_seconds": {"median": 2.0}}
    contenders = {f"Trainer: {trains}": peer for trains in questions.BOARD_PEERS.values()}
    heat = {"status": "ok", "contenders": contenders | {"graft compare": {"epoch_seconds": {"median": 29.0}}}}
    found = questions.one_by_one(heat, seeds=5)
    assert found["sum"] == 5 * (5 * 11 + 3) and found["ratio"] == 10


def test_rows_are_drawn_once_and_for_all(tmp_path: Path) -> None:
    pieces = importlib.import_module("pieces")
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


def test_the_readme_shows_the_committed_numbers(table: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert readme.partition("## Results\n")[2].strip() == table.table().strip()


def test_without_results_the_table_is_empty(table: ModuleType, tmp_path: Path) -> None:
    assert table.table(tmp_path) == ""


def test_the_readme_names_every_question_and_switch() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    questions = importlib.import_module("questions")
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
@pytest.mark.parametrize("question", ["machine_share", "adapters"])
def test_a_question_runs_on_a_few_rows(question: str, shared: Path, table: ModuleType, tmp_path: Path) -> None:
    for peer in ("accelerate", "peft"):
        pytest.importorskip(peer)
    words = ["--data", str(shared / "data"), "--out", str(tmp_path), "--rows", "64", "--epochs", "1", "--seeds", "1"]
    subprocess.run([sys.executable, str(FOLDER / "run.py"), *words, "--only", "trec6", "--", question], check=True)
    result = json.loads((tmp_path / f"{question}.json").read_text())
    errors = [entry.get("error") for heat in result["heats"] for entry in heat["contenders"].values()]
    assert not [error for error in errors if error]
    assert "### " in table.table(tmp_path)
