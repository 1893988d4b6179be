"""The ladder: what is kept, what is written, and what is refused before anything is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graftwork import compress
from graftwork.core.progress import silent
from graftwork.errors import ConfigError, StorageError, UnknownName
from graftwork.io.files import read_json, write_json
from graftwork.module.task_module import TaskModule
from graftwork.registry import compressions
from graftwork.ship.compress import ladder
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.distil import Distil
from graftwork.ship.compressions.merge import Merge
from graftwork.ship.compressions.prune import Prune
from graftwork.ship.rung_measure import RelativeSpeed, ScoreLoss
from graftwork.ship.rung_search import RungSearch, RungTried
from graftwork.ship.runtime_rung import RuntimeRung

Teacher = Callable[..., tuple[TaskModule, CompressionData]]
ANY = 100.0  # points: every loss is allowed


def test_rungs_that_help_are_kept_and_told(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    texts = tmp_path / "texts.csv"
    texts.write_text("text\nzqzq\n")
    found = compress(
        module.folder, tmp_path / "small", allow=ANY, aim="bytes", rungs="merge,vocabulary,half", texts=texts
    )
    assert found["kept"] == ["merge", "vocabulary", "half"] and found["module"] == str(tmp_path / "small")
    sizes = [found["original"]["bytes"], *(rung["bytes"] for rung in found["rungs"])]
    assert sizes == sorted(sizes, reverse=True)
    made = TaskModule.load(tmp_path / "small")
    told = made.description
    assert told["scores"]["accuracy"] == pytest.approx(found["test"]["score"])
    assert (
        told["compression"]["of"]["run"] == module.description["run"] and told["compression"]["kept"] == found["kept"]
    )
    assert "accuracy" in (tmp_path / "small" / "README.md").read_text()
    assert made.predict(["zqzq"])[0]["label"] == module.predict(["zqzq"])[0]["label"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small", "texts.csv"]


def test_what_is_not_shown_to_be_small_is_not_kept(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    found = compress(module.folder, tmp_path / "small", allow=0.5, aim="bytes", rungs=["half"])
    assert found["module"] is None and found["rungs"][0]["verdict"] == "loss not shown to be small"
    assert found["rows_needed"] == 598 and [*tmp_path.iterdir()] == []


def test_a_rung_that_does_not_help_is_not_kept(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    found = compress(module.folder, tmp_path / "small", allow=ANY, aim="bytes", rungs="merge,vocabulary:common=9999")
    assert [rung["verdict"] for rung in found["rungs"]] == ["kept: no answer changes", "no gain"]


@pytest.mark.parametrize(
    ("rungs", "runtime", "told"),
    [
        ("merge,int8", "onnx", "int8 stores weights for torch alone, and the runtime is onnx"),
        ("merge,onnx int8", None, "'onnx int8' is the last rung of a runtime"),
    ],
)
def test_rungs_that_do_not_go_together_are_refused(rungs: str, runtime: str | None, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ladder(rungs, runtime)


def test_nothing_is_trained_that_could_not_be_kept(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    planned: list[tuple[str, float | None]] = []
    found = compress(module.folder, tmp_path / "small", allow=0.5, rungs="merge,distil,prune", plan=planned.extend)
    assert planned == [("merge", None), ("distil", None), ("prune", None)]
    assert ["too few rows" in rung["verdict"] for rung in found["rungs"]] == [False, True, True]


def test_a_loss_of_just_what_is_allowed_is_kept(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    search = RungSearch(module, data, 0.02, "speed", 0, tmp_path)
    faster = replace(search.stage, pace=RelativeSpeed(2.0))
    assert 0.9 - 0.88 > 0.02  # as scores of fp64 differ
    assert search._verdict(False, ScoreLoss(0.88, 0.005, 0.9 - 0.88), faster) == (True, "kept")
    assert search._verdict(False, ScoreLoss(0.88, 0.005, 0.021), faster)[1] == "loss not shown to be small"


Outcomes = dict[tuple[str, ...], tuple[bool, float, float]]  # rungs kept before and this one -> kept, loss, speed
HALF, THIRD, PRUNE, LAST = "distil", "distil:dropped=third", "prune", "onnx int8"
STUDENTS: Outcomes = {
    (HALF,): (True, 0.019, 2.0),
    (HALF, PRUNE): (False, 0.05, 2.5),  # on the other student it is not trained again
    (HALF, LAST): (False, 0.021, 4.5),
    (THIRD,): (True, 0.01, 1.5),
    (THIRD, LAST): (True, 0.015, 4.0),
}


def climbing(outcomes: Outcomes) -> Callable[[RungSearch, str, object, object], None]:
    """Return a `climb` that applies nothing and has these outcomes."""

    def climb(self: RungSearch, label: str, compression: object, progress: object) -> None:
        kept, loss, speed = outcomes[(*(one.rung for one in self.tried if one.kept), label)]
        stage = replace(self.stage, pace=RelativeSpeed(speed))
        told = RungTried(label, "kept" if kept else "too lossy", kept, False, ScoreLoss(0.9, loss, loss), stage)
        self.tried.append(told)

    return climb


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ({}, [THIRD, LAST]),
        ({(THIRD, LAST): (False, 0.021, 4.0)}, [HALF]),  # the way that was not better is given up
        ({(THIRD,): (False, 0.03, 1.5), (LAST,): (True, 0.001, 1.8)}, [HALF]),
        ({(HALF, LAST): (True, 0.02, 4.5)}, [HALF, LAST]),
    ],
)
def test_a_weaker_student_follows_where_the_last_rung_loses_too_much(
    other: Outcomes, kept: list[str], tmp_path: Path, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, data = teacher()
    monkeypatch.setattr(RungSearch, "climb", climbing(STUDENTS | other))
    search = RungSearch(module, data, 0.02, "speed", 0, tmp_path)
    rungs = [(HALF, Distil()), (THIRD, Distil(dropped="third")), (PRUNE, Prune()), (LAST, RuntimeRung("onnx", True))]
    search.climb_alternatives(rungs, silent)
    assert [one.rung for one in search.tried if one.kept] == kept
    assert search.stage.pace.ratio == (STUDENTS | other)[tuple(kept)][2]
    given_up = [one.rung for one in search.tried if one.verdict.startswith("given up")]
    assert set(given_up).isdisjoint(kept) and (not given_up or len(search.tried) > len(rungs))


QUARTER = "prune:columns=0.25"
PRUNED: Outcomes = {
    (HALF,): (True, 0.005, 2.0),
    (HALF, QUARTER): (True, 0.019, 3.4),
    (HALF, QUARTER, LAST): (False, 0.021, 9.0),
    (HALF, PRUNE): (True, 0.015, 2.7),
    (HALF, PRUNE, LAST): (True, 0.016, 7.4),
    (THIRD,): (True, 0.004, 1.5),
    (THIRD, LAST): (True, 0.01, 4.3),  # what was trained on the other student is not trained again
}


@pytest.mark.parametrize(
    ("other", "kept", "tried"),
    [
        ({}, [HALF, PRUNE, LAST], 5),
        ({(HALF, PRUNE, LAST): (False, 0.021, 7.4)}, [THIRD, LAST], 7),
        ({(HALF, PRUNE, LAST): (False, 0.021, 7.4), (THIRD, LAST): (False, 0.03, 4.3)}, [HALF, QUARTER], 7),
    ],
)
def test_the_last_rung_with_an_alternative_gives_way_first(
    other: Outcomes, kept: list[str], tried: int, tmp_path: Path, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, data = teacher()
    monkeypatch.setattr(RungSearch, "climb", climbing(PRUNED | other))
    search = RungSearch(module, data, 0.02, "speed", 0, tmp_path)
    weaker = [(THIRD, Distil(dropped="third")), (QUARTER, Prune(columns=0.25)), (PRUNE, Prune())]
    search.climb_alternatives([(HALF, Distil()), *weaker, (LAST, RuntimeRung("onnx", True))], silent)
    assert [one.rung for one in search.tried if one.kept] == kept and len(search.tried) == tried
    assert search.stage.pace.ratio == (PRUNED | other)[tuple(kept)][2]


def test_training_is_foreseen(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    search = RungSearch(module, data, 1.0, "speed", 0, tmp_path)
    short, long = (search.foreseen(Distil(epochs=epochs)) for epochs in (1, 10))
    assert short is not None and long is not None and 0 < 3 * short < long
    assert search.foreseen(Merge()) is None


def test_exact_rungs_come_first_and_every_one_has_a_place() -> None:
    labels = [label for label, _ in ladder(())]
    assert labels[0] == "merge" and labels.index("vocabulary") < labels.index("vocabulary:common=8000")
    assert labels.index("distil:student=static") < labels.index("distil") < labels.index("distil:dropped=third")
    assert labels.index("distil:dropped=third") < labels.index("prune:columns=0.25") < labels.index("prune")
    assert labels.index("prune") < labels.index("vocabulary")
    assert {label.partition(":")[0] for label in labels} <= set(compressions.names())
    with pytest.raises(UnknownName, match="merge"):
        ladder("merg")


@pytest.mark.parametrize("student", ["hf:/models/small:v2", "static", "hf:models/a=b"])
def test_a_student_may_be_a_named_backbone(student: str) -> None:
    [(label, made)] = ladder(f"distil:student={student}:epochs=3")
    assert made == Distil(student=student, epochs=3) and label == f"distil:student={student}:epochs=3"


def test_of_the_settings_on_the_ladder_one_is_kept(
    tmp_path: Path, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = teacher()
    named = "half,vocabulary:common=20,vocabulary:common=10"
    rungs = ladder(named)
    given = compress(module.folder, tmp_path / "given", allow=ANY, aim="bytes", rungs=named)
    monkeypatch.setattr("graftwork.ship.compress.ladder", lambda *_: rungs)
    found = compress(module.folder, tmp_path / "small", allow=ANY, aim="bytes")
    assert found["kept"] == [label for label, _ in rungs[:2]] == [rung["rung"] for rung in found["rungs"]]
    assert len(given["rungs"]) == 3, "rungs that are named are all tried"


def test_settings_and_places_are_checked_first(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    for allow in (-1.0, float("nan")):
        with pytest.raises(ConfigError, match="allow is a number"):
            compress(module.folder, tmp_path / "small", allow=allow)
    with pytest.raises(UnknownName, match="aim"):
        compress(module.folder, tmp_path / "small", aim="bites")
    with pytest.raises(StorageError, match="exists already"):
        compress(module.folder, tmp_path)
    with pytest.raises(StorageError):
        compress(module.folder, Path("/proc/small"), rungs="merge")


def test_data_that_was_moved_is_named(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher()
    folder = Path(shutil.copytree(module.folder, tmp_path / "module"))
    told = read_json(folder / "module.json")
    data = Path(told["data"]["files"]["data"])
    told["data"]["files"]["data"] = str(tmp_path / "gone.csv")
    write_json(folder / "module.json", told)
    with pytest.raises(ConfigError, match="trained on is needed") as refused:
        compress(folder, tmp_path / "small", rungs="merge")
    assert "--data FILE" in refused.value.do
    shutil.copy(data, tmp_path / "moved.csv")
    found = compress(folder, tmp_path / "small", allow=ANY, aim="bytes", rungs="merge", data=tmp_path / "moved.csv")
    assert found["kept"] == ["merge"]


def test_a_method_without_a_network_has_nothing_to_compress(tmp_path: Path, teacher: Teacher) -> None:
    module, _ = teacher(method="majority")
    with pytest.raises(ConfigError, match="uses no network"):
        compress(module.folder, tmp_path / "small")
