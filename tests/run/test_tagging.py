"""Tagging from a file to a task module's answers, by every sort of method, and what no method may get wrong."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.budget import climber
from graftwork.budget.ladder import climb
from graftwork.compare.leaderboard import compare
from graftwork.core.configured_methods import parse_method
from graftwork.core.ragged import Ragged
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.module.predict_file import answer_file
from graftwork.module.predict_many import predict_many
from graftwork.module.task_module import TaskModule
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits
from graftwork.run.train import train
from graftwork.testing import tiny_dataset

METHODS = ("majority", "most_frequent_tag", "perceptron_tagger", "linear_probe", "top_layers:k=1", "adapter", "ulmfit")


def write(folder: Path, rows: int = 60, more: str = "") -> Path:
    """The toy sentences as a CoNLL file, every seventh with `more` words behind it, tagged O."""
    data = tiny_dataset("tagging", rows=rows)
    path = folder / "toy.conll"
    sentences = [
        "".join(f"{word}\t{tag}\n" for word, tag in zip(example.inputs["words"], example.target, strict=True))
        + f"{number}\tO\n"  # a number of its own makes every sentence another one
        + "".join(f"{word}\tO\n" for word in more.split(" ") if word and number % 7 == 0)
        for number, example in enumerate(example for split in data.splits.values() for example in split.examples)
    ]
    path.write_text("\n".join(sentences))
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Session]:
    """Opens a session, the same every time."""

    @functools.cache
    def open_once() -> Session:
        return open_in(tmp_path_factory.mktemp("tagging"))

    return open_once


@pytest.fixture
def session(opened: Callable[[], Session]) -> Session:
    """A run may be there already, and nobody changes one."""
    return opened()


def open_in(folder: Path) -> Session:
    return open_session(Task.from_file(write(folder), kind="tagging"), [parse_method("lora")], setup_in(folder))


def setup_in(folder: Path) -> RunSettings:
    return RunSettings("tiny_text", runs=str(folder / "runs"), precision="fp32")


def run(session: Session, method: str, epochs: int = 1) -> tuple[Any, Path]:
    result, _ = execute(session, parse_method(method), Recipe(epochs=epochs), 0, lambda done, text: None)
    assert result.status == "ok", result.error
    return result, session.store.root / result.id


@pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=pytest.mark.slow if m in ("majority", "top_layers:k=1", "ulmfit") else ()) for m in METHODS],
)
def test_every_method_leaves_a_module_that_tags(session: Session, method: str) -> None:
    result, folder = run(session, method)
    assert list(result.scores) == ["entity_f1", "conll_f1", "accuracy"]
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    test = [line for line in lines if line["split"] == "test"]
    logits = read_logits(folder, "test")
    assert isinstance(logits, Ragged)
    assert [len(line["target"]) for line in test] == logits.counts.tolist()
    assert all(set(span) >= {"label", "start", "end"} for line in test for span in line["prediction"])
    module = TaskModule.load(folder)
    assert module.roles == ("words",)
    words = session.dataset.test.examples[0].inputs["words"]
    answers = module.predict([words, " ".join(words), {"words": words}])
    assert answers[0] == answers[1] == answers[2] == {"spans": test[0]["prediction"]}


@pytest.mark.slow
def test_the_toy_task_is_learnt(session: Session) -> None:
    """Words of two classes begin with the same token, and the network is a random one: it can't get all right."""
    scores = {name: run(session, name, epochs=12)[0].scores for name in ("majority", "full", "adapter", "linear_probe")}
    assert scores["majority"]["entity_f1"] == 0
    for name in ("full", "adapter", "linear_probe"):
        assert scores[name]["entity_f1"] > 0.5 and scores[name]["accuracy"] > scores["majority"]["accuracy"] + 0.1


@pytest.mark.slow
def test_compare_makes_a_board(tmp_path: Path) -> None:
    board = compare(
        Task.from_file(write(tmp_path), kind="tagging"),
        backbone="tiny_text",
        methods=["majority", "perceptron_tagger", "top_layers:k=1"],
        seeds=2,
        epochs=1,
        out=tmp_path / "board",
        runs=tmp_path / "runs",
    )
    assert {row["status"] for row in board.rows} == {"ok"}
    assert board.content["headline_metric"] == "entity_f1"
    low, high = (board.rows[0]["scores"]["accuracy"][key] for key in ("low", "high"))
    assert 0 < low <= high <= 1
    assert "mended" in board.content["data_report"]


@pytest.mark.slow
def test_a_ladder_of_taggers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climber, "MOST_SEEDS", 1)
    task = Task.from_file(write(tmp_path), kind="tagging")
    ladder = climb(task, "1h", backbone="tiny_text", epochs=1, out=tmp_path / "ladder", runs=tmp_path / "runs")
    tried = {rung["method"]: rung["decision"] for rung in ladder.content["rungs"]}
    simple = list(tried)[:2]  # both take milliseconds, and the one that is measured as faster comes first
    assert set(simple) == {"majority", "most_frequent_tag"} and "tfidf_svm" not in tried
    assert tried[simple[0]] == "best so far" and tried["most_frequent_tag"] == "best so far"
    assert ladder.content["chosen"]["method"] == "perceptron_tagger"
    assert [note.split()[0] for note in ladder.content["notes"]] == ["top_layers", "top_layers:k=3"]


def test_words_that_are_not_seen_are_answered_and_counted(tmp_path: Path) -> None:
    task = Task.from_file(write(tmp_path, more="\u200b"), kind="tagging")
    session = open_session(task, [parse_method("lora")], setup_in(tmp_path))
    report = session.dataset.report
    assert report["unseen_words"]["test"] > 0
    assert any("Words without a token, which tiny_text can't read" in warning for warning in report["warnings"])
    for method in ("lora", "linear_probe"):
        result, folder = run(session, method)
        assert result.facts["words"]["unseen"] == report["unseen_words"]["train"]
        logits, unseen = read_logits(folder, "test"), 0
        assert isinstance(logits, Ragged) and logits.counts.tolist() == session.dataset.test.targets.counts.tolist()
        for rows, example in zip(logits, session.dataset.test.examples, strict=True):
            if example.inputs["words"][-1] == "\u200b":
                unseen += 1
                assert np.array_equal(rows[-1], result.facts["blind"])
                assert session.dataset.task.labels[rows[-1].argmax()] == "O"
        assert unseen == report["unseen_words"]["test"]
        TaskModule.load(folder)


@pytest.mark.parametrize(
    "method", ["lora", *(pytest.param(name, marks=pytest.mark.slow) for name in ("linear_probe", "top_layers:k=1"))]
)
def test_sentences_longer_than_the_backbone_takes(tmp_path: Path, method: str) -> None:
    task = Task.from_file(write(tmp_path, more="the " * 70), kind="tagging")
    session = open_session(task, [parse_method("lora")], setup_in(tmp_path))
    report = session.dataset.report
    assert not any(report["cut"].values()) and not any(report["unseen_words"].values())
    _, folder = run(session, method)
    module, longest = TaskModule.load(folder), max(session.dataset.test.examples, key=lambda e: len(e.inputs["words"]))
    alone, together = (module.fitted.logits(asked) for asked in ([longest], session.dataset.test.examples))
    assert isinstance(alone, Ragged) and isinstance(together, Ragged) and len(longest.inputs["words"]) > 70
    assert len(np.unique(alone.flat[-60:], axis=0)) > 20, "every word has logits of its own"
    assert np.allclose(alone.flat, together[[session.dataset.test.examples.index(longest)]].flat, atol=1e-4)


def test_convex_fits_on_a_sample_of_many_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_in(tmp_path)
    monkeypatch.setattr("graftwork.core.backbone.WORDS_KEPT", 40)
    for method in ("lora", "linear_probe"):
        result, _ = run(session, method)
        words = result.facts["words"]
        assert 20 <= words["in_convex_fits"] <= 70 < words["of_train"] / 5


def test_a_text_beside_its_words(session: Session) -> None:
    _, folder = run(session, "perceptron_tagger")
    module = TaskModule.load(folder)
    text = "So  good the fine was bad"
    (answer,) = module.predict([text])
    found = [(span["label"], text[span["start"] : span["end"]]) for span in answer["spans"]]
    assert found == [("good", "good"), ("good", "fine"), ("bad", "bad")]
    assert all(span["text"] == text[span["start"] : span["end"]] for span in answer["spans"])
    with pytest.raises(ConfigError, match="empty"):
        module.predict(["  "])
    with pytest.raises(ConfigError, match="an empty word"):
        module.predict([("a", "")])
    with pytest.raises(ConfigError, match="wrong inputs"):
        module.predict([{"tokens": ("a",)}])


def test_modules_over_the_same_words_share_a_pass(session: Session) -> None:
    modules = [TaskModule.load(run(session, method)[1]) for method in ("top_layers:k=1", "linear_probe")]
    texts = [example.inputs["words"] for example in session.dataset.test.examples]
    assert predict_many(modules, texts) == [module.predict(texts) for module in modules]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.conll", "so O\ngood O\n\nbad O\n"),
        ("in.conll", "so\ngood\n\nbad\n"),
        ("in.jsonl", '{"tokens": ["so", "good"]}\n{"tokens": ["bad"]}\n'),
        ("in.jsonl", '{"text": "so good"}\n{"text": "bad"}\n'),
        ("in.csv", "text\nso good\nbad\n"),
    ],
)
def test_files_of_words_and_of_texts(session: Session, tmp_path: Path, name: str, content: str) -> None:
    module = TaskModule.load(run(session, "perceptron_tagger")[1])
    (tmp_path / name).write_text(content)
    lines: list[str] = []
    answer_file([module], tmp_path / name, None, lines.append)
    spans = [[(span["label"], span["start"], span["end"]) for span in json.loads(line)["spans"]] for line in lines]
    assert spans == [[("good", 3, 7)], [("bad", 0, 3)]]
    assert json.loads(lines[0]).get("text", "so good") == "so good"
    answer_file([module], tmp_path / name, tmp_path / "out.csv", lines.append)
    assert '""label"": ""good""' in (tmp_path / "out.csv").read_text()


def test_train_on_parts_of_speech(tmp_path: Path) -> None:
    path = tmp_path / "pos.conllu"
    word = "{}\t{}\t_\t{}" + "\t_" * 6 + "\n"
    path.write_text(
        "".join(
            word.format(1, "the", "DET")
            + word.format(2, f"n{i % 7}", ("NOUN", "VERB")[i % 7 % 2])
            + word.format(3, str(i), "DET")  # every sentence is another one
            + "\n"
            for i in range(30)
        )
    )
    done = train(Task.from_file(path, kind="tagging"), method="most_frequent_tag", runs=tmp_path / "runs")
    assert done.result.scores == {"accuracy": 1.0}
    assert done.module.predict([("the", "n1")])[0]["tags"] == ["DET", "VERB"]
