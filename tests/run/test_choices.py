"""Choices and rankings from a file to a task module's answers, by every sort of method."""

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
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError
from graftwork.module.predict_file import answer_file
from graftwork.module.predict_many import predict_many
from graftwork.module.task_module import TaskModule
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.run.store import read_logits
from graftwork.testing import tiny_dataset

METHODS = ("majority", "tfidf_svm", "bm25", "linear_probe", "top_layers:k=1", "adapter", "lora", "ulmfit")
QUICK = {("choice", "majority"), ("choice", "lora"), ("ranking", "bm25"), ("ranking", "linear_probe")}
KINDS = {"choice": ["accuracy"], "ranking": ["mean_average_precision", "mean_reciprocal_rank"]}


def write(folder: Path, kind: str, rows: int = 60) -> Path:
    data = tiny_dataset(kind, rows=rows)
    path = folder / "toy.jsonl"
    examples = [example for split in data.splits.values() for example in split.examples]
    lines = [
        {"text": f"{example.inputs['text']} {number}", "choices": example.inputs["choices"], "labels": example.target}
        for number, example in enumerate(examples)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def open_on(folder: Path, kind: str) -> Session:
    task = Task.from_file(write(folder, kind), kind=kind)
    setup = RunSettings("tiny_text", runs=str(folder / "runs"), precision="fp32")
    return open_session(task, [parse_method("lora")], setup)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Session]:
    """Kind -> a session, the same every time: a run may be there already, and nobody changes one."""
    return functools.cache(lambda kind: open_on(tmp_path_factory.mktemp(kind), kind))


@pytest.fixture
def session(sessions: Callable[[str], Session]) -> Session:
    return sessions("choice")


def run(session: Session, method: str, epochs: int = 1) -> tuple[Any, Path]:
    result, _ = execute(session, parse_method(method), Recipe(epochs=epochs), 0, lambda done, text: None)
    assert result.status == "ok", result.error
    return result, session.store.root / result.id


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method) if (kind, method) in QUICK else pytest.param(kind, method, marks=pytest.mark.slow)
        for method in METHODS
        for kind in KINDS
    ],
)
def test_every_method_leaves_a_module_that_answers(sessions: Callable[[str], Session], kind: str, method: str) -> None:
    session = sessions(kind)
    result, folder = run(session, method)
    assert list(result.scores) == KINDS[kind]
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    test = [line for line in lines if line["split"] == "test"]
    logits = read_logits(folder, "test")
    assert isinstance(logits, Ragged) and logits.flat.shape == (int(logits.counts.sum()), 1)
    assert [len(line["target"]) for line in test] == logits.counts.tolist()
    module = TaskModule.load(folder)
    assert module.roles == ("text", "choices")
    inputs = dict(session.dataset.test.examples[0].inputs)
    (by_name,) = module.predict([inputs])
    assert module.predict([(inputs["text"], list(inputs["choices"]))]) == [by_name]
    if kind == "choice":
        assert by_name["choice"] == test[0]["prediction"]
        assert inputs["choices"][by_name["index"]] == by_name["choice"]
        assert np.argmax(by_name["probabilities"]) == by_name["index"]
    else:
        order = [[item["index"] for item in listed] for listed in (by_name["ranking"], test[0]["prediction"])]
        assert order[0] == order[1] and sorted(order[0]) == list(range(len(inputs["choices"])))


@pytest.mark.slow
def test_the_toy_task_is_learnt(session: Session) -> None:
    scores = {
        name: run(session, name, epochs=12)[0].scores["accuracy"] for name in ("majority", "full", "linear_probe")
    }
    assert scores["linear_probe"] > scores["majority"] + 0.2 and scores["full"] > scores["majority"] + 0.2


@pytest.mark.slow  # spans and tags have theirs
def test_compare_makes_a_board(tmp_path: Path) -> None:
    board = compare(
        Task.from_file(write(tmp_path, "ranking"), kind="ranking"),
        backbone="tiny_text",
        methods=["majority", "bm25", "linear_probe"],
        seeds=2,
        epochs=1,
        out=tmp_path / "board",
        runs=tmp_path / "runs",
    )
    assert {row["status"] for row in board.rows} == {"ok"}
    assert board.content["headline_metric"] == "mean_average_precision"
    low, high = (board.rows[0]["scores"]["mean_reciprocal_rank"][key] for key in ("low", "high"))
    assert 0 < low <= high <= 1
    assert board.content["data_report"]["choices"]["train"]["choices"]["most"] == 4


def test_modules_over_the_same_choices_share_a_pass(session: Session) -> None:
    modules = [TaskModule.load(run(session, method)[1]) for method in ("top_layers:k=1", "linear_probe")]
    texts = [dict(example.inputs) for example in session.dataset.test.examples]
    assert predict_many(modules, texts) == [module.predict(texts) for module in modules]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("a text", "wrong inputs"),
        (("a", "b", "c"), "wrong inputs"),
        ({"text": "a", "choices": "b"}, "wrong inputs"),
        ({"text": "a", "choices": ["b"]}, "fewer than two choices"),
        ({"text": "a", "choices": ["b", " "]}, "an empty text or choice"),
        ({"text": " ", "choices": ["b", "c"]}, "an empty text or choice"),
    ],
)
def test_wrong_inputs(session: Session, given: Any, what: str) -> None:
    module = TaskModule.load(run(session, "bm25")[1])
    with pytest.raises(ConfigError, match=what):
        module.predict([given])


FILES = [
    ("in.jsonl", '{"text": "so good", "choices": ["bad", "good"]}\n{"text": "bad", "choices": ["bad", "x"]}\n', {}),
    ("in.csv", "text,choice1,choice2\nso good,bad,good\nbad,bad,x\n", {}),
    ("in.tsv", "query\tcandidate\nso good\tbad\nso good\tgood\nbad\tbad\nbad\tx\n", {}),
    ("in.csv", "q,a,b\nso good,bad,good\nbad,bad,x\n", {"text": "q", "choices": "a,b"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "columns"), FILES)
def test_files(session: Session, tmp_path: Path, name: str, content: str, columns: dict[str, str]) -> None:
    module = TaskModule.load(run(session, "bm25")[1])
    (tmp_path / name).write_text(content)
    lines: list[str] = []
    answer_file([module], tmp_path / name, None, lines.append, columns=columns)
    found = [json.loads(line) for line in lines]
    assert [(line["text"], line["choice"], line["index"]) for line in found] == [
        ("so good", "good", 1),
        ("bad", "bad", 0),
    ]
    answer_file([module], tmp_path / name, tmp_path / "out.csv", lines.append, columns=columns)
    assert (tmp_path / "out.csv").read_text().startswith("text,choices,choice,index,probabilities")


def test_bad_files(session: Session, tmp_path: Path) -> None:
    module, path = TaskModule.load(run(session, "bm25")[1]), tmp_path / "in.csv"
    for content, what in (
        ("text,choice1,choice2\na,b,\n", "choice 2 of 2 is empty"),
        ("text,label\na,b\n", "no column of"),
        ("text,choice1,choice2\n ,b,c\n", "the text is empty"),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=what):
            answer_file([module], path, None, print)
    with pytest.raises(ConfigError, match="no text_a"):
        answer_file([module], path, None, print, columns={"text_a": "x"})


@pytest.mark.slow
def test_a_ladder_of_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climber, "MOST_SEEDS", 1)
    task = Task.from_file(write(tmp_path, "choice"), kind="choice")
    ladder = climb(task, "1h", backbone="tiny_text", epochs=1, out=tmp_path / "ladder", runs=tmp_path / "runs")
    tried = {rung["method"]: rung["decision"] for rung in ladder.content["rungs"]}
    assert {"majority", "bm25", "tfidf_svm", "linear_probe"} <= tried.keys() and "most_frequent_tag" not in tried
    assert ladder.content["chosen"]["method"] in tried


def test_a_task_file_says_what_the_flags_say(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(
        "p\tx\ty\tright\n" + "".join(f"text {i}\ta {i}\tb {i}\t{1 + i % 2}\n" for i in range(20))
    )
    (tmp_path / "t.toml").write_text(
        'data = "t.tsv"\nkind = "choice"\ntext = "p"\nchoices = ["x", "y"]\nlabel = "right"\ncount_from = "1"\n'
    )
    found = load(Task.from_file(tmp_path / "t.toml"))
    flags = Task.from_file(
        tmp_path / "t.tsv", kind="choice", text="p", choices=("x", "y"), label="right", count_from="1"
    )
    assert found.digest == load(flags).digest and found.task.settings.choices == ("x", "y")
    assert all(
        example.target == ((1, 0), (0, 1))[int(example.inputs["text"][5:]) % 2] for example in found.train.examples
    )
