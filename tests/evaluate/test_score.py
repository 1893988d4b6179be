"""A module on another labelled file: what it scores, what is set beside it, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftwork as gw
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError, GraftworkError
from graftwork.evaluate import score as scoring
from graftwork.evaluate.score import score, scores_on, verdict
from graftwork.io.files import read_json, write_json
from graftwork.module import predict_many, trained_on
from graftwork.module.predict_file import answer_file
from graftwork.module.task_module import TaskModule
from graftwork.module.trained_on import Overlap

Train = Callable[..., TaskModule]
TOPICS = {"delivery": "where is my parcel", "billing": "refund the invoice", "technical": "the app has crashed"}


def tickets(count: int, what: str = "number") -> list[tuple[str, str]]:
    topics = list(TOPICS.items())
    return [(f"{topics[i % 3][1]} {what} {i}", topics[i % 3][0]) for i in range(count)]


def table(path: Path, rows: Sequence[tuple[str, ...]], header: tuple[str, ...] = ("text", "label")) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), encoding="utf-8")
    return path


def lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def trained(folder: Path, data: Path, method: str = "majority", **settings: Any) -> TaskModule:
    task = Task.from_file(data, **settings)
    return gw.train(task, method=method, backbone="tiny_text", epochs=1, runs=folder / "runs").module


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TaskModule]:
    """Modules over the same forty-five tickets."""
    folder = tmp_path_factory.mktemp("scoring")
    data = table(folder / "tickets.tsv", tickets(45))
    return {method: trained(folder, data, method) for method in ("linear_probe", "tfidf_svm", "majority")}


def test_scores_are_those_of_the_answers(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    module = shelf["linear_probe"]
    rows = [*tickets(40, "order"), ("where is my refund", "technical"), ("the parcel", "billing")]
    found = score(module, table(tmp_path / "new.tsv", rows))
    answers = [answer["label"] for answer in module.predict([text for text, _ in rows])]
    right = [answer == label for answer, (_, label) in zip(answers, rows, strict=True)]
    told = found["scores"]["accuracy"]
    assert told["score"] == pytest.approx(np.mean(right)) and told["low"] < told["score"] <= told["high"]
    assert set(found["scores"]) == {"accuracy", "macro_f1"} == set(found["majority"])
    assert found["majority"]["accuracy"] == pytest.approx(14 / 42)  # of this file, not of the training data
    assert found["own_test"] == module.description["scores"] and found["rows"]["scored"] == 42
    assert json.loads(json.dumps(found)) == found


def test_windows_change_nothing(shelf: dict[str, TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table(tmp_path / "new.tsv", [*tickets(30, "order"), *tickets(6)])
    whole = [score(module, file) for module in shelf.values()]
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(trained_on, "AT_ONCE", 5)
    assert [score(module, file) for module in shelf.values()] == whole


def test_others_are_compared_on_the_same_rows(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    file = table(tmp_path / "new.tsv", tickets(60, "order"))
    found = score(shelf["tfidf_svm"], file, also=[shelf["majority"], shelf["tfidf_svm"].folder])
    worse, same = found["also"]
    gain = worse["gain"]["accuracy"]
    assert gain["verdict"] == "worse" and gain["high"] < 0 and gain["differing"] == 40
    assert gain["delta"] == pytest.approx(worse["scores"]["accuracy"]["score"] - found["scores"]["accuracy"]["score"])
    assert same["gain"]["accuracy"] == {"delta": 0, "low": 0, "high": 0, "differing": 0, "verdict": "cannot tell"}
    few = score(shelf["majority"], table(tmp_path / "few.tsv", tickets(5, "order")), also=[shelf["tfidf_svm"]])
    assert few["also"][0]["gain"]["accuracy"]["delta"] > 0.5
    assert few["also"][0]["gain"]["accuracy"]["verdict"] == "cannot tell", "five rows show nothing"


def test_a_verdict_needs_rows_that_differ() -> None:
    assert [verdict(0.1, 0.3, 6), verdict(-0.3, -0.1, 6)] == ["better", "worse"]
    assert [verdict(0.1, 0.3, 5), verdict(0.0, 0.3, 9)] == ["cannot tell"] * 2


def test_a_row_that_is_answered_alike_does_not_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of forty change the ranks and the mean that all of them are scored by."""
    data, settings = every_kind(tmp_path, "regression")
    modules = [trained(tmp_path, data, method, **settings) for method in ("majority", "tfidf_svm")]
    answers = np.arange(40, dtype=np.float64)[:, None] % 5 + 0.001 * np.arange(40)[:, None]
    other = answers.copy()
    other[:3] += 40.0
    windows = predict_many.logit_windows

    def answered(*given: Any) -> Any:
        for window, logits, longer in windows(*given):
            yield window, [answers, other][: len(logits)], longer

    monkeypatch.setattr(scoring, "logit_windows", answered)
    gain = score(modules[0], data, also=[modules[1]])["also"][0]["gain"]
    assert {name: one["differing"] for name, one in gain.items()} == {"pearson": 3, "spearman": 3}
    assert {one["verdict"] for one in gain.values()} == {"cannot tell"}


def test_labels_in_another_order_are_the_same_labels(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    data = table(tmp_path / "t.tsv", tickets(45))
    turned = trained(tmp_path, data, "tfidf_svm", labels=("technical", "delivery", "billing"))
    found = score(shelf["tfidf_svm"], table(tmp_path / "new.tsv", tickets(30, "order")), also=[turned])
    gains = found["also"][0]["gain"]
    assert {name: gain["differing"] for name, gain in gains.items()} == {"accuracy": 0, "macro_f1": 0}


def test_rows_that_were_learnt_are_counted(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    module = shelf["majority"]
    recorded = module.description["data"]
    nearly = [("where is my parcel where is my parcel number 0!", "delivery")]
    file = table(tmp_path / "again.tsv", [*tickets(45), *nearly, ("something else", "billing")])
    seen = score(module, file)["seen"]
    assert seen["train"]["exact"] == recorded["rows"]["train"]
    assert seen["validation"]["exact"] == recorded["rows"]["validation"]
    assert seen["rows"] == sum(sum(seen[split].values()) for split in ("train", "validation"))
    assert score(module, table(tmp_path / "new.tsv", [("something else", "billing")]))["seen"]["rows"] == 0


def test_what_can_not_be_told_is_said(tmp_path: Path) -> None:
    data = table(tmp_path / "t.tsv", tickets(45))
    module = trained(tmp_path, data)
    new = table(tmp_path / "new.tsv", tickets(6))
    data.unlink()
    assert "can't be read" in score(module, new)["seen"]["unreachable"]
    table(data, tickets(44))
    assert "has changed" in score(module, new)["seen"]["unreachable"]
    described = read_json(module.folder / "module.json")
    write_json(module.folder / "module.json", {k: v for k, v in described.items() if k != "data"} | {"scores": {}})
    found = score(module.folder, new)
    assert found["seen"]["rows"] is None and found["own_test"] is None


def test_rows_near_to_those_learnt_are_told_apart(tmp_path: Path) -> None:
    text = "my parcel has not come and nobody at the office knows where in the world it may be now"
    rows = [(f"{text} {i} {i * 7}" if i % 2 else f"other words {i}", "ab"[i % 2]) for i in range(40)]
    data = table(tmp_path / "t.tsv", rows)
    overlap = Overlap(trained(tmp_path, data))
    overlap.count([gw.TaskModule.load(next((tmp_path / "runs").iterdir())).examples([f"{text} 1 8"])[0]])
    told = overlap.as_json()
    assert told["rows"] == 1 and told["train"] == {"exact": 0, "near": 1}


UNKNOWN = [("a b", "delivery"), ("c", "lost"), ("d", "deliverys"), ("e", "lost")]


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        (UNKNOWN, ("text", "label"), ["labels that the module was not trained on", "new.tsv:3", "'lost' in 2 rows",
                                      "'deliverys' in 1 row", "billing, delivery, technical"]),
        ([("a", "delivery")], ("text", "lable"), ["no column 'label'", "--label lable"]),
        ([("a", "delivery"), ("b", "")], ("text", "label"), ["new.tsv:3", "the label is empty"]),
        ([("a", "delivery"), (" ", "billing")], ("text", "label"), ["new.tsv:3", "the text is empty"]),
        ([], ("text", "label"), ["a header and no rows"]),
    ],
)  # fmt: skip
def test_bad_files_are_refused(
    shelf: dict[str, TaskModule], tmp_path: Path, rows: list[tuple[str, ...]], header: tuple[str, str], words: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        score(shelf["majority"], table(tmp_path / "new.tsv", rows, header))
    assert all(word in caught.value.message for word in words), caught.value.message


def test_an_empty_file_and_a_file_of_other_inputs(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(DataError, match="the file is empty"):
        score(shelf["majority"], empty)
    pairs = table(tmp_path / "pairs.tsv", [("a", "b", "delivery")], ("text_a", "text_b", "label"))
    with pytest.raises(ConfigError, match="the module reads text"):
        score(shelf["majority"], pairs)
    for named in ({"text_a": "text_a"}, {"count_from": "1"}, {"realign": True}):
        with pytest.raises(ConfigError):
            score(shelf["majority"], pairs, columns=named)


def test_texts_beside_spans_are_scored_and_answered(tmp_path: Path) -> None:
    """By the label that the module was trained on, or that is named: spans are not what it reads."""
    rows = [{"text": text, "category": topic, "entities": [[0, 2, "X"]]} for text, topic in tickets(45)]
    data = lines(tmp_path / "t.jsonl", rows)
    module = trained(tmp_path, data, label="category")
    assert score(module, data)["rows"]["scored"] == 45
    other = lines(
        tmp_path / "o.jsonl", [{"text": r["text"], "gold": r["category"], "entities": r["entities"]} for r in rows]
    )
    assert score(module, other, columns={"label": "gold"})["rows"]["scored"] == 45
    with pytest.raises(DataError, match="no column 'label'") as caught:
        score(module, other)
    assert "text, gold, entities" in caught.value.got
    spans = lines(tmp_path / "s.jsonl", [{"text": r["text"], "label": r["entities"]} for r in rows])
    with pytest.raises(GraftworkError, match="made of the spans in 'label'"):
        score(module, spans)
    assert answer_file([module], other, tmp_path / "answers.tsv", print).rows == 45


def test_columns_are_called_as_in_training_unless_they_are_named(tmp_path: Path) -> None:
    data = table(tmp_path / "t.tsv", tickets(45), ("said", "topic"))
    module = trained(tmp_path, data, text="said", label="topic")
    assert score(module, data)["rows"]["scored"] == 45
    assert score(module, table(tmp_path / "usual.tsv", tickets(6)))["rows"]["scored"] == 6
    other = table(tmp_path / "other.tsv", tickets(6), ("body", "gold"))
    assert score(module, other, columns={"text": "body", "label": "gold"})["rows"]["scored"] == 6


def test_a_column_for_each_label_is_found_as_in_training(tmp_path: Path) -> None:
    rows = [(f"text {i}", "note", str(i % 2), str(int(i % 3 == 0))) for i in range(45)]
    data = table(tmp_path / "t.tsv", rows, ("said", "more", "late", "lost"))
    task_file = tmp_path / "t.toml"
    task_file.write_text('data = "t.tsv"\nkind = "multilabel"\ntext = "said"\nlabel = ["late", "lost"]\n')
    module = trained(tmp_path, task_file)
    assert module.task.labels == ("late", "lost")
    found = score(module, data)
    assert (found["rows"]["scored"], found["seen"]["train"]["exact"]) == (
        45,
        module.description["data"]["rows"]["train"],
    )
    lists = [{"text": text, "label": "late" if late == "1" else ""} for text, _, late, _ in rows]
    assert score(module, lines(tmp_path / "t.jsonl", lists))["rows"]["scored"] == 45


def test_bad_rows_are_set_aside_and_the_rest_is_scored(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    file = table(tmp_path / "new.tsv", [*tickets(6), (" ", "billing")])
    found = score(shelf["majority"], file, rejects=tmp_path / "bad.jsonl")
    assert found["rows"] == {"scored": 6, "rejected": 1, "cut": 0}
    assert json.loads((tmp_path / "bad.jsonl").read_text())["line"] == 8
    with pytest.raises(DataError, match="was not trained on"):  # it can be read: leaving it out would flatter the score
        score(shelf["majority"], table(file, UNKNOWN), rejects=tmp_path / "bad.jsonl")
    with pytest.raises(ConfigError, match="written over"):
        score(shelf["majority"], file, rejects=file)


def test_modules_of_other_questions_are_refused(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    two = [row for row in tickets(60) if row[1] != "technical"]
    other = trained(tmp_path, table(tmp_path / "two.tsv", two))
    with pytest.raises(ConfigError, match="different tasks") as caught:
        score(shelf["majority"], table(tmp_path / "new.tsv", tickets(6)), also=[other])
    assert "technical" in caught.value.got


def every_kind(folder: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    """Forty rows of a kind, and what its task is told."""
    named: dict[str, Any] = {"kind": kind}
    if kind == "pairs":
        pairs = [(f"call me {i}", f"{('call', 'write')[i % 2]} me {i}", ("same", "other")[i % 2]) for i in range(40)]
        return table(folder / "pairs.tsv", pairs, ("text_a", "text_b", "label")), {}
    if kind == "regression":
        return table(folder / "n.tsv", [(f"{'very ' * (i % 5)}good {i}", str(i % 5)) for i in range(40)]), named
    if kind == "multilabel":
        labels = [["late"] * (i % 2) + ["lost"] * (i % 3 > 0) for i in range(40)]
        return table(
            folder / "m.tsv", [(f"it is {' '.join(of)} {i}", "|".join(of)) for i, of in enumerate(labels)]
        ), named
    if kind == "tagging":
        words = [{"tokens": ["my", f"parcel{i}", "is", "late"], "tags": ["O", "B-X", "O", "O"]} for i in range(40)]
        return lines(folder / "w.jsonl", words), named
    if kind == "span":
        said = [(f"It was found by Ann in {1900 + i}.", str(1900 + i)) for i in range(40)]
        asked = [
            {"context": text, "question": "When?", "answers": {"text": [year], "answer_start": [text.index(year)]}}
            for text, year in said
        ]
        return lines(folder / "q.jsonl", asked), named
    rows = [{"text": f"what now {i}", "choices": [f"{'ab'[i % 2]} {i}", f"{'ba'[i % 2]} {i}"]} for i in range(40)]
    marks = [[1 - i % 2, i % 2] if kind == "ranking" else str(i % 2) for i in range(40)]
    return lines(folder / "c.jsonl", [row | {"label": mark} for row, mark in zip(rows, marks, strict=True)]), named


@pytest.mark.parametrize(
    "kind",
    [
        *("pairs", "tagging", "choice"),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("regression", "multilabel", "span", "ranking")),
    ],
)
def test_every_kind(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On its own test split a module scores what its receipt says, by every metric."""
    data, settings = every_kind(tmp_path, kind)
    method = "linear_probe"
    run = gw.train(Task.from_file(data, **settings), method=method, backbone="tiny_text", runs=tmp_path / "runs")
    module = run.module
    seen = score(module, data)["seen"]
    assert seen["train"]["exact"] + seen["train"]["near"] >= module.description["data"]["rows"]["train"]
    rows = data.read_text(encoding="utf-8").splitlines()
    header = [] if data.suffix == ".jsonl" else rows[:1]
    tested = [json.loads(line) for line in (run.folder / "predictions.jsonl").read_text().splitlines()]
    numbers = [int(line["id"].rpartition("/")[2]) for line in tested if line["split"] == "test"]
    held = data.with_name(f"held{data.suffix}")
    held.write_text("\n".join([*header, *(rows[number - 1 + len(header)] for number in numbers)]), encoding="utf-8")
    found = score(module, held, also=[module])
    told = {name: one["score"] for name, one in found["scores"].items()}
    assert told == pytest.approx(run.result.scores) and found["own_test"] == run.result.scores
    assert scores_on(module, Task.from_file(held, **settings), held) == told
    assert found["majority"].keys() == told.keys() and found["also"][0]["gain"].keys() == told.keys()
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 3)
    parts = score(module, held)["scores"]  # other batches round otherwise
    assert {name: one["score"] for name, one in parts.items()} == pytest.approx(told)


def test_a_folder_of_images(tmp_path: Path) -> None:
    from PIL import Image

    for number in range(24):
        place = tmp_path / "pictures" / ("red", "blue")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        colour = (200, number * 5, 10) if number % 2 == 0 else (10, number * 5, 200)
        Image.new("RGB", (24, 24), colour).save(place / f"{number}.png")
    data = tmp_path / "pictures"
    module = gw.train(Task.from_file(data), method="colour_histogram", runs=tmp_path / "runs").module
    found = score(module, data)
    assert found["rows"]["scored"] == 24 and found["majority"]["accuracy"] == 0.5
    assert found["seen"]["train"]["exact"] == module.description["data"]["rows"]["train"]


@pytest.mark.parametrize("tags", ["O B E S", "O X-B X-I X-B", "o b_x i_x b_x"])
def test_tags_are_read_as_in_training(tmp_path: Path, tags: str) -> None:
    data = lines(tmp_path / "w.jsonl", [{"tokens": ["my", "a", "b", f"c{i}"], "tags": tags.split()} for i in range(40)])
    run = gw.train(Task.from_file(data, kind="tagging"), method="most_frequent_tag", runs=tmp_path / "runs")
    found = score(run.module, data)
    assert {name: one["score"] for name, one in found["scores"].items()} == run.result.scores
    assert list(run.result.scores) == ["entity_f1", "conll_f1", "accuracy"]


def test_tags_that_the_module_knows_are_names(tmp_path: Path) -> None:
    rows = [{"tokens": ["my", "a", f"c{i}"], "tags": ["O", "B", "IX"[i % 2]]} for i in range(40)]
    run = gw.train(
        Task.from_file(lines(tmp_path / "w.jsonl", rows), kind="tagging"),
        method="most_frequent_tag",
        runs=tmp_path / "runs",
    )
    assert run.module.task.labels == ("B", "I", "O", "X")
    assert score(run.module, lines(tmp_path / "some.jsonl", rows[:1] * 3))["scores"]["accuracy"]["score"] > 0.6


def test_a_dictionary_of_splits_is_refused(shelf: dict[str, TaskModule], tmp_path: Path) -> None:
    rows = {"text": ["a card"], "label": ["x"]}
    with pytest.raises(ConfigError, match=r"these are splits(?s:.*)data\['test'\]"):
        gw.score(next(iter(shelf.values())), {"train": rows, "test": rows})
