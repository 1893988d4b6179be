"""A kind of another package whose answers are texts, and a method for it: trained, stored, scored and asked."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import graftwork as gw
from graftwork.cli.options import task_flags
from graftwork.core.example import Example
from graftwork.core.method import Setting, Workbench
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule, UnknownName
from graftwork.io.files import read_json, write_json
from graftwork.registry import kinds, methods, metrics
from graftwork.run.store import read_logits
from graftwork.testing.kind_contract import check_kind

REPLY = np.dtype([("text", object), ("log_probability", np.float64)])
REPLIES = {"hello": "Hello to you.", "price": "It is on the page.", "lost": "Ask at the desk."}
ROWS = [{"text": f"{word} number {n}", "label": reply} for n in range(20) for word, reply in REPLIES.items()]


@dataclass(frozen=True)
class ReplySettings:
    """The settings of replies."""

    case: Literal["keep", "lower"] = "keep"  # letters of the replies: as they stand (keep), or all lower


class Reply:
    """Targets are texts; outputs are texts with their log-probabilities, (N,) of `REPLY`."""

    per_word, has_labels, repairs = False, False, ""
    settings = ReplySettings

    def parse(self, text: str, task: Task, where: str) -> str:
        return text.lower() if task.settings.case == "lower" else text

    def settle(self, target: str, inputs: Mapping[str, Any], task: Task, where: str) -> tuple[str, int]:
        return target, 0

    def resolve(self, task: Task, targets: Sequence[str]) -> Task:
        return task.resolved(metrics=task.metrics or ("same_reply",))

    def strata(self, targets: Sequence[str]) -> list[str]:
        return [""] * len(targets)

    def encode(self, targets: Sequence[str], task: Task) -> NDArray[Any]:
        return np.array(targets, dtype=object)

    def constant(self, targets: NDArray[Any], task: Task) -> NDArray[Any]:
        return np.array([(Counter(targets.tolist()).most_common(1)[0][0], 0.0)], dtype=REPLY)

    def predictions(self, outputs: NDArray[Any], task: Task) -> NDArray[Any]:
        return outputs["text"].ravel()

    def decode(self, outputs: NDArray[Any], task: Task, examples: Sequence[Example]) -> list[dict[str, Any]]:
        return [{"reply": text, "probability": math.exp(chance)} for text, chance in outputs.tolist()]

    def sentence(self, answer: Mapping[str, Any]) -> str:
        return str(answer["reply"])

    def from_lists(self, rows: Sequence[Any]) -> NDArray[Any]:
        return np.array([tuple(row) for row in rows], dtype=REPLY)

    def difference(self, found: NDArray[Any], expected: NDArray[Any]) -> float:
        if found.shape != expected.shape or (found["text"] != expected["text"]).any():
            return math.inf
        return float(np.abs(found["log_probability"] - expected["log_probability"]).max())


class SameReply:
    """The share of replies that are equal to the right ones."""

    def statistics(self, targets: NDArray[Any], predictions: NDArray[Any], task: Task) -> NDArray[np.float64]:
        return np.asarray(targets == predictions, dtype=np.float64)[:, None]

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        return means[..., 0]


@dataclass
class Table:
    """The reply to the first word of a text."""

    facts: Mapping[str, Any]
    trained_parameters: int = 0

    def logits(self, examples: Sequence[Example]) -> NDArray[Any]:
        found = [self.facts["table"].get(example.inputs["text"].split()[0], "") for example in examples]
        return np.array([(text, -0.125 if text else -2.5) for text in found], dtype=REPLY)

    def delta(self) -> dict[str, NDArray[np.float64]]:
        return {"entries": np.array([float(len(self.facts["table"]))])}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        return 0.0, "counter"


@dataclass(frozen=True)
class Lookup:
    """A table of the training replies."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False
    KINDS: ClassVar[tuple[str, ...]] = ("reply",)

    def unfit(self, task: Task, card: Any) -> str:
        return ""

    def fit(self, bench: Workbench) -> Table:
        return Table({"table": {one.inputs["text"].split()[0]: one.target for one in bench.train.examples}})

    def restore(self, setting: Setting, delta: Any, facts: Mapping[str, Any]) -> Table:
        return Table(facts)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of texts and replies; the parts are registered."""
    monkeypatch.setitem(kinds._parts, "reply", Reply())  # type: ignore[arg-type]
    monkeypatch.setitem(metrics._parts, "same_reply", SameReply())
    monkeypatch.setitem(methods._parts, "lookup", Lookup)  # type: ignore[arg-type]
    return written(tmp_path / "rows.jsonl", [*ROWS, {"text": "odd one", "label": "A reply that stands once."}])


def written(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_texts_go_all_the_way(rows: Path, tmp_path: Path) -> None:
    run = gw.train(Task.from_file(rows, kind="reply"), method="lookup", runs=str(tmp_path / "runs"))
    assert run.result.status == "ok" and run.result.scores["same_reply"] > 0.9
    stored = read_logits(run.folder, "test", kinds.get("reply"))
    module = gw.TaskModule.load(run.folder / "module")
    assert module.difference == 0.0 and module.task.kind == "reply" and stored.dtype == REPLY
    sure = {"reply": REPLIES["lost"], "probability": math.exp(-0.125)}
    assert module.predict(["lost a card", "who?"]) == [sure, {"reply": "", "probability": math.exp(-2.5)}]
    assert read_json(run.folder / "module" / "module.json")["held_out"]["confidence"]["mean"] > 0.8
    asked = written(tmp_path / "new.jsonl", [*ROWS[:9], {"text": "price in May", "label": "Another reply."}])
    found = gw.score(module, asked)
    assert found["scores"]["same_reply"]["score"] == 0.9 and found["majority"]["same_reply"] == 0.3


def test_the_contract_of_kinds_holds(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kind("reply", ["Yes.", "No.", "Yes."])
    monkeypatch.setattr(Reply, "difference", lambda self, found, expected: 0.5)
    with pytest.raises(AssertionError, match="stored and read"):
        check_kind("reply", ["Yes.", "No.", "Yes."])
    monkeypatch.setattr(Reply, "settings", make_dataclass("Unfit", [("metrics", str, "")], frozen=True))
    with pytest.raises(AssertionError, match="no comment"):
        check_kind("reply", ["Yes.", "No.", "Yes."])


def test_a_reply_that_changed_is_refused(rows: Path, tmp_path: Path) -> None:
    run = gw.train(Task.from_file(rows, kind="reply"), method="lookup", runs=str(tmp_path / "runs"))
    place = run.folder / "module" / "selftest.json"
    told = read_json(place)
    told["logits"][0][0] += "!"
    write_json(place, told)
    with pytest.raises(IncompatibleModule, match="other logits"):
        gw.TaskModule.load(run.folder / "module")


def test_a_method_that_gives_logits_does_not_fit(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gives logits"):
        gw.train(Task.from_file(rows, kind="reply"), method="majority", runs=str(tmp_path / "runs"))


def test_its_settings_are_keys_and_flags(rows: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked.toml"
    asked.write_text('data = "rows.jsonl"\nkind = "reply"\ncase = "lower"\n')
    assert (
        Task.from_file(asked).settings
        == ReplySettings("lower")
        == Task.from_file(rows, kind="reply", case="lower").settings
    )
    assert Task.from_file(asked, case="keep").as_dict() == Task.from_file(rows, name="asked", kind="reply").as_dict()
    with pytest.raises(ConfigError, match="a task of kind classification has no use for case"):
        Task.from_file(rows, case="lower")
    with pytest.raises(UnknownName, match="did you mean 'lower'"):
        Task.from_file(asked, case="lowr")
    (flag,) = (one for one in task_flags(lambda: None).__click_params__ if one.name == "case")  # type: ignore[attr-defined]
    assert flag.metavar == "keep|lower" and flag.help.startswith("Of reply: letters of the replies")
