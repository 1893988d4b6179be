"""Domain shift of a module: told where it is, not where it isn't, and what can be told without the training data."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

import graftwork as gw
from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.evaluate.domain_shift import verdict
from graftwork.io.files import read_json, write_json
from graftwork.module.confidence import Moments, confidence_of
from graftwork.module.task_module import TaskModule

GOOD, BAD, FILLER = ["good", "fine", "warm"], ["bad", "sad", "cold"], [f"thing{i}" for i in range(300)]
OTHERS = [f"gadget{i}" for i in range(300)]


def rows(count: int, seed: int, filler: Sequence[str] = FILLER) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    found = []
    for i in range(count):
        words = [*random.choice(GOOD if i % 2 else BAD, 2), *random.choice(filler, random.integers(3, 12))]
        found.append((" ".join(random.permutation(words).tolist()), "good" if i % 2 else "bad"))
    return found


def table(path: Path, listed: Sequence[tuple[str, str]]) -> Path:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in listed), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Modules of a method with a backbone and of one without, and the file they were trained on."""
    folder = tmp_path_factory.mktemp("shift")
    data = table(folder / "train.tsv", rows(240, 0))
    made = {"data": data}
    for method in ("linear_probe", "tfidf_svm"):
        run = gw.train(Task.from_file(data), method=method, backbone="tiny_text", runs=folder / "runs")
        made[method] = run.folder / "module"
    return made


def texts(listed: Sequence[tuple[str, str]]) -> list[str]:
    return [text for text, _ in listed]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["linear_probe", "tfidf_svm"])
def test_another_domain_is_told_and_the_same_one_is_not(trained: dict[str, Path], method: str) -> None:
    module = TaskModule.load(trained[method])
    same, other = (gw.shift(module, texts(rows(120, 7, filler))) for filler in (FILLER, OTHERS))
    assert same["two_sample"]["p"] >= 0.05 and other["two_sample"]["p"] < 0.05
    assert other["two_sample"]["auc"] > same["two_sample"]["smallest"]
    assert "Cannot tell these texts from those trained on" in same["verdict"][0]
    assert "These texts differ from those trained on" in other["verdict"][0]
    assert same["words"]["new"]["words"] < 0.5 < other["words"]["new"]["words"]
    assert other["words"]["most_frequent"][0]["word"].startswith("gadget")
    shown = other["two_sample"]["furthest"]
    assert len(shown) == 5 and "gadget" in shown[0]["text"]
    assert [item["density_ratio"] for item in shown] == sorted((item["density_ratio"] for item in shown), reverse=True)


def test_the_reference_is_what_it_was_trained_on(trained: dict[str, Path]) -> None:
    recorded = read_json(trained["linear_probe"] / "module.json")["data"]
    assert recorded["files"] == {"data": str(trained["data"])} and sum(recorded["rows"].values()) == 240
    listed = texts(rows(240, 0))
    found = gw.shift(trained["linear_probe"], [*listed, *texts(rows(30, 9))])
    assert found["reference"] == str(trained["data"])
    assert found["rows"]["trained_on"] == recorded["rows"]["train"] == found["rows"]["new_trained_on"]
    assert found["confidence"]["held_out"]["rows"] == recorded["rows"]["validation"] + recorded["rows"]["test"]


def test_longer_texts_are_longer(trained: dict[str, Path]) -> None:
    listed = [f"{text} {text} {text}" for text in texts(rows(60, 5))]
    lengths = gw.shift(trained["tfidf_svm"], listed)["lengths"]
    assert lengths["low"] > 10 and lengths["new"]["mean"] == pytest.approx(np.mean([len(t.split()) for t in listed]))


STOCK = texts(rows(300, 50, [f"stock{i}" for i in range(900)]))


def stream(count: int, seed: int) -> list[str]:
    """Texts as they come in: 40 % of them are one of a few that come again and again."""
    random = np.random.default_rng([seed, 1])
    listed = texts(rows(count, seed, [f"word{i}" for i in range(3000)]))
    return [STOCK[random.integers(len(STOCK))] if random.random() < 0.4 else text for text in listed]


def test_texts_that_repeat_are_no_shift_where_one_side_is_larger(trained: dict[str, Path]) -> None:
    found = gw.shift(trained["tfidf_svm"], stream(150, 1), reference=stream(1000, 2), rows=1000)
    test = found["two_sample"]
    assert test["p"] >= 0.05 and found["rows"]["new_compared"] == 150, test
    assert 100 < test["rows"]["new"] < 150 and 5.5 < test["rows"]["trained_on"] / test["rows"]["new"] < 6.5


def moved(trained: dict[str, Path], tmp_path: Path, **changes: Any) -> Path:
    folder = Path(shutil.copytree(trained["linear_probe"], tmp_path / "module"))
    content = read_json(folder / "module.json")
    write_json(folder / "module.json", {name: changes.get(name, value) for name, value in content.items()})
    return folder


def test_without_the_data_it_says_what_it_can(trained: dict[str, Path], tmp_path: Path) -> None:
    recorded = read_json(trained["linear_probe"] / "module.json")["data"]
    gone = moved(trained, tmp_path, data=recorded | {"files": {"data": "gone.tsv"}})
    found = gw.shift(gone, texts(rows(60, 5)))
    assert "two_sample" not in found and found["reference"] is None
    assert "can't be told: what it was trained on can't be read: no such file: gone.tsv" in found["verdict"][0]
    with_data = gw.shift(trained["linear_probe"], texts(rows(60, 5)))["confidence"]
    assert found["confidence"]["change"] == pytest.approx(with_data["change"])  # it is remembered in the module
    assert found["lengths"]["before"] is not None
    named = gw.shift(gone, texts(rows(60, 5)), reference=trained["data"])
    assert named["two_sample"]["p"] >= 0.05 and named["reference"] == str(trained["data"])


def test_changed_data_and_old_modules_are_no_reference(trained: dict[str, Path], tmp_path: Path) -> None:
    recorded = read_json(trained["linear_probe"] / "module.json")["data"]
    changed = table(tmp_path / "changed.tsv", rows(240, 1))
    other = moved(trained, tmp_path, data=recorded | {"files": {"data": str(changed)}})
    assert "has changed since it was trained on" in gw.shift(other, ["good"])["unreachable"]
    content = read_json(other / "module.json")
    write_json(other / "module.json", {name: content[name] for name in content if name not in ("data", "held_out")})
    old = gw.shift(other, ["good film", "bad film"])
    assert "does not say what it was trained on" in old["unreachable"] and "change" not in old["confidence"]


def test_few_new_texts_are_too_few(trained: dict[str, Path]) -> None:
    found = gw.shift(trained["linear_probe"], ["good film"] * 50)
    assert found["two_sample"]["rows"]["new"] == 1 and "fewer than 20 different texts" in found["verdict"][0]
    for bad in ({"new": []}, {"new": ["good"], "rows": 5}):
        with pytest.raises(ConfigError):
            gw.shift(trained["linear_probe"], **bad)


def test_rows_drawn_do_not_depend_on_their_order(trained: dict[str, Path]) -> None:
    listed = texts(rows(120, 3))
    one, other = (gw.shift(trained["tfidf_svm"], some, rows=40) for some in (listed, listed[::-1]))
    ids = [{item["text"] for item in found["two_sample"]["furthest"]} for found in (one, other)]
    assert one["two_sample"]["rows"] == {"trained_on": 40, "new": 40} and ids[0] & ids[1]


def test_confidence_of_every_sort_of_answer() -> None:
    answers: list[tuple[dict[str, Any], float | None]] = [
        ({"label": "a", "probabilities": {"a": 0.75, "b": 0.25}}, 0.75),
        ({"label": ["a"], "probabilities": {"a": 0.75, "b": 0.25}}, 0.75),
        ({"value": 1.0}, None),
        ({"tags": ["O", "O"], "words": ["a", "b"], "probabilities": [0.5, 1.0]}, 0.75),
        ({"spans": [{"probability": 0.5}, {"probability": 1.0}]}, 0.75),
        ({"spans": []}, None),
        ({"answer": "x", "probability": 0.75, "n_best": []}, 0.75),
        ({"choice": "x", "index": 0, "probabilities": [0.75, 0.25]}, 0.75),
        ({"ranking": []}, None),
    ]
    assert [confidence_of(answer) for answer, _ in answers] == [wanted for _, wanted in answers]


def test_a_difference_of_means_has_its_interval() -> None:
    rows, others = [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0]
    a, b = Moments.of(rows), Moments.of(others)
    assert a is not None and b is not None and Moments.of([1.0]) is None
    wanted = ttest_ind(rows, others, equal_var=False).confidence_interval()
    assert a.less(b) == pytest.approx({"change": 7 / 6, "low": wanted.low, "high": wanted.high})
    alike = Moments(1.0, 0.0, 2)
    assert alike.less(Moments(0.5, 0.0, 9)) == {"change": 0.5, "low": 0.5, "high": 0.5}


@pytest.mark.parametrize(
    ("rows", "low", "said"),
    [
        (19, 0.1, []),
        (20, 0.1, ["Its answers are surer than to texts held out from its training: +20.0 points [+10.0, +30.0]."]),
        (
            20,
            -0.1,
            [
                "Cannot tell whether its answers are surer or less sure than to texts held out from its training: "
                "+20.0 points [-10.0, +30.0]."
            ],
        ),
    ],
)
def test_how_sure_answers_are_is_said_of_enough_texts(rows: int, low: float, said: list[str]) -> None:
    sides = {"new": {"rows": rows}, "held_out": {"rows": 80}}
    found = {"confidence": sides | {"change": 0.2, "low": low, "high": 0.3}, "unreachable": "no file"}
    assert verdict(found)[1:] == said


def test_frames_give_what_lists_give(trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    module, listed = TaskModule.load(trained["tfidf_svm"]), texts(rows(40, 3))
    expected = gw.shift(module, listed, reference=texts(rows(40, 4)))
    frame, other = pandas.DataFrame({"text": listed, "n": 1}), pandas.DataFrame({"text": texts(rows(40, 4))})
    for given in (frame, frame.text, {"text": listed}):
        found = gw.shift(module, given, reference=other.text)
        assert found["two_sample"]["auc"] == expected["two_sample"]["auc"]
    assert gw.shift(module, frame.rename(columns={"text": "t"}), columns={"text": "t"})["rows"]["new"] == 40
    assert repr(found).startswith(found["verdict"][0]) and "words of a text" in found._repr_html_()
    with pytest.raises(DataError, match=r'^data: no column(?s:.*)columns=\{"text": "texts"\}'):
        gw.shift(module, frame.rename(columns={"text": "texts"}))
    with pytest.raises(DataError, match="data: row 1: the column 'text' has no value"):
        gw.shift(module, pandas.DataFrame({"text": ["a", None]}))
    with pytest.raises(ConfigError, match="no list of texts"):
        gw.shift(module, 5)
