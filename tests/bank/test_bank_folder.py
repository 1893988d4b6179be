"""The folder of a bank: whole at every moment, whoever writes, whatever is killed, full, read-only or damaged."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from folders import BACKBONE, fake_module, named, require_tidy, well

import graftwork
from graftwork.bank import ledger as ledger_module
from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.ledger import replay
from graftwork.errors import ConfigError, IncompatibleModule, StorageError, UnknownName
from graftwork.io.files import read_json, write_json

HERE = Path(__file__).parent
LIGHT = {**os.environ, "PYTHONPATH": str(Path(graftwork.__file__).parents[1])}
Module = Callable[..., Path]


@pytest.fixture
def fake(tmp_path: Path) -> Module:
    """`fake("a")`: a module folder of that mark."""
    return lambda mark="one", **changes: fake_module(tmp_path / f"module_{mark}", mark, **changes)


@pytest.fixture
def bank(tmp_path: Path, fake: Module) -> BankFolder:
    """Two tasks, one of them in two versions."""
    made = BankFolder.create(tmp_path / "bank")
    made.add(fake("one"), "task", well)
    made.add(fake("two"), "task", well)
    made.add(fake("one"), "other", well)
    return made


def files_of(bank: BankFolder) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(bank.root.rglob("*")) if path.is_file()}


def test_a_bank_on_disk_is_as_its_documentation_says(bank: BankFolder) -> None:
    content = read_json(bank.root / "bank.json")
    assert content.keys() == {"format", "backbone", "precision", "backbone_seed", "head", "tasks"}
    assert content["format"] == 1 and content["backbone"] == BACKBONE and content["precision"] == "fp32"
    assert content["tasks"]["task"].keys() == {"version", "digest", "bytes", "added"}
    lines = [json.loads(line) for line in (bank.root / "ledger.jsonl").read_text().splitlines()]
    assert [(line["number"], line["action"], line.get("task"), line.get("version")) for line in lines] == [
        (1, "create", None, None),
        (2, "add", "task", 1),
        (3, "add", "task", 2),
        (4, "add", "other", 1),
    ]
    assert bank.versions("task") == [1, 2] and bank.entry("task").folder == bank.root / "tasks" / "task" / "2"
    require_tidy(bank)


def test_adding_the_current_version_again_changes_nothing(bank: BankFolder, fake: Module) -> None:
    before = files_of(bank)
    assert bank.add(fake("two"), "task", well).new is False
    assert files_of(bank) == before
    assert bank.add(fake("one"), "task", well).version == 3


def test_a_damaged_version_is_mended_by_adding_its_module_again(bank: BankFolder, fake: Module) -> None:
    delta = bank.folder("task", 2) / "delta.safetensors"
    delta.write_text("other weights")
    added = bank.add(fake("two"), "task", well)
    assert (added.new, added.version) == (True, 3) and named(bank)["task"][0] == 3
    (bank.folder("task", 3) / "module.json").unlink()
    assert bank.add(fake("two"), "task", well).version == 4


def test_a_version_under_a_name_that_was_given_up_is_not_used_again(bank: BankFolder, fake: Module) -> None:
    bank.rename("task", "called")
    bank.rollback("called", well, to=1)
    bank.remove("called")
    assert bank.add(fake("three"), "called", well).version == 3
    assert bank.add(fake("three"), "task", well).version == 3


def test_adding_touches_no_other_task(bank: BankFolder, fake: Module) -> None:
    before = files_of(bank)
    bank.add(fake("three"), "third", well)
    changed = {path for path, content in files_of(bank).items() if before.get(path) != content}
    assert {Path(path).relative_to(bank.root).parts[0] for path in changed} == {"bank.json", "ledger.jsonl", "tasks"}
    assert all("third" in path for path in changed if "/tasks/" in path)


def test_a_module_that_fails_its_test_is_not_added(bank: BankFolder, fake: Module) -> None:
    def fails(folder: Path) -> None:
        assert folder.parent == bank.root / "tasks" and (folder / "module.json").is_file()
        raise IncompatibleModule("the self-test gives other logits")

    before = files_of(bank)
    with pytest.raises(IncompatibleModule, match="self-test"):
        bank.add(fake("three"), "task", fails)
    with pytest.raises(IncompatibleModule, match="self-test"):
        bank.rollback("task", lambda folder: (_ for _ in ()).throw(IncompatibleModule("the self-test")))
    assert files_of(bank) == before
    require_tidy(bank)


def test_removing_leaves_no_trace_but_lines_in_the_ledger(bank: BankFolder, fake: Module) -> None:
    bank.remove("task")
    assert set(named(bank)) == {"other"} and not (bank.root / "tasks" / "task").exists()
    assert b"task" not in (bank.root / "bank.json").read_bytes().replace(b'"tasks"', b"")
    assert (bank.root / "ledger.jsonl").read_bytes().count(b'"task":"task"') == 3
    with pytest.raises(UnknownName, match="unknown task 'task'"):
        bank.remove("task")
    assert bank.add(fake("one"), "task", well).version == 3  # a path never means two things
    require_tidy(bank)


def test_a_renamed_task_keeps_its_versions(bank: BankFolder) -> None:
    before = named(bank)
    bank.rename("task", "called")
    assert named(bank) == {"called": before["task"], "other": before["other"]}
    assert bank.versions("called") == [1, 2] and list(bank.state().tasks) == ["called", "other"]
    require_tidy(bank)
    with pytest.raises(ConfigError, match="a task 'other' exists already"):
        bank.rename("called", "other")
    with pytest.raises(ConfigError, match="not a name for a task"):
        bank.rename("called", "a/b")


def test_a_name_whose_versions_had_these_numbers_is_not_given_to_another_task(bank: BankFolder, fake: Module) -> None:
    bank.add(fake("three"), "third", well)
    bank.remove("third")
    with pytest.raises(ConfigError, match=r"another task was named 'third'[\s\S]*choose another name"):
        bank.rename("task", "third")
    require_tidy(bank)
    bank.rename("task", "called")
    bank.add(fake("four"), "called", well)
    bank.rename("called", "task")  # back: the same versions by the same name
    assert named(bank)["task"][0] == 3
    bank.add(fake("five"), "third", well)
    with pytest.raises(ConfigError, match="another task was named 'called'"):
        bank.rename("third", "called")  # its only version is 2, and there was a called@2
    bank.rename("third", "new")
    assert named(bank)["new"][0] == 2
    require_tidy(bank)


def test_an_older_version_comes_back_and_the_newer_ones_are_kept(bank: BankFolder, fake: Module) -> None:
    added = bank.state().tasks["task"].added
    bank.add(fake("three"), "task", well)
    assert bank.rollback("task", well).version == 2
    assert bank.rollback("task", well).version == 1
    with pytest.raises(ConfigError, match="'task' has no version before 1"):
        bank.rollback("task", well)
    with pytest.raises(ConfigError, match=r"'task' has no version 9[\s\S]*one of 1, 2, 3"):
        bank.rollback("task", well, 9)
    with pytest.raises(ConfigError, match="'task' is at version 1 already"):
        bank.rollback("task", well, 1)
    assert bank.rollback("task", well, 2).added == added
    assert bank.add(fake("four"), "task", well).version == 4
    require_tidy(bank)


def test_a_version_keeps_its_own_date(bank: BankFolder, fake: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Self:
            return cls(2100, 1, 1, tzinfo=UTC)

    added = bank.entry("task", 1).added
    monkeypatch.setattr(ledger_module, "datetime", Later)
    bank.add(fake("one"), "third", well)  # the same files under another name
    bank.add(fake("one"), "task", well)  # and as a later version
    bank.rename("task", "called")
    assert bank.entry("called", 1).added == bank.rollback("called", well, 1).added == added
    assert bank.entry("called", 3).added.startswith("2100")


def test_a_folder_that_stands_where_a_version_would_is_left(bank: BankFolder, fake: Module) -> None:
    older = {name: (bank.root / name).read_bytes() for name in ("bank.json", "ledger.jsonl")}
    bank.add(fake("three"), "task", well)
    for name, content in older.items():  # both come back from one backup
        (bank.root / name).write_bytes(content)
    before = files_of(bank)
    with pytest.raises(StorageError, match=r"the folder of this version exists already[\s\S]*move it to another place"):
        bank.add(fake("four"), "task", well)
    assert files_of(bank) == before
    shutil.rmtree(bank.folder("task", 3))
    assert bank.add(fake("four"), "task", well).version == 3
    require_tidy(bank)


def test_what_no_bank_has_made_is_left_where_it_is(bank: BankFolder, fake: Module, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("kept", "7"):
        (mine / name).mkdir(parents=True)
        (mine / name / "file").write_text("mine")
    tasks = bank.root / "tasks"
    (tasks / ".DS_Store").write_text("a file")
    (tasks / ".linked").symlink_to(mine)
    (tasks / "linked").symlink_to(mine)
    (tasks / "notes").mkdir()
    (tasks / "notes" / "7").write_text("a file")
    for name in (".git", ".saved.by_me", ".ipynb_checkpoints"):
        (tasks / name / "1").mkdir(parents=True)
    (bank.root / ".bank.json.swp").write_text("an editor's")
    before = set(tasks.iterdir())
    (tasks / ".task.x1y2z3_4").mkdir()  # what a writer that was killed left
    (bank.root / ".bank.json.0a1b2c3d.part").touch()
    assert bank.add(fake("three"), "task", well).version == 3
    assert set(tasks.iterdir()) == before and (tasks / "notes" / "7").read_text() == "a file"
    assert all((tasks / name / "1").is_dir() for name in (".git", ".saved.by_me", ".ipynb_checkpoints"))
    assert {path.name for path in bank.root.glob(".bank*")} == {".bank.json.swp"}
    assert all((mine / name / "file").read_text() == "mine" for name in ("kept", "7"))


def test_an_edited_older_version_does_not_come_back(bank: BankFolder) -> None:
    (bank.folder("task", 1) / "delta.safetensors").write_text("other weights")
    with pytest.raises(IncompatibleModule, match="a file of this task has changed since it was added"):
        bank.rollback("task", well)
    assert bank.state().tasks["task"].version == 2


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a b", "é", "x" * 65, "a\n"])
def test_names_that_are_refused(name: str, bank: BankFolder, fake: Module) -> None:
    with pytest.raises(ConfigError, match="not a name for a task"):
        bank.add(fake("three"), name, well)


def test_another_backbone_revision_or_precision_is_refused_with_both_named(bank: BankFolder, fake: Module) -> None:
    before = files_of(bank)
    other = {"id": "minilm", "revision": "b" * 64}
    for changes, got in (
        ({"backbone": other}, "minilm, revision bbbbbbbbbbbbbbbb, in fp32"),
        ({"backbone": BACKBONE | {"revision": "c" * 64}}, "tiny_text, revision cccccccccccccccc, in fp32"),
        ({"precision": "bf16"}, "tiny_text, revision aaaaaaaaaaaaaaaa, in bf16"),
    ):
        with pytest.raises(IncompatibleModule) as raised:
            bank.add(fake("three", **changes), "new", well)
        assert (raised.value.got, raised.value.expected) == (got, "tiny_text, revision aaaaaaaaaaaaaaaa, in fp32")
    assert files_of(bank) == before
    assert bank.add(fake("none", backbone=None, precision="bf16"), "new", well).new


def test_the_first_module_with_a_backbone_decides_it(tmp_path: Path, fake: Module) -> None:
    bank = BankFolder.create(tmp_path / "bank")
    bank.add(fake("none", backbone=None, precision="bf16"), "none", well)
    assert (bank.state().backbone, bank.state().precision) == (None, None)
    bank.add(fake("one", backbone_seed=7), "one", well)
    state = bank.state()
    assert (state.backbone, state.precision, state.backbone_seed) == (BACKBONE, "fp32", 7)
    named_first = BankFolder.create(tmp_path / "named", precision="bf16")
    with pytest.raises(IncompatibleModule, match="in bf16"):
        named_first.add(fake("one"), "one", well)


@pytest.mark.parametrize(
    "changes", [("add",), pytest.param(("update", "remove", "rename", "rollback"), marks=pytest.mark.slow)]
)
def test_what_is_killed_leaves_the_old_or_the_new(tmp_path: Path, changes: tuple[str, ...]) -> None:
    words = [sys.executable, str(HERE / "killed.py"), str(tmp_path), *changes]
    done = subprocess.run(words, env=LIGHT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    assert tuple(steps) == changes and all(count >= (10 if name == "add" else 4) for name, count in steps.items())


@pytest.mark.slow
def test_several_processes_add_at_once(tmp_path: Path) -> None:
    bank, modules = BankFolder.create(tmp_path / "bank"), tmp_path / "modules"
    writers, count = ("a", "b", "c", "d"), 6
    for name in writers:
        for number in range(count):
            fake_module(modules / f"{name}_{number}", f"{name}_{number}")
    words = [sys.executable, str(HERE / "adding.py"), str(bank.root), str(modules)]
    running = [subprocess.Popen([*words, name, str(count)], env=LIGHT) for name in writers]
    (modules / "go").touch()
    while any(process.poll() is None for process in running):
        named(bank)  # a reader, meanwhile
    assert [process.returncode for process in running] == [0] * len(writers)
    own = {f"{name}_{number}" for name in writers for number in range(0, count, 2)}
    assert set(named(bank)) == own | {"shared"}
    assert bank.versions("shared") == list(range(1, 1 + len(writers) * count // 2))
    assert len(bank.ledger(bank.state()).changes) == 1 + len(writers) * count
    require_tidy(bank)


@pytest.mark.usefixtures("no_locks")
def test_a_file_system_without_locks_has_one_writer(bank: BankFolder, fake: Module) -> None:
    assert bank.add(fake("new"), "other", well).new
    bank.rename("other", "another")
    assert "another" in named(bank)
    require_tidy(bank)


def test_a_full_disk_at_any_moment_leaves_the_bank_as_it_was(
    bank: BankFolder, fake: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, before, sync = fake("three"), files_of(bank), os.fsync
    left = [0]

    def full(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    failed = 0
    while True:
        left[0] = failed
        try:
            bank.add(module, "new", well)
            break
        except StorageError as error:
            assert "the disk is full" in error.message and "free some space" in error.message
            left[0] = 10**9
        if set(named(bank)) == {"task", "other", "new"}:  # only the last wait for the disk failed: all is there
            break
        assert files_of(bank) == before
        bank.add(fake("two"), "task", well)  # nothing new, but whoever writes tidies up
        require_tidy(bank)
        failed += 1
    assert failed >= 5
    require_tidy(bank)


@pytest.fixture
def locked_away(tmp_path: Path) -> Iterator[Path]:
    """A place where nothing can be written, also when the tests are run by root, who then is nobody for a while."""
    place = Path(tempfile.mkdtemp(prefix="graftwork-test-"))
    place.chmod(0o755)
    root = os.geteuid() == 0
    bank = BankFolder.create(place / "bank")
    bank.add(fake_module(place / "module", "one"), "task", well)
    for path in place.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if root:
        os.seteuid(65534)
    yield place
    if root:
        os.seteuid(0)
    for path in [place, *place.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(place)


def test_a_read_only_bank_is_read_and_says_that_it_can_not_be_changed(locked_away: Path) -> None:
    bank = BankFolder(locked_away / "bank")
    before = named(bank)
    changes: list[Callable[[], Any]] = [
        lambda: bank.add(locked_away / "module", "new", well),
        lambda: bank.remove("task"),
        lambda: bank.rename("task", "called"),
        lambda: BankFolder.create(locked_away / "bank" / "new"),
    ]
    for change in changes:
        with pytest.raises(StorageError, match=r"cannot read or write here: Permission denied[\s\S]*do: +choose"):
            change()
    assert named(bank) == before and bank.versions("task") == [1]


def test_a_tail_of_the_ledger_is_taken_off_by_the_next_writer(bank: BankFolder, fake: Module) -> None:
    ledger = bank.root / "ledger.jsonl"
    for torn in (b'{"action":"add","dig', b'{"action":"add","dig\n'):
        with ledger.open("ab") as stream:
            stream.write(torn)
        assert bank.ledger(bank.state()).after == 1
        bank.add(fake(f"t{len(torn)}"), "third", well)
        require_tidy(bank)
    assert b'"dig\n' not in ledger.read_bytes()


@pytest.mark.parametrize(("task", "version"), [("../../precious", 1), ("task", "../../../precious"), ("..", 1)])
def test_a_forged_line_removes_nothing_elsewhere(task: str, version: Any, bank: BankFolder, fake: Module) -> None:
    precious = bank.root.parent / "precious" / "1"
    precious.mkdir(parents=True)
    forged = bank.ledger(bank.state()).next("add", task, version, "d")
    with (bank.root / "ledger.jsonl").open("ab") as stream:
        stream.write(forged.line + b"\n")
    before = named(bank)
    bank.add(fake("three"), "third", well)
    assert precious.is_dir() and named(bank).items() > before.items()
    require_tidy(bank)


def test_what_others_put_into_the_folder_is_left_alone(bank: BankFolder, fake: Module) -> None:
    mine = bank.root / "tasks" / "by_hand"
    shutil.copytree(fake("one"), mine)
    bank.add(fake("three"), "third", well)
    assert (mine / "module.json").is_file() and "by_hand" not in named(bank)


@pytest.mark.parametrize("change", ["add", "update", "remove", "rename", "rollback"])
def test_a_bank_json_that_is_one_change_old_loses_nothing(change: str, bank: BankFolder, fake: Module) -> None:
    older = (bank.root / "bank.json").read_bytes()
    changes: dict[str, Callable[[], Any]] = {
        "add": lambda: bank.add(fake("three"), "new", well),
        "update": lambda: bank.add(fake("three"), "task", well),
        "remove": lambda: bank.remove("task"),
        "rename": lambda: bank.rename("task", "called"),
        "rollback": lambda: bank.rollback("task", well),
    }
    changes[change]()
    after, newer = named(bank), bank.state()
    (bank.root / "bank.json").write_bytes(older)
    with pytest.raises(UnknownName):
        bank.remove("nobody")
    assert bank.state() == newer
    bank.add(fake("four"), "next", well)
    assert named(bank).items() > after.items()
    require_tidy(bank)


def test_the_first_task_of_a_bank_brings_its_backbone_again(tmp_path: Path, fake: Module) -> None:
    bank = BankFolder.create(tmp_path / "bank")
    older = (bank.root / "bank.json").read_bytes()
    bank.add(fake("one"), "task", well)
    newer = bank.state()
    (bank.root / "bank.json").write_bytes(older)
    with pytest.raises(UnknownName):
        bank.remove("nobody")
    assert bank.state() == newer


def test_a_tail_that_follows_another_line_is_not_taken_for_a_change(bank: BankFolder, fake: Module) -> None:
    before = named(bank)
    stray = replace(bank.ledger(bank.state()).next("remove", "task", 2, "d"), previous="0" * 64)
    with (bank.root / "ledger.jsonl").open("ab") as stream:
        stream.write(stray.line + b"\n")
    bank.add(fake("three"), "third", well)
    assert named(bank).items() > before.items()


def test_an_older_bank_json_is_not_written_over(bank: BankFolder, fake: Module) -> None:
    older = (bank.root / "bank.json").read_bytes()
    for mark in ("three", "four"):
        bank.add(fake(mark), "task", well)
    (bank.root / "bank.json").write_bytes(older)
    before = files_of(bank)
    with pytest.raises(StorageError, match=r"has 2 later lines[\s\S]*restore the newest bank.json"):
        bank.add(fake("five"), "task", well)
    assert files_of(bank) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[0], *lines[2:]], "damaged at line 2: it doesn't follow"),
        (lambda lines: [lines[0], lines[1].replace(b'"version":1', b'"version":5'), *lines[2:]], "damaged at line 3"),
        (lambda lines: [lines[0], b"{}", *lines[2:]], "damaged at line 2: it is not a change of a bank"),
        (lambda lines: lines[:3], "damaged at line 3: this is the last complete line"),
        (lambda lines: [], "damaged at line 0"),
        (lambda lines: [*lines[:3], lines[3].replace(b"other", b"ohter")], "damaged at line 4: this is the last"),
    ],
)
def test_a_damaged_ledger_is_said_and_nothing_is_changed(
    change: Callable[[list[bytes]], list[bytes]], message: str, bank: BankFolder, fake: Module
) -> None:
    path = bank.root / "ledger.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))
    before = files_of(bank)
    for action in (lambda: bank.add(fake("three"), "new", well), lambda: bank.remove("task")):
        with pytest.raises(StorageError, match=message):
            action()
    assert files_of(bank) == before
    assert set(named(bank)) == {"task", "other"}  # readers go on


def test_a_ledger_that_changes_what_is_not_there_is_damaged(bank: BankFolder) -> None:
    forged = bank.ledger(bank.state()).next("remove", "nobody", 1, "d")
    with (bank.root / "ledger.jsonl").open("ab") as stream:
        stream.write(forged.line + b"\n")
    write_json(bank.root / "bank.json", read_json(bank.root / "bank.json") | {"head": forged.hash})
    with pytest.raises(StorageError, match="damaged at line 5: there was no 'nobody' to change"):
        bank.versions("task")


def test_a_bank_json_that_was_edited_is_found(bank: BankFolder, fake: Module) -> None:
    path = bank.root / "bank.json"
    content = read_json(path)
    write_json(path, content | {"tasks": {"task": content["tasks"]["task"] | {"version": 1}}})
    with pytest.raises(StorageError, match=r"disagree about 'other'[\s\S]*no such task[\s\S]*version 1"):
        bank.add(fake("three"), "new", well)
    for changed, message in (
        ({**content, "format": 2}, "another version of Graftwork"),
        ({**content, "tasks": {"task": {}}}, "bank.json is damaged"),
        ({"format": 1}, "bank.json is damaged"),
        ([], "bank.json is damaged"),
        ({**content, "tasks": {"../task": content["tasks"]["task"]}}, "bank.json is damaged"),
        ({**content, "tasks": {"task": content["tasks"]["task"] | {"version": "../.."}}}, "bank.json is damaged"),
    ):
        write_json(path, changed)
        with pytest.raises(IncompatibleModule, match=message):
            bank.state()
    path.write_text('{"format": 1,')
    with pytest.raises(StorageError, match="not a valid JSON file"):
        bank.state()
    path.unlink()
    with pytest.raises(StorageError, match=r"no bank here[\s\S]*graft bank create"):
        bank.state()


def test_no_bank_is_made_where_something_is(bank: BankFolder, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="a bank exists already"):
        BankFolder.create(bank.root)
    with pytest.raises(StorageError, match="the folder is not empty"):
        BankFolder.create(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="a file is in the place of a folder"):
        BankFolder.create(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert BankFolder.create(tmp_path / "empty").state().tasks == {}
    assert BankFolder.create(tmp_path / "deep" / "er").state().tasks == {}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_no_module_here(bank: BankFolder, tmp_path: Path, fake: Module) -> None:
    with pytest.raises(StorageError, match="not a task module"):
        bank.add(tmp_path, "new", well)
    broken = fake("three")
    write_json(broken / "module.json", {"task": {}})
    with pytest.raises(IncompatibleModule, match=r"module\.json is damaged"):
        bank.add(broken, "new", well)


def test_many_names_are_not_all_listed(bank: BankFolder, fake: Module) -> None:
    for number in range(30):
        bank.add(fake("one"), f"task_{number:02}", well)
    with pytest.raises(UnknownName) as raised:
        bank.remove("task_2O")
    assert raised.value.expected.count(",") <= 20 and "did you mean 'task_2" in raised.value.do


def test_files_of_banks_are_read_without_torch() -> None:
    modules = "graftwork.bank.bank_folder, graftwork.bank.version_difference"
    code = f"import {modules}, sys; assert not {{'torch', 'numpy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], env=LIGHT, check=True)


def test_the_ledger_alone_tells_what_is_in_the_bank(bank: BankFolder) -> None:
    bank.rename("other", "third")
    bank.rollback("task", well)
    kept = replay(bank.ledger(bank.state()).changes)
    assert {name: (task.current, sorted(task.versions)) for name, task in kept.items()} == {
        "task": (1, [1, 2]),
        "third": (1, [1]),
    }
