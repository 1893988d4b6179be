"""The store: whole runs or none, found by id, and errors that say what to do."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult, RunSpec
from graftwork.core.task import Split
from graftwork.errors import StorageError, UnknownName
from graftwork.io import heartbeat, locks
from graftwork.io.files import read_json, require_writable, write_json
from graftwork.run.store import HEARTBEAT, RunStore, read_logits, read_result, write_predictions, write_run

SPEC = RunSpec({}, "data", None, {"name": "majority"}, {}, 0, {})


def put(store: RunStore, run_id: str, status: str = "ok") -> RunResult:
    result = RunResult(run_id, 0, status, {"accuracy": 0.5}, costs={"money": Cost(None, "EUR", "model")})
    with store.writing(run_id) as folder:
        write_run(folder, SPEC, result)
    return result


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    require_writable(tmp_path / "deep" / "runs")
    return RunStore(tmp_path / "deep" / "runs")


def test_what_is_put_is_found(store: RunStore) -> None:
    result = put(store, "aaa")
    assert store.find("aaa") == result == read_result(store.root / "aaa" / "result.json")
    assert store.find("bbb") is None
    spec = json.loads((store.root / "aaa" / "spec.json").read_text())
    assert spec["format"] == 1 and spec["method"] == {"name": "majority"}


def test_a_run_appears_whole_or_not_at_all(store: RunStore) -> None:
    with store.writing("aaa") as folder:
        assert folder.parent == store.root and not (store.root / "aaa").exists() and store.ids() == []
        write_run(folder, SPEC, RunResult("aaa", 0, "ok"))
        assert store.ids() == []
    assert store.ids() == ["aaa"]
    with pytest.raises(RuntimeError), store.writing("bbb") as folder:
        write_run(folder, SPEC, RunResult("bbb", 0, "ok"))
        raise RuntimeError
    assert [path.name for path in store.root.iterdir()] == ["aaa"]


def test_a_failed_run_is_not_found_and_is_replaced(store: RunStore) -> None:
    put(store, "aaa", "failed")
    (store.root / "aaa" / "left over").touch()
    assert store.find("aaa") is None and store.ids() == ["aaa"]
    put(store, "aaa", "dropped")
    assert not (store.root / "aaa" / "left over").exists()
    put(store, "aaa")
    put(store, "aaa", "failed")  # of another process, too late
    found = store.find("aaa")
    assert found is not None and found.status == "ok"
    assert [path.name for path in store.root.iterdir()] == ["aaa"]


def test_oldest_first_and_by_the_beginning_of_the_id(store: RunStore) -> None:
    for age, name in enumerate(("bbb1", "aaa1", "bbb2")):
        put(store, name)
        os.utime(store.root / name, (1000 + age, 1000 + age))
    (store.root / ".half.x").mkdir()
    (store.root / "no run").mkdir()
    assert store.ids() == ["bbb1", "aaa1", "bbb2"]
    assert store.folder("a") == store.root / "aaa1"
    with pytest.raises(UnknownName, match="unknown run 'bbb3'"):
        store.folder("bbb3")
    for number in range(8):
        put(store, f"ccc{number}")
    with pytest.raises(UnknownName) as raised:
        store.folder("zzz")
    assert raised.value.expected.startswith("one of …, aaa1, bbb2, ") and raised.value.do == "graft ls lists all"
    with pytest.raises(StorageError, match="'bbb' begins several runs"):
        store.folder("bbb")


def test_a_folder_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file is in the place of a folder"):
        require_writable(tmp_path / "file" / "runs")


def test_looking_writes_nothing(store: RunStore) -> None:
    put(store, "aaa")
    store.root.chmod(0o555)
    before = store.root.stat().st_mtime_ns
    try:
        looking = RunStore(store.root)
        assert (looking.ids(), looking.folder("a").name, looking.find("bbb")) == (["aaa"], "aaa", None)
        assert store.root.stat().st_mtime_ns == before
    finally:
        store.root.chmod(0o755)


def test_a_result_of_another_format_or_a_torn_one(store: RunStore) -> None:
    put(store, "aaa")
    path = store.root / "aaa" / "result.json"
    write_json(path, json.loads(path.read_text()) | {"format": 99})
    with pytest.raises(StorageError, match="another version"):
        store.find("aaa")
    path.write_text('{"format": 1, "id"')
    with pytest.raises(StorageError, match="not a valid JSON file"):
        store.find("aaa")


def test_the_seeds_of_an_old_result_are_not_in_its_way(store: RunStore) -> None:
    result, path = put(store, "aaa"), store.root / "aaa" / "result.json"
    assert "seeds" not in read_json(path)
    write_json(path, read_json(path) | {"seeds": {"init": 5, "split": None}})
    assert store.find("aaa") == result


def test_logits_come_back_bit_for_bit_and_in_order(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    splits = []
    for name in ("validation", "test"):
        examples = tuple(Example(f"{name}/{i}", {"text": "ü\u2028x"}, "a") for i in range(5))
        splits.append((Split(name, examples, np.zeros(5)), random.normal(size=(5, 3)) * 10.0 ** random.integers(-9, 9)))
    decoded = {split.name: [{"label": "a"}] * 5 for split, _ in splits}
    write_predictions(tmp_path, splits, decoded)
    for split, logits in splits:
        assert np.array_equal(read_logits(tmp_path, split.name), logits)


@pytest.mark.parametrize("torn", [b'{"id": "test/1", "spl', b'{"id": "test/1", "split": "test"}\n', b"[]\n", b"1\n"])
def test_predictions_that_are_torn_are_named(torn: bytes, tmp_path: Path) -> None:
    split = Split("test", (Example("test/0", {"text": "x"}, "a"),), np.zeros(1))
    write_predictions(tmp_path, [(split, np.zeros((1, 2)))], {"test": [{"label": "a"}]})
    with (tmp_path / "predictions.jsonl").open("ab") as stream:
        stream.write(torn)
    with pytest.raises(StorageError, match=r"predictions\.jsonl, line 2: not the predictions of a run"):
        read_logits(tmp_path, "test")


@pytest.mark.parametrize(
    ("answer", "expected"), [({"label": "a"}, "a"), ({"label": ["a", "b"]}, ["a", "b"]), ({"value": 0.5}, 0.5)]
)
def test_an_answer_of_every_kind_is_written(answer: dict[str, object], expected: object, tmp_path: Path) -> None:
    split = Split("test", (Example("test/1", {"text": "x"}, ("a", "b")),), np.zeros(1))
    write_predictions(tmp_path, [(split, np.zeros((1, 2)))], {"test": [answer]})
    line = json.loads((tmp_path / "predictions.jsonl").read_text())
    assert line == {"id": "test/1", "split": "test", "target": ["a", "b"], "prediction": expected, "logits": [0, 0]}


ID = "0123456789ab"


def test_a_claim_is_one_process_s_and_leaves_nothing(store: RunStore) -> None:
    other = RunStore(store.root)
    with store.claim(ID) as ours:
        assert ours and hidden(store) == [f".{ID}.claim"]
        with other.claim(ID) as theirs, other.claim("ba9876543210") as another:
            assert not theirs and another
        with other.claim(ID) as theirs:
            assert not theirs
    with other.claim(ID) as theirs:
        assert theirs
    assert hidden(store) == []


def hidden(store: RunStore) -> list[str]:
    return sorted(path.name for path in store.root.glob(".*"))


HOLDER = """
import sys
import time
from pathlib import Path
from graftwork.run.store import RunStore

store = RunStore(Path(sys.argv[1]))
with store.claim(sys.argv[2]) as ours, store.writing(sys.argv[2]) as folder:
    (folder / "log.jsonl").touch()
    print(ours, flush=True)
    sys.stdin.readline()
"""


def test_a_claim_dies_with_its_process_and_its_folder_is_swept(store: RunStore) -> None:
    command = [sys.executable, "-c", HOLDER, str(store.root), ID]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        before = hidden(store)
        assert len(before) == 2
        with store.claim(ID) as ours:
            assert not ours
        store.sweep()
        assert hidden(store) == before
        holder.kill()
    assert hidden(store) == before
    store.sweep()
    assert hidden(store) == []


def leftovers(store: RunStore) -> None:
    """What two killed processes and a checkpointing one leave."""
    for name in (f".{ID}.abcd_012", ".ba9876543210.abcd_012.replaced", f".{ID}.checkpoint", ".forecast.abcd_012"):
        (store.root / name).mkdir()
        (store.root / name / "result.json").touch()
    os.utime(store.root / f".{ID}.abcd_012", (1000, 1000))
    (store.root / ".fed.claim").touch()
    (store.root / ".mine").touch()


def test_leftovers_go_and_checkpoints_stay(store: RunStore) -> None:
    leftovers(store)
    with store.claim(ID):
        pass
    assert f".{ID}.abcd_012" not in hidden(store)
    store.sweep()
    assert hidden(store) == [f".{ID}.checkpoint", ".forecast.abcd_012", ".mine"]
    assert store.ids() == ["ba9876543210"]  # a failed run that was on its way out comes back
    os.utime(store.root / ".forecast.abcd_012", (1000, 1000))
    store.sweep()
    assert hidden(store) == [f".{ID}.checkpoint", ".mine"]


def test_where_nothing_can_be_locked_everyone_may_and_nothing_is_swept(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "try_lock", lambda handle: None)
    leftovers(store)
    before = hidden(store)
    with store.claim(ID) as ours, RunStore(store.root).claim(ID) as too:
        assert ours and too
    store.sweep()
    assert hidden(store) == [name for name in before if not name.endswith(".claim")]


@pytest.fixture
def granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that grants every lock to everybody."""
    monkeypatch.setattr(locks, "try_lock", lambda handle: True)


@pytest.mark.usefixtures("granted")
def test_two_machines_that_both_get_the_lock_leave_each_other_s_folder(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    other = RunStore(store.root)
    with store.claim(ID) as ours, store.writing(ID) as folder:
        (folder / "log.jsonl").touch()
        monkeypatch.setattr(heartbeat, "host", lambda: "another")
        with other.claim(ID) as theirs:
            assert ours and not theirs
        other.sweep()
        assert (folder / "log.jsonl").exists()
        os.utime(folder / HEARTBEAT, (1000, 1000))
        deadline = time.monotonic() + 10
        while (folder / HEARTBEAT).stat().st_mtime == 1000 and time.monotonic() < deadline:
            time.sleep(0.01)
        with other.claim(ID) as theirs:  # it beats
            assert not theirs
        write_run(folder, SPEC, RunResult(ID, 0, "ok"))
    assert other.find(ID) is not None and hidden(store) == []
    assert sorted(path.name for path in (store.root / ID).iterdir()) == ["log.jsonl", "result.json", "spec.json"]


def died(store: RunStore, host: str, pid: int, seconds: float = 0.0) -> Path:
    """Return the folder that a process of `host` left, whose last heartbeat was `seconds` ago."""
    folder = store.root / f".{ID}.abcd_012"
    folder.mkdir()
    (folder / HEARTBEAT).write_text(json.dumps({"host": host, "pid": pid}))
    os.utime(folder / HEARTBEAT, (time.time() - seconds,) * 2)
    return folder


@pytest.mark.usefixtures("granted")
@pytest.mark.parametrize(
    ("host", "alive", "seconds", "kept"),
    [
        ("another", False, 60.0, True),  # its processes can't be seen from here
        ("another", True, 600.0, False),
        ("", False, 0.0, False),
        ("", True, 60.0, True),
        ("", True, 600.0, False),  # the number is another process's by now
    ],
)
def test_a_folder_goes_when_its_process_is_gone(
    host: str, alive: bool, seconds: float, kept: bool, store: RunStore
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = died(store, host or heartbeat.host(), os.getpid() if alive else dead.pid, seconds)
    with store.claim(ID) as ours:
        assert ours is not kept
    assert folder.exists() is kept


@pytest.mark.usefixtures("granted")
@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": "x"}'])
def test_a_heartbeat_that_is_being_written_is_one(content: str, store: RunStore) -> None:
    folder = died(store, "another", 1)
    (folder / HEARTBEAT).write_text(content)
    with store.claim(ID) as ours:
        assert not ours
    (folder / HEARTBEAT).unlink()  # not yet made
    with store.claim(ID) as ours:
        assert not ours
    assert folder.exists()


@pytest.mark.parametrize("seconds", [0.0, 600.0])
def test_the_folder_of_another_user_can_not_be_looked_into(
    seconds: float, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = died(store, "another", 1), Path.open

    def refused(self: Path, *given: Any, **named: Any) -> Any:
        if self.parent == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(self, *given, **named)

    os.utime(folder, (time.time() - seconds,) * 2)
    monkeypatch.setattr(Path, "open", refused)
    with store.claim(ID) as ours:
        assert ours is (seconds > 0)


def test_a_run_that_failed_while_it_was_waited_for_counts(store: RunStore) -> None:
    put(store, ID, "failed")
    waiting = RunStore(store.root)
    with store.claim(ID):
        with waiting.claim(ID):
            pass
        assert waiting.find_claimed(ID) is None  # the other one died before it was done
        failed = put(store, ID, "diverged")
    assert waiting.find(ID) is None and waiting.find_claimed(ID) == failed
    assert RunStore(store.root).find_claimed(ID) is None


@pytest.mark.parametrize("again", [False, True], ids=["gone", "another"])
def test_a_folder_that_is_removed_meanwhile_is_no_run(again: bool, store: RunStore) -> None:
    """`write_json` makes the folder anew: what was written before is not in it."""
    with pytest.raises(StorageError, match="was removed while the run filled it"), store.writing("aaa") as folder:
        shutil.rmtree(folder)
        if again:
            write_run(folder, SPEC, RunResult("aaa", 0, "ok"))
    assert list(store.root.iterdir()) == []


def test_a_store_that_is_removed_meanwhile_is_one_message(store: RunStore) -> None:
    shutil.rmtree(store.root)
    with pytest.raises(StorageError, match=r"runs: no such file or folder"), store.claim(ID):
        pass
    with pytest.raises(StorageError, match=r"runs: no such file or folder"), store.writing(ID):
        pass


@pytest.mark.parametrize("what", ["file", "dangling link"])
def test_what_stands_where_a_run_belongs_is_told_before_the_work(what: str, store: RunStore, tmp_path: Path) -> None:
    place = store.root / "aaa"
    place.touch() if what == "file" else place.symlink_to(tmp_path / "gone")
    message = "a file is in the place of a folder" if what == "file" else "a broken link"
    with pytest.raises(StorageError, match=message), store.writing("aaa"):
        raise AssertionError("begun")
    assert [path.name for path in store.root.iterdir()] == ["aaa"]


def test_a_link_to_a_failed_run_is_replaced(store: RunStore, tmp_path: Path) -> None:
    put(store, "aaa", "failed")
    os.rename(store.root / "aaa", tmp_path / "elsewhere")
    (store.root / "aaa").symlink_to(tmp_path / "elsewhere")
    result = put(store, "aaa")
    assert store.find("aaa") == result and not (store.root / "aaa").is_symlink()
    assert (tmp_path / "elsewhere" / "result.json").is_file() and hidden(store) == []


def test_all_of_a_run_is_on_disk_before_its_name(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what a library has written that syncs nothing."""
    synced: set[tuple[int, int]] = set()
    fsync, rename = os.fsync, os.rename
    seen: list[bool] = []

    def noted(handle: int) -> None:
        fsync(handle)
        stat = os.fstat(handle)
        synced.add((stat.st_dev, stat.st_ino))

    def checked(source: Path, target: Path) -> None:
        if Path(target).name == "aaa" and Path(source).is_dir():
            stats = [path.stat() for path in (Path(source), *Path(source).rglob("*"))]
            seen.append(all((stat.st_dev, stat.st_ino) in synced for stat in stats))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", checked)
    with store.writing("aaa") as folder:
        (folder / "module").mkdir()
        (folder / "module" / "small.png").write_bytes(b"image")
        write_run(folder, SPEC, RunResult("aaa", 0, "ok"))
    assert seen == [True]


def test_a_failed_run_that_can_not_be_replaced_is_put_back(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    failed, rename = put(store, "aaa", "failed"), os.rename

    def full(source: Path, target: Path) -> None:
        if Path(target).name == "aaa" and not Path(source).name.endswith(".replaced"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(StorageError, match="the disk is full"):
        put(store, "aaa")
    assert read_result(store.root / "aaa" / "result.json") == failed and hidden(store) == []
