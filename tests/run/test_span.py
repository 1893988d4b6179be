"""Questions about passages from a file to a task module's answers, by every sort of method."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.budget.ladder import climb
from graftwork.compare.leaderboard import compare
from graftwork.core.configured_methods import parse_method
from graftwork.core.ragged import Ragged
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.module.predict_file import answer_file
from graftwork.module.predict_many import predict_many
from graftwork.module.task_module import TaskModule
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits
from graftwork.targets.passages import Passage, question_of
from graftwork.testing import tiny_dataset

METHODS = ("majority", "ngram_window", "abbreviation_rule", "linear_probe", "top_layers:k=1", "adapter", "bitfit")
METHODS += ("lora", "full", "ulmfit")
QUICK = ("majority", "ngram_window", "abbreviation_rule", "top_layers:k=1", "lora")


def write(folder: Path, rows: int = 60, unanswerable: bool = True, more: str = "") -> Path:
    """The toy questions as JSONL; every seventh passage has `more` behind it."""
    data = tiny_dataset("span", rows=rows)
    examples = [example for split in data.splits.values() for example in split.examples]
    lines = []
    for number, example in enumerate(examples):
        answers = [{"text": gold.text, "answer_start": gold.start} for gold in example.target]
        context = f"{example.source} {number}.{more if number % 7 == 0 else ''}"
        row = {"id": number, "context": context, "question": example.inputs["question"], "answers": answers}
        if answers or unanswerable:
            lines.append(json.dumps(row) + "\n")
    path = folder / "toy.jsonl"
    path.write_text("".join(lines))
    return path


def opened(path: Path, folder: Path) -> Session:
    setup = RunSettings("tiny_text", runs=str(folder / "runs"), precision="fp32")
    return open_session(Task.from_file(path, kind="span"), [parse_method("lora")], setup)


@pytest.fixture(scope="module")
def open_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Session]:
    """Opens a session, the same every time."""

    @functools.cache
    def open_kept() -> Session:
        folder = tmp_path_factory.mktemp("span")
        return opened(write(folder), folder)

    return open_kept


@pytest.fixture
def session(open_once: Callable[[], Session]) -> Session:
    """A run may be there already, and nobody changes one."""
    return open_once()


def run(session: Session, method: str, epochs: int = 1) -> tuple[Any, Path]:
    result, _ = execute(session, parse_method(method), Recipe(epochs=epochs), 0, lambda done, text: None)
    assert result.status == "ok", result.error
    return result, session.store.root / result.id


@pytest.mark.parametrize(
    "method", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_every_method_leaves_a_module_that_answers(session: Session, method: str) -> None:
    result, folder = run(session, method)
    assert list(result.scores) == ["span_f1", "exact_match"] and session.dataset.task.settings.unanswerable
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    test = [line for line in lines if line["split"] == "test"]
    logits = read_logits(folder, "test")
    assert isinstance(logits, Ragged)
    asked = session.dataset.test.examples
    assert [len(example.inputs["words"]) + 1 for example in asked] == logits.counts.tolist()
    assert all(line["prediction"] in (example.source or "") for line, example in zip(test, asked, strict=True))
    module = TaskModule.load(folder)
    assert module.roles == ("question", "words") and module.task.settings.unanswerable
    given = [(example.inputs["question"], example.source or "") for example in asked]
    answers = module.predict(given)
    assert [answer["answer"] for answer in answers] == [line["prediction"] for line in test]
    assert module.predict([{"question": given[0][0], "context": given[0][1]}]) == module.predict(given[:1])
    for answer, (_, context) in zip(answers, given, strict=True):
        assert answer["answer"] == (context[answer["start"] : answer["end"]] if answer["answer"] else "")
    assert len(result.facts["shift"]) == 2
    assert "a span of the passage" in (folder / "module" / "README.md").read_text()


@pytest.mark.slow
def test_the_toy_task_is_learnt(session: Session) -> None:
    scores = {name: run(session, name, epochs=12)[0].scores["span_f1"] for name in ("majority", "full", "linear_probe")}
    assert scores["full"] > scores["majority"] + 0.2 and scores["linear_probe"] > scores["majority"]


def test_no_answer_is_never_given_where_every_question_has_one(tmp_path: Path) -> None:
    session = opened(write(tmp_path, unanswerable=False), tmp_path)
    assert not session.dataset.task.settings.unanswerable
    result, folder = run(session, "adapter")
    assert "shift" not in result.facts
    module = TaskModule.load(folder)
    answers = module.predict([("which one is good?", "so it was")])
    assert answers[0]["answer"] and all(one["answer"] for one in answers[0]["n_best"])


@pytest.mark.slow
def test_a_long_passage_is_read_in_windows(tmp_path: Path) -> None:
    session = opened(write(tmp_path, rows=30, more=" so it was the film" * 20), tmp_path)
    assert not any(session.dataset.report["cut"].values()) and not any(session.dataset.report["unseen_words"].values())
    for method in ("top_layers:k=1", "linear_probe"):
        _, folder = run(session, method)
        module = TaskModule.load(folder)
        asked = session.dataset.test.examples
        longest = max(range(len(asked)), key=lambda number: len(asked[number].inputs["words"]))
        alone, together = module.fitted.logits([asked[longest]]), module.fitted.logits(asked)
        assert isinstance(alone, Ragged) and isinstance(together, Ragged) and alone.counts[0] > 100
        assert np.allclose(alone.flat, together[[longest]].flat, atol=1e-4)
        assert len(np.unique(alone.flat, axis=0)) > 50, "every word has logits of its own"


def test_compare_makes_a_board(tmp_path: Path) -> None:
    board = compare(
        Task.from_file(write(tmp_path, rows=40), kind="span"),
        backbone="tiny_text",
        methods=["majority", "ngram_window", "top_layers:k=1"],
        seeds=1,
        epochs=1,
        exhaustive=True,
        out=tmp_path / "board",
        runs=tmp_path / "runs",
    )
    assert {row["status"] for row in board.rows} == {"ok"} and board.content["headline_metric"] == "span_f1"
    assert all(0 <= row["scores"]["span_f1"]["low"] <= row["scores"]["span_f1"]["high"] <= 1 for row in board.rows)


@pytest.mark.slow
def test_a_ladder_of_readers(tmp_path: Path) -> None:
    task, places = Task.from_file(write(tmp_path), kind="span"), {"out": tmp_path / "ladder", "runs": tmp_path / "runs"}
    ladder = climb(task, "1h", backbone="tiny_text", epochs=1, **places)
    tried = {rung["method"] for rung in ladder.content["rungs"]}
    assert tried >= {"majority", "ngram_window", "abbreviation_rule", "linear_probe"} and "tfidf_svm" not in tried
    assert "perceptron_tagger" not in tried


def test_files_of_questions(tmp_path: Path) -> None:
    session = opened(write(tmp_path, unanswerable=False), tmp_path)  # on the toy questions the rule is better silent
    module = TaskModule.load(run(session, "abbreviation_rule")[1])
    context = "The Lunar Module (LM) met the command module (CM)."
    asked = tmp_path / "in.csv"
    asked.write_text(f'question,context\nWhat does CM stand for?,"{context}"\nWhat does LM stand for?,"{context}"\n')
    lines: list[str] = []
    answer_file([module], asked, None, lines.append)
    found = [json.loads(line) for line in lines]
    assert [one["answer"] for one in found] == ["command module", "Lunar Module"]
    assert found[0]["context"] == context and found[0]["question"] == "What does CM stand for?"
    assert context[found[1]["start"] : found[1]["end"]] == "Lunar Module"
    answer_file([module], asked, tmp_path / "out.csv", lines.append)
    assert "command module" in (tmp_path / "out.csv").read_text()
    form = {
        "data": [{"paragraphs": [{"context": context, "qas": [{"question": "What does CM stand for?", "id": "a"}]}]}]
    }
    (tmp_path / "in.json").write_text(json.dumps(form))
    answer_file([module], tmp_path / "in.json", None, lines.append)
    assert json.loads(lines[2])["answer"] == "command module" and len(lines) == 3
    there_may_be_none = opened(write(tmp_path), tmp_path)
    silent = TaskModule.load(run(there_may_be_none, "majority")[1])
    answer_file([silent], asked, tmp_path / "none.csv", lines.append)
    row = (tmp_path / "none.csv").read_text().splitlines()[1]
    assert row.partition("(CM).")[2].startswith(",,,,"), "no answer is an empty field, and so are its places"
    asked.write_text("question,passage\na,b\n")
    with pytest.raises(DataError, match="no column 'context'"):
        answer_file([module], asked, None, lines.append)
    with pytest.raises(ConfigError, match="columns called question and context"):
        answer_file([module], asked, None, lines.append, columns={"text": "passage"})


def test_what_predict_refuses(session: Session) -> None:
    module = TaskModule.load(run(session, "ngram_window")[1])
    for wrong in ("who?", ("who?",), ("who?", "it", "was"), {"question": "who?"}):
        with pytest.raises(ConfigError):
            module.predict([wrong])
    with pytest.raises(ConfigError, match="empty"):
        module.predict([("who?", " ")])


def test_modules_over_the_same_questions_share_a_pass(session: Session) -> None:
    modules = [TaskModule.load(run(session, method)[1]) for method in ("top_layers:k=1", "linear_probe")]
    asked = [("which one is good?", example.source or "") for example in session.dataset.test.examples]
    assert predict_many(modules, asked) == [module.predict(asked) for module in modules]


def test_the_self_test_remembers_the_text(tmp_path: Path) -> None:
    """The rule reads characters: with a space between all words it would answer something else."""
    rows = []
    for number in range(40):
        context = f"Number {number}, the root-mean-square (RMS) of it."
        place = context.index("root")
        answers = {"text": ["root-mean-square"], "answer_start": [place]}
        rows.append({"context": context, "question": "What does RMS stand for?", "answers": answers})
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result, folder = run(opened(path, tmp_path), "abbreviation_rule")
    assert json.loads((folder / "module" / "selftest.json").read_text())["sources"][0].startswith("Number")
    module = TaskModule.load(folder)
    example = question_of("x", "What does RMS stand for?", Passage.of("the root-mean-square (RMS) of it"))
    assert result.status == "ok" and module.fitted.logits([example])
