"""A run that is executed again: equal to the last bit, and what was changed is named."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch

from graftwork.cli.verify import verdict_lines
from graftwork.core.configured_methods import parse_method
from graftwork.core.model import Model
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, StorageError
from graftwork.io.files import read_json, write_json
from graftwork.machine.environment import DECIDING, VARIABLES
from graftwork.machine.memory import Cut
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.receipts import verify
from graftwork.receipts.checklist import RunGroup, paragraph
from graftwork.receipts.verify import (
    DIFFERENT,
    EQUAL,
    HERE,
    IN_BAND,
    IN_TOLERANCE,
    MovedInputs,
    Verification,
    keep,
    verifier,
)
from graftwork.run.execute import execute
from graftwork.run.receipt import with_seal
from graftwork.run.session import Session
from graftwork.train import answer as answering

OpenSession = Callable[..., Session]
SHORT = Recipe(epochs=1, batch_size=8)


def run(session: Session, method: str = "majority", seed: int = 0, recipe: Recipe = SHORT) -> Path:
    result, _ = execute(session, parse_method(method), recipe, seed, lambda done, text: None)
    return session.store.root / result.id


@pytest.fixture
def lora(kept_session: OpenSession, tmp_path: Path) -> Path:
    """A run that a test may change."""
    kept = run(kept_session(), "lora")
    return Path(shutil.copytree(kept, tmp_path / "runs" / kept.name))


def verified(folder: Path, moved: MovedInputs = HERE) -> Verification:
    with verifier(moved) as executing:
        return executing.verify(folder)


def named(found: Verification) -> set[tuple[str, str]]:
    return {(one.group, one.about) for one in found.differences}


def change(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    content = read_json(path)
    edit(content)
    write_json(path, content)


def reseal(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """As if the receipt had been written so."""
    content = read_json(folder / "receipt.json")
    edit(content)
    write_json(folder / "receipt.json", with_seal(content))


def rewrite(path: Path, edit: Callable[[list[list[str]]], Any]) -> None:
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    edit(rows)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)


@pytest.mark.parametrize(
    "method",
    ["majority", "tfidf_svm", "lora", *(pytest.param(m, marks=pytest.mark.slow) for m in ("linear_probe", "full"))],
)
def test_a_run_is_equal_to_the_last_bit(method: str, kept_session: OpenSession) -> None:
    found = verified(run(kept_session(), method))
    assert (found.verdict, found.differences, found.executed, found.band) == (EQUAL, (), True, None)
    assert found.predictions["equal"] == found.predictions["rows"] > 4
    assert found.predictions["largest_logit_difference"] == 0.0
    assert found.score["recorded"] == found.score["found"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", pytest.param("multilabel", marks=pytest.mark.slow)])
def test_other_kinds_and_a_part_of_a_run(kind: str, open_tiny: OpenSession) -> None:
    session = open_tiny(kind)
    assert verified(run(session, "linear_probe")).verdict == EQUAL
    assert verified(run(session, "lora", recipe=replace(SHORT, epochs=20, part=0.3))).verdict == EQUAL


@pytest.mark.slow
def test_a_run_in_parts_is_cut_again_where_it_was(open_tiny: OpenSession) -> None:
    folder = run(replace(open_tiny(), cuts=[Cut(1, 40, "no memory")]), "lora")
    receipt = read_json(folder / "receipt.json")
    assert receipt["numerics"]["accumulation"] > 1 and receipt["numerics"]["cuts"][0]["step"] == 1
    assert verified(folder).verdict == EQUAL
    reseal(folder, lambda content: content["numerics"].pop("cuts"))
    assert verified(folder).verdict != EQUAL, "whole batches round otherwise"


@pytest.mark.slow
def test_a_run_that_went_beyond_its_bound_does_so_again(open_tiny: OpenSession) -> None:
    folder = run(replace(open_tiny(), max_memory=1000), "lora")
    receipt = read_json(folder / "receipt.json")
    assert (receipt["outcome"]["status"], receipt["numerics"]["max_memory"]) == ("out_of_memory", 1000)
    assert verified(folder).verdict == EQUAL
    reseal(folder, lambda content: content["numerics"].pop("max_memory"))
    assert verified(folder).verdict == DIFFERENT, "a receipt of before says nothing of it"


def test_a_pass_in_parts_is_told_and_may_round(open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TransformerBackbone.states

    def short(self: TransformerBackbone, inputs: Any) -> Any:
        if len(inputs["input_ids"]) > 3:
            raise MemoryError
        return real(self, inputs)

    with monkeypatch.context() as patched:
        patched.setattr(TransformerBackbone, "states", short)
        folder = run(open_tiny(), "scalar_mix")
    told = {"train": 1, "validation": 1}
    assert read_json(folder / "result.json")["facts"]["passes_in_parts"] == told
    assert read_json(folder / "receipt.json")["numerics"]["passes_in_parts"] == told
    assert verified(folder).holds


@pytest.mark.slow
@pytest.mark.parametrize(("method", "phases"), [("lora", ["fit", "evaluate", "save"]), ("linear_probe", None)])
def test_answers_in_parts_are_told_and_may_round(
    method: str, phases: list[str] | None, open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes through in halves has other last bits here, as batches of another size may have."""
    real, asked, halved = Model.forward, answering.frozen_states, list[int]()

    def needs(rows: int) -> None:
        if rows > 3:
            halved.append(rows)
            raise MemoryError

    def of_model(self: Model, inputs: Any, entering: Any = None) -> Any:
        if torch.is_grad_enabled():
            return real(self, inputs, entering)
        needs(len(inputs["input_ids"]))
        return real(self, inputs, entering) * (1 + 1e-6)

    def of_backbone(backbone: Any, inputs: Any, depth: int, towers: int) -> Any:
        needs(len(inputs["input_ids"]))
        return tuple(state * (1 + 1e-6) for state in asked(backbone, inputs, depth, towers))

    with monkeypatch.context() as patched:
        patched.setattr(Model, "forward", of_model)
        patched.setattr(answering, "frozen_states", of_backbone)
        folder = run(open_tiny(), method)
    found = verified(folder)
    assert halved and found.holds and {"predictions"} <= {one.about for one in found.differences}
    told = read_json(folder / "receipt.json")["numerics"]["answers_in_parts"]
    assert list(told) == (phases or ["evaluate", "save"]) and min(told.values()) > 0
    assert read_json(folder / "result.json")["facts"]["answers_in_parts"] == told
    reseal(folder, lambda content: content["numerics"].pop("answers_in_parts"))
    assert verified(folder).verdict == DIFFERENT, "nothing else is other"


@pytest.mark.slow
def test_memory_that_is_short_when_it_is_verified_may_round(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = run(open_tiny(), "linear_probe"), answering.frozen_states

    def short(backbone: Any, inputs: Any, depth: int, towers: int) -> Any:
        if len(inputs["input_ids"]) > 3:
            raise MemoryError
        return tuple(state * (1 + 1e-6) for state in real(backbone, inputs, depth, towers))

    monkeypatch.setattr(answering, "frozen_states", short)
    found = verified(folder)
    assert found.holds and {("surroundings", "memory"), ("outcome", "predictions")} <= named(found)


def test_a_failed_run_fails_again(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), "adapter:learning_rate=1e30", recipe=Recipe(epochs=2, batch_size=8))
    receipt = read_json(folder / "receipt.json")
    assert receipt["outcome"]["failure"]["class"] == "Diverged"
    assert verified(folder).verdict == EQUAL
    reseal(folder, lambda content: content["outcome"]["failure"].update({"class": "MemoryError"}))
    assert named(verified(folder)) == {("outcome", "failure"), ("record", "failure")}
    change(folder / "result.json", lambda content: content.update(failure="MemoryError"))
    assert named(verified(folder)) == {("outcome", "failure")}


@pytest.mark.slow
def test_a_failed_run_in_parts_is_cut_again_where_it_was(open_tiny: OpenSession) -> None:
    session = replace(open_tiny(), cuts=[Cut(0, 40, "no memory")])
    folder = run(session, "adapter:learning_rate=1e30", recipe=Recipe(epochs=2, batch_size=8))
    receipt = read_json(folder / "receipt.json")
    assert receipt["outcome"]["failure"]["class"] == "Diverged" and receipt["numerics"]["accumulation"] > 1
    assert verified(folder).verdict == EQUAL


@pytest.mark.parametrize("words", ["dan:vectors=words.txt:epochs=2", "partial_input:by=dan:vectors=words.txt:epochs=2"])
def test_a_method_s_file_is_read_again_where_it_was(
    words: str, open_tiny: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, session = tmp_path / "words.txt", open_tiny(pair=words.startswith("partial_input"))
    vectors.write_text("".join(f"{word} {0.1 * place} 1.0\n" for place, word in enumerate(["a", "good", "bad"])))
    monkeypatch.chdir(tmp_path)
    folder = run(session, words)
    monkeypatch.chdir("/")
    assert (found := verified(folder)).verdict == EQUAL and not found.differences
    whole = read_json(folder / "receipt.json")
    reseal(folder, lambda content: content["rerun"].pop("method"))
    with pytest.raises(StorageError, match="does not name the file"):
        verified(folder)
    write_json(folder / "receipt.json", whole)
    vectors.write_text(vectors.read_text() + "more 1.0 1.0\n")
    with pytest.raises(StorageError, match="has changed"):
        verified(folder)
    vectors.unlink()
    with pytest.raises(StorageError, match="no such file"):
        verified(folder)


def test_a_run_that_is_called_by_a_dot_is_held_against_its_row(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = run(open_tiny(), "lora"), []
    monkeypatch.setattr(verify, "row_of", lambda root, spec: asked.append(root) or [])
    monkeypatch.setattr(verify, "may_round", lambda receipt, found: True)
    monkeypatch.setattr(verify, "outcome_differences", lambda old, new: [verify.Difference("x", "outcome", "1", "2")])
    monkeypatch.chdir(folder)
    found = verified(Path())
    assert asked == [folder.parent.resolve()]
    keep(Path(), found)
    assert (folder / "verified.jsonl").is_file() and not list(folder.glob(".*"))


def label(rows: list[list[str]]) -> None:
    other = next(row[-1] for row in rows[2:] if row[-1] != rows[1][-1])
    rows[1][-1] = other


def line_ends(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))


@pytest.mark.parametrize(
    ("about", "edit"),
    [
        ("labels", label),
        ("rows", lambda rows: rows.pop()),
        ("row order", lambda rows: rows[1:].sort() or rows.__setitem__(slice(1, None), rows[:0:-1])),
        ("texts", lambda rows: rows[1].__setitem__(0, rows[1][0] + "!")),
    ],
)
def test_what_changed_in_the_data_is_named(about: str, edit: Callable[[Any], Any], open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder, path = run(session), session.dataset.task.data
    rewrite(path, edit)
    found = verified(folder)
    assert (found.verdict, found.executed) == (DIFFERENT, False)
    assert named(found) == {("input", about), ("input", "data file of train")}


@pytest.mark.parametrize(("method", "cuts"), [("tfidf_svm", True), ("majority", False)])
def test_a_rule_that_cuts_the_words_of_these_texts_otherwise_is_named(
    method: str, cuts: bool, open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(open_tiny(), method)
    monkeypatch.setattr("graftwork.run.session.rule_of", lambda texts: 2)
    found = verified(folder)
    assert named(found) == ({("input", "word rule")} if cuts else set())
    assert found.verdict == (DIFFERENT if cuts else EQUAL)


def test_the_same_rows_in_other_bytes_are_said_and_no_fault(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder = run(session)
    line_ends(session.dataset.task.data)
    found = verified(folder)
    assert found.verdict == EQUAL and named(found) == {("surroundings", "data file of train")}


@pytest.mark.usefixtures("unhashed")
def test_the_same_rows_in_other_bytes_excuse_no_other_bits(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder = run(session)
    line_ends(session.dataset.task.data)
    reseal(folder, lambda content: content["outcome"]["predictions"].update(sha256="0" * 64))
    found = verified(folder)
    assert found.verdict == DIFFERENT
    assert named(found) == {("surroundings", "data file of train"), ("outcome", "predictions")}


@pytest.mark.parametrize(
    ("about", "edit"),
    [
        ("seed", lambda spec: spec.update(seed=1)),
        ("epochs", lambda spec: spec["recipe"].update(epochs=3)),
        ("learning_rate", lambda spec: spec["method"].update(learning_rate=0.5)),
        ("threads", lambda spec: spec["numerics"].update(threads=7)),
        ("precision", lambda spec: spec["numerics"].update(precision="bf16")),
        ("method version", lambda spec: spec["method"].update(version=9)),
        ("label map", lambda spec: spec["question"]["labels"].reverse()),
        ("backbone", lambda spec: spec.update(backbone="0" * 64)),
    ],
)
def test_what_changed_in_the_specification_is_named(about: str, edit: Callable[[Any], Any], lora: Path) -> None:
    change(lora / "spec.json", edit)
    found = verified(lora)
    assert (found.verdict, found.executed) == (DIFFERENT, False)
    assert ("record", about) in named(found)
    assert {name for _, name in named(found)} <= {about}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def answer(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    line = json.loads(lines[0])
    line["prediction"] = line["target"] + "x"
    path.write_text("\n".join([json.dumps(line), *lines[1:]]) + "\n", encoding="utf-8")


def loss(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace('"step": 0, "loss": ', '"step": 0, "loss": 9'), "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("about", "name", "edit"),
    [
        ("predictions", "predictions.jsonl", answer),
        ("delta", "module/delta.safetensors", flip),
        ("log", "log.jsonl", loss),
        ("module", "module/module.json",
         lambda path: change(path, lambda content: content["task"]["labels"].reverse())),
        ("self-test", "module/selftest.json",
         lambda path: change(path, lambda content: content["logits"][0].reverse())),
        ("facts", "result.json", lambda path: change(path, lambda content: content["facts"].update(steps=1))),
        ("wall time", "result.json",
         lambda path: change(path, lambda content: content["spent"].update(wall_seconds=1.0))),
        ("scores", "result.json", lambda path: change(path, lambda content: content["scores"].update(accuracy=0.99))),
        ("price tag", "result.json",
         lambda path: change(path, lambda content: content["costs"]["train_seconds"].update(value=0.1))),
        ("receipt", "receipt.json", lambda path: change(path, lambda content: content["timeline"].update(resumes=3))),
    ],
)  # fmt: skip
def test_what_changed_in_the_record_is_named_and_the_run_repeats(
    about: str, name: str, edit: Callable[[Path], None], lora: Path
) -> None:
    edit(lora / name)
    found = verified(lora)
    assert (found.verdict, found.executed) == (DIFFERENT, True)
    assert named(found) == {("record", about)}


def test_torn_predictions_are_named_and_not_compared(open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    path = folder / "predictions.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    found = verified(folder)
    assert (found.verdict, found.executed, found.predictions) == (DIFFERENT, True, {})
    assert named(found) == {("record", "predictions")}


@pytest.mark.parametrize("edit", [lambda content: content.pop("scores"), lambda content: content.update(spent=None)])
def test_a_result_that_lacks_a_part_is_named(edit: Callable[[Any], Any], open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    change(folder / "result.json", edit)
    with pytest.raises(StorageError, match=r"result\.json: not the result of a run"):
        verified(folder)


def test_a_receipt_from_before_a_field_is_read_as_ever(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), "tfidf_svm")
    reseal(folder, lambda content: content["outcome"]["weights"].pop("files"))
    reseal(folder, lambda content: content["outcome"].pop("facts"))
    assert verified(folder).verdict == EQUAL
    reseal(folder, lambda content: content["outcome"]["weights"].update(files={"module.json": 1}))
    with pytest.raises(StorageError, match=r"outcome\.weights\.files is not what it should be"):
        verified(folder)


@pytest.mark.slow
def test_a_wrong_score_that_stands_everywhere_is_found_by_executing(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), "lora")
    change(folder / "result.json", lambda content: content["scores"].update(accuracy=0.125))
    reseal(folder, lambda content: content["outcome"]["scores"].update(accuracy=0.125))
    found = verified(folder)
    assert found.verdict == DIFFERENT and named(found) == {("outcome", "scores")}


def test_the_seeds_of_other_purposes_belong_to_the_seed(open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    reseal(folder, lambda content: content["randomness"]["derived"].update(order=5))
    assert named(verified(folder)) == {("record", "seed")}


@pytest.mark.parametrize(
    ("about", "edit"),
    [
        ("library version", lambda content: content["code"]["distributions"].update(torch="1.0")),
        ("processor", lambda content: content["numerics"].update(processor="another")),
        ("code", lambda content: content["code"].update(source_sha256="0" * 64)),
        ("environment variable", lambda content: content["numerics"]["variables"].update(MKL_CBWR="AVX2")),
    ],
)
def test_what_is_other_around_the_run_is_named_and_the_bits_decide(
    about: str, edit: Callable[[Any], Any], open_tiny: OpenSession
) -> None:
    folder = run(open_tiny())
    reseal(folder, edit)
    found = verified(folder)
    assert found.verdict == EQUAL and named(found) == {("surroundings", about)}


def test_a_variable_that_picks_the_routines_is_recorded(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    folder = run(open_tiny())
    monkeypatch.delenv("MKL_CBWR")
    (told,) = verified(folder).differences
    assert (told.about, told.recorded, told.found) == ("environment variable", "MKL_CBWR=COMPATIBLE", "no MKL_CBWR")
    assert set(DECIDING) <= set(VARIABLES)


def on_a_gpu(content: dict[str, Any]) -> None:
    """What a receipt of before says where other runs of the process used a GPU."""
    content["numerics"].update(device="cuda", accelerator="a GPU", cuda="12.8", cudnn=91002)


@pytest.mark.usefixtures("unhashed")
def test_a_run_without_a_backbone_is_one_of_the_processor_beside_a_gpu(
    open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_tiny()
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
        patched.setattr(torch.cuda, "is_initialized", lambda: True)
        patched.setattr(torch.cuda, "max_memory_allocated", lambda: 0)
        patched.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
        folder = run(replace(session, numerics={**session.numerics, "device": "cuda"}), "tfidf_svm")
    numerics = read_json(folder / "receipt.json")["numerics"]
    assert (numerics["device"], numerics["accelerator"], numerics["cuda"]) == ("cpu", None, None)
    assert (found := verified(folder)).verdict == EQUAL and not found.differences
    reseal(folder, on_a_gpu)
    assert (found := verified(folder)).verdict == EQUAL and not found.differences
    assert "a GPU" not in paragraph(RunGroup([read_json(folder / "receipt.json")]))
    reseal(folder, lambda content: content["outcome"]["weights"].update(sha256="0" * 64))
    assert verified(folder).verdict == DIFFERENT, "nothing that it used may round"


def test_a_run_that_fails_elsewhere_in_the_same_way_is_true(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), "adapter:learning_rate=1e30", recipe=Recipe(epochs=2, batch_size=8))
    reseal(folder, lambda content: content["outcome"]["log"]["first_losses"].__setitem__(0, 0.5))
    assert verified(folder).verdict == DIFFERENT
    reseal(folder, lambda content: content["numerics"].update(processor="another"))
    found = verified(folder)
    assert (found.verdict, found.band) == (IN_TOLERANCE, None)
    assert verdict_lines(found)[-1] == "verdict      within the tolerance: it failed again in the same way"
    change(folder / "result.json", lambda content: content.update(failure="MemoryError", status="out_of_memory"))
    reseal(folder, lambda content: content["outcome"].update(status="out_of_memory"))
    reseal(folder, lambda content: content["outcome"]["failure"].update({"class": "MemoryError"}))
    found = verified(folder)
    assert found.verdict == DIFFERENT and ("outcome", "failure") in named(found)


def elsewhere(content: dict[str, Any]) -> None:
    """The receipt of a run on another processor, which rounds otherwise."""
    content["numerics"]["processor"] = "another"
    content["outcome"]["predictions"]["sha256"] = "0" * 64
    content["outcome"]["weights"]["sha256"] = "0" * 64


def forged(folder: Path, score: float) -> None:
    """A run with that score, made on another processor."""
    change(folder / "result.json", lambda content: content["scores"].update(accuracy=score))
    reseal(folder, lambda content: content["outcome"]["scores"].update(accuracy=score))


@pytest.fixture
def unhashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a run are what its receipt says, whatever they are."""
    from graftwork.receipts import file_integrity

    monkeypatch.setattr(file_integrity, "_file", lambda path, about, sha: ())


@pytest.mark.slow
@pytest.mark.usefixtures("unhashed")
def test_other_bits_on_another_processor_are_held_against_the_other_seeds(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folders = [run(session, "lora", seed) for seed in range(5)]
    true = read_json(folders[0] / "result.json")["scores"]["accuracy"]
    reseal(folders[0], elsewhere)
    found = verified(folders[0])
    assert found.band is not None and found.band.runs == 5
    assert found.band.low <= found.score["found"] <= found.band.high
    assert found.verdict == IN_BAND and ("outcome", "predictions") in named(found)
    for place, folder in enumerate(folders):
        forged(folder, true + 0.5 + 0.001 * place)
    assert verified(folders[0]).verdict == DIFFERENT


@pytest.mark.usefixtures("unhashed")
def test_one_score_of_a_row_that_is_false_is_found_by_the_others(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folders = [run(session, seed=seed) for seed in range(5)]
    true = read_json(folders[0] / "result.json")["scores"]["accuracy"]
    for place, folder in enumerate(folders):
        forged(folder, true + 0.001 * place)
    reseal(folders[0], elsewhere)
    assert verified(folders[0]).verdict == IN_BAND
    forged(folders[0], true + 0.1)
    found = verified(folders[0])
    assert found.verdict == DIFFERENT and found.band is not None and not found.band.holds(true + 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("unhashed")
def test_with_few_seeds_no_band_is_known(open_tiny: OpenSession) -> None:
    folder = run(open_tiny(), "lora")
    reseal(folder, elsewhere)
    found = verified(folder)
    assert (found.verdict, found.band and found.band.runs) == (IN_TOLERANCE, 0)
    forged(folder, found.score["found"] - 0.02)
    assert verified(folder).verdict == DIFFERENT


@pytest.mark.usefixtures("unhashed")
def test_other_bits_where_nothing_else_is_other_are_no_rounding(lora: Path) -> None:
    reseal(lora, elsewhere)
    reseal(lora, lambda content: content["numerics"].update(processor=verify.environment()["processor"]))
    found = verified(lora)
    assert found.verdict == DIFFERENT and {group for group, _ in named(found)} == {"outcome"}


def test_threads_that_are_not_there_are_said_and_run(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder = run(replace(session, numerics={**session.numerics, "threads": 64}))
    found = verified(folder)
    assert found.verdict == EQUAL and named(found) == {("surroundings", "threads")}
    assert "64" in found.differences[0].recorded


def test_another_engine_is_named(open_tiny: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run(open_tiny())
    monkeypatch.setattr(verify, "ENGINE", 99)
    assert named(verified(folder)) == {("input", "engine")}


def test_data_that_is_gone_is_missed_with_its_hash_and_found_where_it_was_moved(open_tiny: OpenSession) -> None:
    session = open_tiny()
    folder, path = run(session), session.dataset.task.data
    moved = path.rename(path.with_name("moved.csv"))
    with pytest.raises(StorageError, match="the train data of this run is missing") as caught:
        verified(folder)
    assert read_json(folder / "receipt.json")["data"]["files"]["train"]["sha256"] in str(caught.value)
    assert verified(folder, MovedInputs(data=str(moved))).verdict == EQUAL


def test_a_receipt_that_is_missing_or_not_whole_is_an_error(open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    change(folder / "receipt.json", lambda content: content["data"].pop("digest"))
    with pytest.raises(StorageError, match="incomplete") as caught:
        verified(folder)
    assert "data.digest is missing" in str(caught.value)
    (folder / "receipt.json").unlink()
    with pytest.raises(StorageError, match="made by an older version"):
        verified(folder)
    change(folder / "spec.json", lambda content: content["question"].update(kind="pretraining"))
    with pytest.raises(ConfigError, match="pre-training"):
        verified(folder)


def test_a_verdict_is_kept_beside_the_run_which_stays_as_old(open_tiny: OpenSession) -> None:
    folder = run(open_tiny())
    age = folder.stat().st_mtime_ns
    for _ in range(2):
        keep(folder, verified(folder))
    lines = [json.loads(line) for line in (folder / "verified.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["verdict"] for line in lines] == [EQUAL, EQUAL] and lines[0]["processor"]
    assert folder.stat().st_mtime_ns == age
    found = verified(folder)
    assert found.verdict == EQUAL
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: keep(folder, found), range(24)))
    assert len((folder / "verified.jsonl").read_text(encoding="utf-8").splitlines()) == 26
    assert folder.stat().st_mtime_ns == age and not list(folder.parent.glob("*.lock"))


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that were asked of the hub; it has none of them."""
    asked: list[str] = []

    def fetch(name: str, *rest: Any, local_files_only: bool = False, **named: Any) -> Any:
        asked.extend([] if local_files_only else [name])
        raise OSError("not here")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets, "load_dataset", fetch)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    return asked


def test_a_name_in_a_receipt_starts_no_download(open_tiny: OpenSession, fetched: list[str]) -> None:
    folder = run(open_tiny(), "linear_probe")
    reseal(folder, lambda content: content["rerun"].update(backbone="hf:somebody/network"))
    with pytest.raises(StorageError, match="starts no download"):
        verified(folder)
    reseal(folder, lambda content: content["data"]["files"]["train"].update(sha256=None))
    reseal(folder, lambda content: content["rerun"]["task"].update(data="hub:somebody/set"))
    with pytest.raises(StorageError, match=r"starts no download[\s\S]*graft data hub:somebody/set"):
        verified(folder)
    assert fetched == []
    with pytest.raises(StorageError, match="cannot be loaded"):
        verified(folder, MovedInputs(data="hub:somebody/set"))
    assert fetched == ["somebody/set"]
