"""Many texts through several modules: bounded windows, one pass for what is shared, the answers of each alone."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, DataError
from graftwork.module import predict_many as bulk
from graftwork.module import task_module
from graftwork.module.predict_many import answer_windows, predict_many, windows
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.run.execute import execute
from graftwork.run.session import Session

OpenSession = Callable[..., Session]
TEXTS = [" ".join(["good", "bad", "film", "so"][i % (n % 4 + 1)] for i in range(n % 9 + 1)) for n in range(40)]


def example(number: int, text: str = "x") -> Example:
    return Example(f"line/{number}", {"text": text})


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where module folders are kept between tests, by method, kind and precision."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def load(open_tiny: OpenSession, kept: Path) -> Callable[..., TaskModule]:
    def loaded(method: str, kind: str = "classification", pair: bool = False, precision: str = "fp32") -> TaskModule:
        home = kept / f"{method.replace(':', '_')}-{kind}-{pair}-{precision}"
        if not home.exists():
            session = open_tiny(kind, pair, precision)
            result, _ = execute(session, parse_method(method), Recipe(epochs=1), 0, lambda done, text: None)
            shutil.copytree(session.store.root / result.id / "module", home)
        return TaskModule.load(home)

    return loaded


def test_windows_end_after_so_many_rows_or_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(bulk, "CHARACTERS_AT_ONCE", 100)
    stream = [*(example(i) for i in range(9)), example(9, "y" * 500), example(10), example(11)]
    sizes = [len(window) for window in windows(iter(stream))]
    assert sizes == [4, 4, 2, 2]
    assert [e.id for window in windows(iter(stream)) for e in window] == [e.id for e in stream]
    assert list(windows(iter([]))) == []


@pytest.mark.parametrize("precision", [pytest.param("fp32", marks=pytest.mark.slow), "bf16"])
def test_several_modules_answer_as_each_does_alone_and_tokenise_once(
    load: Callable[..., TaskModule], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 16)
    asked = [("linear_probe", "classification"), ("top_layers:k=1", "multilabel"), ("lora", "classification")]
    modules = [load(method, kind, precision=precision) for method, kind in asked]
    modules += [load("linear_probe", "regression", precision=precision), load("tfidf_svm")]
    alone = [module.predict(TEXTS) for module in modules]
    encoded: list[int] = []
    real = TransformerBackbone.encode
    monkeypatch.setattr(TransformerBackbone, "encode", lambda self, e: encoded.append(len(e)) or real(self, e))
    assert gw.predict_many(modules, TEXTS) == alone
    assert encoded == [16, 16, 8]
    assert "label" in alone[0][0] and "value" in alone[3][0] and len(alone[4]) == len(TEXTS)


def test_precisions_do_not_mix(load: Callable[..., TaskModule]) -> None:
    modules = [load("linear_probe", precision=precision) for precision in ("fp32", "bf16")]
    assert predict_many(modules, TEXTS) == [module.predict(TEXTS) for module in modules]


def test_modules_share_one_open_backbone_and_free_it(load: Callable[..., TaskModule]) -> None:
    gc.collect()
    before = len(task_module._OPEN)
    modules = [load("linear_probe"), load("lora"), load("linear_probe", precision="bf16")]
    assert modules[0].backbone is modules[1].backbone is not None
    assert modules[2].backbone is not modules[0].backbone
    modules.clear()
    gc.collect()
    assert len(task_module._OPEN) == before


def test_nothing_in_nothing_out(load: Callable[..., TaskModule]) -> None:
    assert load("majority").predict([]) == []
    assert predict_many([load("majority"), load("linear_probe")], []) == [[], []]
    assert predict_many([], ["a text"]) == []


def test_modules_that_want_different_inputs_are_refused(load: Callable[..., TaskModule]) -> None:
    modules = [load("majority"), load("majority", pair=True)]
    with pytest.raises(ConfigError, match=r"different inputs[\s\S]*text_a and text_b[\s\S]*expected: text, as"):
        predict_many(modules, ["a text"])


def test_no_more_than_one_window_is_made_ahead(
    load: Callable[..., TaskModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 2)
    made: list[int] = []

    def stream() -> Iterator[Example]:
        for number in range(20):
            made.append(number)
            yield example(number)

    for used, window in enumerate(answer_windows([load("majority")], stream()), 1):
        assert len(window.examples) == 2 and 2 * used <= len(made) <= 2 * (used + 1)
    assert len(made) == 20


def test_an_error_in_the_stream_arrives_as_it_is(load: Callable[..., TaskModule], monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 1)

    def stream() -> Iterator[Example]:
        yield example(1)
        raise DataError("bad row", where="in.csv:3")

    answered = answer_windows([load("linear_probe")], stream())
    assert len(next(answered).answers[0]) == 1
    with pytest.raises(DataError, match=r"in\.csv:3: bad row"):
        next(answered)


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a list of task modules is expected(?s:.*)write \[module\]"):
        predict_many(5, ["a text"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a bank is opened by its path"):
        gw.Bank(5)  # type: ignore[arg-type]
