"""Methods that count words, on texts without spaces between them: they learn, and stored modules answer as they did."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Fitted, Setting
from graftwork.core.run import Recipe
from graftwork.core.task import Dataset, Task
from graftwork.methods.bm25 import Bm25
from graftwork.methods.dan import Dan
from graftwork.methods.partial_input import PartialInput
from graftwork.methods.tfidf_svm import TfidfSvm
from graftwork.registry import kinds
from graftwork.run.session import open_session
from graftwork.run.settings import RunSettings
from graftwork.targets.words import FIRST_RULE, RULE, UNSPACED_APART
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_data import BAD, FILLER, GOOD

QUICK = Dan(size=16, width=16, epochs=15)
SCRIPTS = {
    "Chinese": "好看 很棒 温暖 糟糕 难过 寒冷 这部 一个 曾经 电影 如此 它",
    "Japanese": "よかった 素敵な 暖かい ひどい 悲しい 寒い この ある でした 映画 とても それ",
    "Thai": "ดี เยี่ยม อบอุ่น แย่ เศร้า หนาว นี้ หนึ่ง เคย หนัง มาก มัน",
    "Khmer": "ល្អ អស្ចារ្យ ក្តៅ អាក្រក់ សោក ត្រជាក់ នេះ មួយ បាន កុន ណាស់ វា",
    "Burmese": "ကောင်း မြတ် နွေး ဆိုး ဝမ်းနည်း အေး ဒီ တစ် ခဲ့ ရုပ်ရှင် အရမ်း သူ",
}


def written(data: Dataset, script: str) -> Dataset:
    """The same task, its words in another script and without a space."""
    words = dict(zip((*GOOD, *BAD, *FILLER), SCRIPTS[script].split(), strict=True))

    def told(given: Any) -> Any:
        return tuple(map(told, given)) if isinstance(given, tuple) else "".join(words[word] for word in given.split())

    splits = {
        name: replace(
            split, examples=tuple(replace(e, inputs={k: told(v) for k, v in e.inputs.items()}) for e in split.examples)
        )
        for name, split in data.splits.items()
    }
    return replace(data, splits=splits)


def accuracy(fitted: Fitted, data: Dataset) -> float:
    return float(np.mean(np.asarray(fitted.logits(data.test.examples)).argmax(axis=1) == data.test.targets))


@pytest.mark.parametrize(
    "script", [pytest.param(one, marks=() if one in ("Chinese", "Khmer") else pytest.mark.slow) for one in SCRIPTS]
)
def test_words_are_learnt_that_no_space_parts(script: str) -> None:
    data = written(tiny_dataset(rows=60), script)
    seen = {e.inputs["text"] for e in data.train.examples}
    assert not any(e.inputs["text"] in seen for e in data.test.examples), "whole texts would be no words that train has"
    assert np.mean(data.test.targets) == 0.5
    assert accuracy(TfidfSvm().fit(tiny_bench(data, None)), data) >= 0.9


def test_an_average_of_them_is_learnt() -> None:
    data = written(tiny_dataset(rows=60), "Chinese")
    assert accuracy(QUICK.fit(tiny_bench(data, None)), data) >= 0.9


def test_one_side_of_a_pair_is_read() -> None:
    data = written(tiny_dataset(pair=True, rows=60), "Chinese")
    fitted = PartialInput(by="tfidf_svm").fit(tiny_bench(data, None))
    restored = PartialInput(by="tfidf_svm").restore(setting(data), fitted.delta(), json.loads(json.dumps(fitted.facts)))
    found = fitted.logits(data.test.examples)
    assert np.array_equal(restored.logits(data.test.examples), found) and len(np.unique(found, axis=0)) > 20


def test_candidates_share_words_with_their_text() -> None:
    data = written(tiny_dataset("choice", rows=40), "Chinese")
    scores = Bm25().fit(tiny_bench(data, None)).logits(data.test.examples)
    found = kinds.get("choice").predictions(scores, data.task)
    right = [row[:, 0].argmax() == e.target.index(1) for row, e in zip(found, data.test.examples, strict=True)]
    assert np.mean(right) >= 0.8


def setting(data: Dataset) -> Setting:
    return Setting(data.task, kinds.get(data.task.kind), None)


@pytest.mark.parametrize("fit", [TfidfSvm().fit, QUICK.fit], ids=["tfidf_svm", "dan"])
def test_what_is_stored_says_how_its_words_were_cut(fit: Callable[..., Fitted]) -> None:
    data = written(tiny_dataset(rows=20), "Thai")
    fitted = fit(tiny_bench(data, None))
    facts = json.loads(json.dumps(fitted.facts))
    method = TfidfSvm() if "strength" in facts else QUICK
    restored = method.restore(setting(data), fitted.delta(), facts)
    assert facts[UNSPACED_APART] is True
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))


OLD = (
    Example("a", {"text": "银行卡丢了，请问"}),
    Example("b", {"text": "银行卡，请问"}),
    Example("c", {"text": "हिन्दी"}),
)


def test_a_stored_tfidf_svm_reads_as_it_did() -> None:
    facts = {"strength": 1.0, "vocabulary": ["银行卡丢了", "，", "卡", "द"], "features": 4}
    delta = {"weight": torch.eye(4, dtype=torch.float64), "bias": torch.zeros(4), "idf": torch.ones(4)}
    data = tiny_dataset()
    before, now = (
        np.sign(TfidfSvm().restore(setting(data), delta, facts | said).logits(OLD)).tolist()
        for said in ({}, {UNSPACED_APART: True})
    )
    assert before == [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert now == [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]


def test_a_stored_bm25_reads_as_it_did() -> None:
    facts = {
        "vocabulary": ["银行卡丢了", "请问"],
        "candidates": 4,
        "mean_length": 2.0,
        "k1": 1.2,
        "b": 0.75,
        "words": 2,
    }
    asked = [Example("x", {"text": "银行卡丢了，请问", "choices": ("银行卡丢了", "银行卡", "问")})]
    before, now = (
        (Bm25().restore(setting(tiny_dataset("choice")), {"frequencies": torch.ones(2)}, facts | said))
        for said in ({}, {UNSPACED_APART: True})
    )
    assert np.sign(before.logits(asked).flat).ravel().tolist() == [1, 0, 0]
    assert np.sign(now.logits(asked).flat).ravel().tolist() == [1, 1, 1]
    assert before.flops(asked)[0] < now.flops(asked)[0]


def test_a_stored_dan_reads_as_it_did() -> None:
    data = tiny_dataset()
    fitted = QUICK.fit(tiny_bench(data, None))
    words = ["请问", "银行卡", "银行卡丢了"]
    facts = {**fitted.facts, "vocabulary": words}
    delta = fitted.delta() | {"table": fitted.delta()["table"][: len(words) + 1]}
    now = QUICK.restore(setting(data), delta, facts)
    before = QUICK.restore(setting(data), delta, {name: facts[name] for name in facts if name != UNSPACED_APART})
    asked = [Example("x", {"text": "我的银行卡，银行卡丢了"})]
    assert before.bags(asked) == [[2]] and now.bags(asked) == [[1, 2]]


@pytest.mark.parametrize("method", ["tfidf_svm", "dan", "majority", "linear_probe", "partial_input:by=tfidf_svm"])
@pytest.mark.parametrize(
    ("extra", "otherwise"), [("", False), ("é 😀 ❤\ufe0f 한국", False), ("我", True), ("e\u0301", True)]
)
def test_a_run_is_known_by_the_rule_where_that_cuts_otherwise(
    method: str, extra: str, otherwise: bool, tmp_path: Path
) -> None:
    """Runs that the first rule had cut are not taken for these; all others keep their ids."""
    pair, named = "partial" in method, parse_method(method)
    columns = ["text_a", "text_b"] if pair else ["text"]
    rows = [[*(f"a row {number} of {name}" for name in columns), "yes" if number % 2 else "no"] for number in range(40)]
    rows[7][0] += f" {extra}"
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(",".join(row) for row in [[*columns, "label"], *rows]), encoding="utf-8")
    session = open_session(
        Task.from_file(path), [named], RunSettings("tiny_text", runs=str(tmp_path / "runs"), precision="fp32")
    )
    spec = session.spec(named, Recipe(), 0)
    marked = otherwise and method not in ("majority", "linear_probe")
    assert spec.content().get("words") == (RULE if marked else None)
    assert (spec.id == replace(spec, words=FIRST_RULE).id) is not marked
