"""The receipt of a run: whole, for failed runs too, small, cheap, and nothing of it in the run's id."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe, RunSpec
from graftwork.core.task import Task
from graftwork.errors import StorageError
from graftwork.io.files import file_digest, noting_digests, read_json
from graftwork.receipts.differences import surroundings_differences
from graftwork.registry import meters
from graftwork.run import execute as executing
from graftwork.run import recorded_code, recorded_data
from graftwork.run.execute import execute
from graftwork.run.receipt import NOTHING_TRIED, SearchRecord, read_receipt, with_seal
from graftwork.run.receipt_fields import FIELDS, OF_TORCH, missing, problems
from graftwork.run.recorded_code import diff_digest, imported_versions, other_versions, source_digest
from graftwork.run.recorded_data import recorded_file
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_result
from graftwork.train.seeds import derive

OpenSession = Callable[..., Session]
SHORT = Recipe(epochs=1, batch_size=8)


def run(
    session: Session,
    method: str = "majority",
    seed: int = 0,
    recipe: Recipe = SHORT,
    search: SearchRecord = NOTHING_TRIED,
) -> Path:
    result, _ = execute(session, parse_method(method), recipe, seed, lambda done, text: None, search)
    return session.store.root / result.id


def paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of a receipt, those of its tables too."""
    for key, inside in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from paths(inside, (*path, key))


def without(receipt: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    rest = deepcopy(receipt)
    inside = rest
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    return rest


@pytest.fixture(scope="module")
def receipts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A baseline, a trained method, one with a part of its steps, and a run that failed. Nobody changes them."""
    folder = tmp_path_factory.mktemp("receipts")
    rows = [f"{'good' if row % 2 else 'bad'} film number {row},{'yes' if row % 2 else 'no'}" for row in range(30)]
    (folder / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    setup = RunSettings("tiny_text", runs=str(folder / "runs"), precision="fp32")
    session = open_session(Task.from_file(folder / "films.csv"), [parse_method("lora")], setup)
    folders = {
        "baseline": run(session),
        "trained": run(session, "lora"),
        "short": run(session, "lora", recipe=replace(SHORT, epochs=20, part=0.3)),
        "failed": run(session, "adapter:learning_rate=1e30", recipe=replace(SHORT, epochs=4)),
    }
    return {name: read_receipt(folder) for name, folder in folders.items()}


def test_receipts_are_whole_and_any_field_that_is_deleted_is_missed(receipts: dict[str, dict[str, Any]]) -> None:
    for name, receipt in receipts.items():
        assert problems(receipt) == [], name
        for path in paths(receipt):
            assert problems(without(receipt, path)), f"{name}: nobody misses {'.'.join(path)}"


def test_a_field_is_missed_by_its_name_whatever_the_seal_says(receipts: dict[str, dict[str, Any]]) -> None:
    for name, receipt in receipts.items():
        there = {".".join(path) for path in paths(receipt)}
        for field in FIELDS:
            if field in there and field != "seal":
                assert f"{field} is missing" in missing(with_seal(without(receipt, tuple(field.split("."))))), name


def test_what_torch_says_of_itself_is_null_only_where_it_was_not_imported(receipts: dict[str, dict[str, Any]]) -> None:
    for name, fields in (("baseline", []), ("trained", ["code.distributions.torch is missing"])):
        receipt = without(receipts[name], ("code", "distributions", "torch"))
        assert missing(receipt) == fields
        for path in OF_TORCH:
            receipt["numerics"][path.removeprefix("numerics.")] = None
        assert len(missing(receipt)) == (len(OF_TORCH) + 1 if fields else 0)
        assert surroundings_differences(receipt, receipts[name]) == []
    assert len(missing(receipts["baseline"] | {"numerics": receipt["numerics"]})) == len(OF_TORCH)


def test_a_value_of_another_form_is_a_problem(receipts: dict[str, dict[str, Any]]) -> None:
    receipt = deepcopy(receipts["trained"])
    receipt["data"]["digest"] = "short"
    receipt["numerics"]["threads"] = True
    assert [line.partition(" ")[0] for line in missing(receipt)] == ["data.digest", "numerics.threads"]


def test_what_is_recorded_where_memory_ran_out_has_its_form(receipts: dict[str, dict[str, Any]]) -> None:
    cut = {"step": 2, "positions": 640, "why": "--max-memory 400000000"}
    good = {"passes_in_parts": {"train": 3}, "answers_in_parts": {"evaluate": 1}, "cuts": [cut]}
    receipt = deepcopy(receipts["trained"])
    receipt["numerics"] |= good
    receipt["method"]["words"] = 2
    assert missing(receipt) == []
    for bad in ({"passes_in_parts": {"train": "3"}}, {"answers_in_parts": 1}, {"cuts": [cut | {"step": None}]}):
        assert missing(receipt | {"numerics": receipt["numerics"] | bad}), bad
    for odd in ([{"step": 2}], [cut | {"rows": 3}], [[2, 640, ""]], "2"):
        assert missing(receipt | {"numerics": receipt["numerics"] | {"cuts": odd}}), odd
    receipt["method"]["words"] = "second"
    assert [line.partition(" ")[0] for line in missing(receipt)] == ["method.words"]


def test_a_meter_that_came_later_makes_no_receipt_less_whole(
    receipts: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "_parts", {**meters._parts, "water_litres": object})
    assert "water_litres" in meters.names() and not problems(receipts["trained"])
    receipt = without(receipts["trained"], ("price_tag", "energy_joules", "grade"))
    assert missing(receipt) == ["price_tag.energy_joules.grade is missing"]


def test_a_later_change_breaks_the_seal(receipts: dict[str, dict[str, Any]]) -> None:
    receipt = deepcopy(receipts["trained"])
    receipt["outcome"]["scores"]["accuracy"] -= 0.25
    assert problems(receipt) == ["seal: the receipt was changed after it was written"]


def test_it_says_what_was_run(receipts: dict[str, dict[str, Any]]) -> None:
    trained, baseline = receipts["trained"], receipts["baseline"]
    assert trained["model"]["id"] == "tiny_text" and baseline["model"] is None
    assert trained["randomness"]["derived"]["order"] == derive(0, "order")
    assert set(trained["price_tag"]) == set(meters.names())
    assert trained["data"]["splits"]["train"]["rows"] > 10 and trained["data"]["rejected_rows"] == 0
    assert trained["code"]["distributions"]["torch"] and trained["code"]["source_sha256"]
    assert len(trained["outcome"]["log"]["first_losses"]) == min(10, trained["outcome"]["log"]["steps"])
    assert sum(trained["outcome"]["weights"]["groups"].values()) == trained["outcome"]["weights"]["stored_parameters"]
    assert trained["timeline"]["started"] < trained["timeline"]["ended"]
    assert receipts["failed"]["outcome"]["failure"]["class"] == "Diverged"
    assert "diverged at step" in receipts["failed"]["outcome"]["failure"]["message"]
    assert receipts["short"]["method"]["recipe"]["part"] == 0.3 and receipts["short"]["outcome"]["scores"]


def test_its_hashes_are_those_of_the_files(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder = run(session, "lora")
    outcome, data = read_receipt(folder)["outcome"], read_receipt(folder)["data"]
    assert outcome["predictions"]["sha256"] == file_digest(folder / "predictions.jsonl")
    assert outcome["log"]["sha256"] == file_digest(folder / "log.jsonl")
    assert outcome["weights"]["sha256"] == file_digest(folder / "module" / "delta.safetensors")
    assert data["files"]["train"]["sha256"] == file_digest(session.dataset.task.data)
    assert Path(data["files"]["train"]["path"]) == session.dataset.task.data.resolve()
    assert outcome["scores"] == read_result(folder / "result.json").scores


def test_nothing_of_it_is_part_of_the_id() -> None:
    assert RunSpec({}, "data", None, {"name": "majority"}, {}, 0, {}).id == "29374d523faa"


def test_what_was_tried_before_is_told(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), search=SearchRecord({"learning_rate": [0.1, 0.2]}, ("aaa", "bbb")))
    search = read_receipt(folder)["method"]["search"]
    assert search == {"space": {"learning_rate": [0.1, 0.2]}, "tried": ["aaa", "bbb"], "trials": 2}


def test_the_files_are_those_that_were_read_whatever_becomes_of_them_during_the_run(open_tiny: OpenSession) -> None:
    session = open_tiny()
    source = session.dataset.task.data
    before = file_digest(source)

    def remove(done: float, text: str) -> None:
        source.unlink(missing_ok=True)

    result, _ = execute(session, parse_method("lora"), SHORT, 0, remove)
    receipt = read_receipt(session.store.root / result.id)
    assert not source.exists() and receipt["data"]["files"]["train"]["sha256"] == before


@pytest.mark.parametrize("method", ["linear_probe", "prototype", "contrastive", "partial_input:by=linear_probe"])
def test_a_method_that_takes_no_recipe_has_none(open_tiny: OpenSession, method: str) -> None:
    pair = method.startswith("partial")
    folder = run(open_tiny(pair=True) if pair else open_tiny(), method)
    told = read_receipt(folder)["method"]
    assert told["recipe"] == {} and "best on validation" not in told["early_stopping"]
    assert not problems(read_receipt(folder))


def test_it_is_small_and_takes_no_time(open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    write = executing.write_receipt

    def timed(*arguments: Any) -> None:
        began = time.process_time()
        write(*arguments)
        seconds.append(time.process_time() - began)

    monkeypatch.setattr(executing, "write_receipt", timed)
    session = open_tiny()
    folders = [run(session, seed=seed) for seed in range(3)]
    assert max((folder / "receipt.json").stat().st_size for folder in folders) < 20_000
    assert min(seconds) < 1


def test_an_old_run_has_none_and_is_still_read(open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    (folder / "receipt.json").unlink()
    content = read_json(folder / "result.json")
    del content["failure"]  # as it was written before
    (folder / "result.json").write_text(json.dumps(content), encoding="utf-8")
    assert read_result(folder / "result.json").status == "ok"
    with pytest.raises(StorageError, match="made by an older version"):
        read_receipt(folder)
    (folder / "receipt.json").write_text('{"format": 2}', encoding="utf-8")
    with pytest.raises(StorageError, match="another version"):
        read_receipt(folder)


def test_files_are_hashed_once_for_revision_and_receipt(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    with noting_digests() as notes:
        first = file_digest(tmp_path / "a")
    file_digest(tmp_path / "a")
    assert notes == {str(tmp_path / "a"): first}


def test_a_folder_is_hashed_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.txt").write_text("1")
    first = recorded_file(tmp_path / "one")
    (tmp_path / "one" / "y.txt").write_text("2")
    second = recorded_file(tmp_path / "one")
    assert (first["files"], second["files"]) == (1, 2) and first["sha256"] != second["sha256"]
    assert recorded_file(Path("hub:glue:cola"))["sha256"] is None


def test_versions_are_those_of_what_is_imported() -> None:
    found = imported_versions()
    assert {"torch", "numpy", "pytest"} <= found.keys()
    assert other_versions(found) == {}
    assert other_versions({"torch": "1.0", "no-such-thing": "2"}) == {
        "torch": ("1.0", found["torch"]), "no-such-thing": ("2", None),
    }  # fmt: skip


def test_code_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = source_digest(tmp_path)
    source_digest.cache_clear()
    (tmp_path / "a.py").write_text("2")
    assert source_digest(tmp_path) != first
    source_digest.cache_clear()
    assert diff_digest(tmp_path / "no checkout") is None
    assert recorded_code.recorded_code()["source_sha256"]


def test_a_built_in_data_set_keeps_its_name_where_packages_are_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = tmp_path / "builtin"
    linked.mkdir()
    (linked / "tickets.csv").symlink_to(recorded_data.BUILTIN / "tickets.csv")
    monkeypatch.setattr(recorded_data, "BUILTIN", linked)
    assert recorded_data.lasting_path(linked / "tickets.csv") == "builtin:tickets"
    assert recorded_data.lasting_path(tmp_path / "tickets.csv") == str(tmp_path.resolve() / "tickets.csv")
