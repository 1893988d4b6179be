"""Passes on disk: bit for bit what would be computed, found only when nothing has changed, never in the way."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.example import Example
from graftwork.core.meter import Phase
from graftwork.core.method import Workbench
from graftwork.core.tally import Tally
from graftwork.core.task import Split
from graftwork.io.cache_folder import CacheFolder
from graftwork.io.locks import try_lock
from graftwork.machine import environment
from graftwork.machine.page_release import let_go
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.run.session import _disk as disk_of
from graftwork.run.settings import RunSettings
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import frozen_pass, prefix_store
from graftwork.train.frozen_pass import FrozenStore, Pass
from graftwork.train.prefix_store import PassSpec, PrefixStore

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="bf16")
NUMERICS = {"precision": "bf16", "threads": 1, "device": "cpu"}
CAP = 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "prefix"


def store(root: Path, cap: int = CAP, numerics: Any = None) -> FrozenStore:
    """What a new process would open."""
    return FrozenStore(disk=PrefixStore(CacheFolder(root, cap), lambda: numerics or NUMERICS))


def get(
    opened: FrozenStore, depth: int | None = 1, split: Split = DATA.train, backbone: Backbone = BACKBONE
) -> tuple[Pass, Workbench]:
    user = tiny_bench(DATA, backbone)
    return opened.get(backbone, "data", split, depth, user), user


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.name != ".lock")


def names(root: Path) -> set[str]:
    return {path.name for path in root.glob("*.safetensors")}


def same(one: Pass, other: Pass) -> bool:
    """Equal to the bit, whatever was read."""
    mask = torch.ones(1, len(one.encoded.ids[3]), dtype=torch.bool)
    pooled = all(torch.equal(one.pooled(block), other.pooled(block)) for block in range(3))
    if one.kept.states is None or other.kept.states is None:
        return pooled
    return pooled and torch.equal(one.entering([3], mask), other.entering([3], mask))


@pytest.fixture
def no_computing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, a pass that is computed is an error."""

    def forbid() -> None:
        def computed(*rest: Any) -> None:
            raise AssertionError("computed again")

        monkeypatch.setattr(frozen_pass, "fill", computed)

    return forbid


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_what_is_read_is_what_was_computed(root: Path, depth: int | None, no_computing: Callable[[], None]) -> None:
    never_kept, _ = get(FrozenStore(), depth)
    cold, _ = get(store(root), depth)
    no_computing()
    warm, _ = get(store(root), depth)
    assert same(cold, never_kept) and same(warm, cold)
    assert warm.kept.mapped and cold.kept.mapped and warm.kept.bytes == cold.kept.bytes == 0
    if depth is not None:
        assert warm.kept.states is not None and warm.kept.states.dtype == torch.bfloat16


def test_pages_that_are_let_go_are_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = get(FrozenStore())
    went: list[int] = []

    def noted(tensors: Any) -> None:
        listed = list(tensors)
        went.append(len(listed))
        let_go(listed)

    monkeypatch.setattr(frozen_pass, "TOKENS_PER_BATCH", 30)
    monkeypatch.setattr(frozen_pass, "BATCHES_AT_ONCE", 1)
    monkeypatch.setattr(frozen_pass, "AT_ONCE", 0)
    monkeypatch.setattr(frozen_pass, "let_go", noted)
    computed, _ = get(store(root))
    passes = len(went)
    assert passes > 2 and set(went) == {BACKBONE.card.blocks + 2}  # what is read of every depth, and the states
    mask = torch.ones(1, len(expected.encoded.ids[3]), dtype=torch.bool)
    for _ in range(3):
        found, _ = get(store(root))
        assert same(computed, found)
        near = {"atol": 0.05, "rtol": 0.05}  # other batches
        assert torch.allclose(found.entering([3], mask).float(), expected.entering([3], mask).float(), **near)
    assert len(went) > passes
    went.clear()
    assert torch.equal(found.pooled(1), computed.pooled(1))
    assert went == [1, 1]  # a depth that was read, of either


def test_a_hit_is_charged_what_the_miss_took(root: Path) -> None:
    cold, first = get(store(root))
    warm, second = get(store(root))
    assert first.charged == Phase() and second.charged == cold.kept.cost == warm.kept.cost
    assert second.charged.wall_seconds > 0
    assert first.tally == second.tally and first.tally.flops > first.tally.padding_flops > 0


@pytest.mark.parametrize("read_before", [False, True], ids=["read by the run", "read before it"])
def test_a_run_that_finds_its_passes_pays_for_one_reading_of_its_texts(
    root: Path, read_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TransformerBackbone.encode

    def slowly(self: TransformerBackbone, examples: Sequence[Example]) -> Encoded:
        time.sleep(0.2)
        return real(self, examples)

    monkeypatch.setattr(TransformerBackbone, "encode", slowly)
    passes = sum(get(store(root), depth)[0].kept.cost.wall_seconds for depth in (1, 2))
    opened, user = store(root), tiny_bench(DATA, BACKBONE)
    if read_before:
        opened.encoded(BACKBONE, "data", DATA.train)
    began = time.perf_counter()
    for depth in (1, 2):
        opened.get(BACKBONE, "data", DATA.train, depth, user)
    spent = time.perf_counter() - began
    reading = opened._encoded[frozen_pass.key_of(BACKBONE, "data", DATA.train)][1].wall_seconds
    assert (spent > 0.2) is not read_before
    assert user.charged.wall_seconds == pytest.approx(passes + reading * read_before) and reading >= 0.2


def test_an_entry_of_any_depth_has_the_pooled_features(root: Path, no_computing: Callable[[], None]) -> None:
    get(store(root), 2)
    no_computing()
    kept, user = get(store(root), None)
    assert user.charged == kept.kept.cost and kept.kept.states is None
    with pytest.raises(AssertionError, match="computed again"):
        get(store(root), 1)


def test_an_entry_is_a_whole_safetensors_file_that_says_what_it_is(root: Path) -> None:
    get(store(root))
    (name,) = files(root)
    with safe_open(root / name, "pt") as opened:
        assert set(opened.keys()) == {"cost", "pooled", "states"}
        about = opened.metadata()
    assert about["backbone"] == "tiny_text" and about["depth"] == "1" and about["rows"] == "20"
    assert name.endswith("-1.safetensors") and (root / name).stat().st_mode & 0o077 == 0  # texts may be private


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list what is mapped")
def test_states_are_mapped_and_not_read(root: Path) -> None:
    get(store(root))
    kept, _ = get(store(root))
    (name,) = files(root)
    assert str(root / name) in Path("/proc/self/maps").read_text()
    os.unlink(root / name)  # as another process would evict it
    assert same(kept, get(FrozenStore())[0])


def wanted(**changes: Any) -> str:
    """The name's part that is the key, for one changed ingredient."""
    parts: dict[str, Any] = {
        "backbone": BACKBONE,
        "encoded": Encoded([[1, 2], [3, 4, 5]], [[0, 0], [0, 0, 1]], 1, 0),
        "depth": None,
        "batches": [np.array([1, 0])],
        "numerics": NUMERICS,
    }
    return prefix_store.digest(dict(PassSpec.of(**(parts | changes)).key))


@pytest.mark.parametrize(
    "changes",
    [
        {"backbone": open_backbone("random:tiny_text", precision="bf16", seed=3)},
        {"backbone": open_backbone("tiny_text", precision="fp32")},
        {"encoded": Encoded([[1, 2], [3, 4, 6]], [[0, 0], [0, 0, 1]], 1, 0)},
        {"encoded": Encoded([[1, 2], [3, 4, 5]], [[0, 0], [0, 1, 1]], 1, 0)},
        {"encoded": Encoded([[1, 2, 3], [4, 5]], [[0, 0, 0], [0, 1]], 1, 0)},
        {"encoded": Encoded([[3, 4, 5], [1, 2]], [[0, 0, 1], [0, 0]], 1, 0)},
        {"batches": [np.array([0, 1])]},
        {"batches": [np.array([1]), np.array([0])]},
        {"numerics": NUMERICS | {"threads": 2}},
        {"numerics": NUMERICS | {"torch": "9.9"}},
    ],
    ids=["weights", "dtype", "token", "type", "lengths", "order", "rows of a batch", "batches", "threads", "library"],
)
def test_whatever_decides_the_bits_is_in_the_key(changes: dict[str, Any]) -> None:
    assert wanted() == wanted() != wanted(**changes)


@pytest.mark.parametrize("constant", ["FORMAT", "ENGINE", "__version__"])
def test_another_version_is_another_key(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = wanted()
    monkeypatch.setattr(prefix_store, constant, "another")
    assert wanted() != before


def test_a_changed_text_is_a_miss_and_changed_labels_are_none(root: Path) -> None:
    get(store(root))
    before = names(root)
    relabelled = replace(DATA.train, name="test", targets=1 - DATA.train.targets)
    get(store(root), split=relabelled)
    assert names(root) == before
    first, *rest = DATA.train.examples
    changed = (Example(first.id, {"text": first.inputs["text"] + " so"}, first.target), *rest)
    get(store(root), split=replace(DATA.train, examples=changed))
    assert len(names(root)) == 2


def test_a_shorter_maximum_is_a_miss(root: Path) -> None:
    get(store(root))
    cut = open_backbone("tiny_text", precision="bf16")
    cut.tokenizer.enable_truncation(5)  # type: ignore[attr-defined]
    get(store(root), backbone=cut)
    assert len(names(root)) == 2


def torn(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 7)


def longer(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"more")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def no_header(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def a_list(path: Path) -> None:
    path.write_bytes((2).to_bytes(8, "little") + b"[]")


def another_key(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"bf16", b"fp32"))


def never_finished(path: Path) -> None:
    start = 8 + int.from_bytes(path.read_bytes()[:8], "little")  # of the states, behind the header
    with path.open("r+b") as stream:
        stream.seek(start)
        stream.write(bytes(32))


def other_shape(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"shape": [3, 20, 32]', b'"shape": [20, 3, 32]'))


@pytest.mark.parametrize(
    "damage", [torn, longer, empty, no_header, a_list, another_key, never_finished, other_shape],
    ids=lambda damage: damage.__name__,
)  # fmt: skip
def test_an_odd_file_is_computed_again_and_replaced(root: Path, damage: Callable[[Path], None]) -> None:
    get(store(root))
    (name,) = files(root)
    whole = (root / name).read_bytes()
    damage(root / name)
    assert (root / name).read_bytes() != whole
    again, user = get(store(root))
    assert user.charged == Phase() and same(again, get(FrozenStore())[0])
    (mended,) = files(root)
    assert mended == name and len((root / name).read_bytes()) == len(whole)
    assert get(store(root))[1].charged == again.kept.cost


def test_the_least_recently_used_entry_goes_first(root: Path) -> None:
    splits = [replace(DATA.train, examples=DATA.train.examples[start : start + 8]) for start in (0, 4, 8)]
    for split in splits[:2]:
        get(store(root), None, split)
    one, two = CacheFolder(root).entries()
    for entry, age in ((one, 100), (two, 50)):
        os.utime(entry.path, (time.time() - age, time.time() - age))
    get(store(root), None, splits[0])
    used = max(CacheFolder(root).entries(), key=lambda entry: entry.used).path
    waiting = ({one.path, two.path} - {used}).pop()
    get(store(root, cap=one.bytes + two.bytes + 100), None, splits[2])
    assert used.exists() and not waiting.exists() and len(names(root)) == 2


def test_a_pass_larger_than_the_cap_stays_in_memory_and_drives_nothing_out(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    get(store(root), None, DATA.validation)
    before = names(root)
    kept, _ = get(store(root, cap=5000))
    assert names(root) == before and not kept.kept.mapped and kept.kept.bytes > 5000
    assert "--cache-size" in caplog.text and same(kept, get(FrozenStore())[0])


def full(*rest: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_only(*rest: Any, **named: Any) -> Any:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.mark.parametrize(
    ("name", "fails", "reason"),
    [
        ("graftwork.train.prefix_store._take_space", full, "No space left on device"),
        ("os.fsync", full, "No space left on device"),
        ("os.replace", full, "No space left on device"),
        ("tempfile.mkstemp", read_only, "Permission denied"),
        ("pathlib.Path.mkdir", read_only, "Permission denied"),
    ],
    ids=["full at the start", "full at the end", "not renamed", "read-only", "no folder"],
)
def test_trouble_with_the_disk_is_one_warning(
    root: Path, name: str, fails: Any, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = get(FrozenStore())[0]
    monkeypatch.setattr(name, fails)
    opened = store(root)
    kept, user = get(opened)
    assert user.charged == Phase() and same(kept, expected)
    assert get(opened)[0] is kept  # nothing is lost
    get(opened, split=DATA.validation)
    monkeypatch.undo()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert reason in caplog.text and "\n" not in caplog.records[0].getMessage()
    assert not root.exists() or files(root) == []


def test_a_read_only_folder_is_still_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold, _ = get(store(root))
    for name in ("tempfile.mkstemp", "os.utime"):
        monkeypatch.setattr(name, read_only)
    warm, user = get(store(root))
    assert user.charged == cold.kept.cost and same(warm, cold)


def test_an_interrupted_pass_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*rest: Any) -> None:
        assert any(name.endswith(".part") for name in files(root))
        raise KeyboardInterrupt

    monkeypatch.setattr(frozen_pass, "fill", stop)
    with pytest.raises(KeyboardInterrupt):
        get(store(root))
    assert files(root) == []


def test_what_a_killed_process_left_is_swept(root: Path) -> None:
    root.mkdir(parents=True)
    left, foreign = root / f".{'a' * 64}-1.x.part", root / "mine.part"
    for path in (left, foreign):
        path.write_bytes(b"half")
    get(store(root))
    assert not left.exists() and foreign.exists()


def part_of(root: Path) -> Path:
    """Where another process would be on its way with the entry that `get` asks for."""
    get(store(root))
    (name,) = names(root)
    (root / name).unlink()
    return root / f".{name}.other.part"


def between_looks(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> list[float]:
    """From its call on the first wait does `then` and takes no time."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        assert len(waits) < 5
        if len(waits) == 1:
            then()

    monkeypatch.setattr(frozen_pass.time, "sleep", sleep)
    return waits


def test_what_changes_while_a_session_is_open_is_another_pass(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as oneDNN, which a process goes on without where memory was too short for one of its kernels."""
    monkeypatch.setattr(environment, "built_with_onednn", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    opened = disk_of(RunSettings(cache=str(root)), NUMERICS)
    assert opened is not None
    with_it = FrozenStore(disk=opened)
    get(with_it)
    for on in (False, True):
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", on)
        assert with_it.holds(BACKBONE, "other", DATA.train, 1) is on


def test_a_pass_that_another_process_computes_is_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, no_computing: Callable[[], None]
) -> None:
    other = PrefixStore(CacheFolder(root), lambda: NUMERICS)
    drafts: list[Any] = []
    obtain = PrefixStore.obtain

    def first(self: PrefixStore, wanted: PassSpec, wait: Callable[[], None]) -> Any:
        if not drafts:
            drafts.append(obtain(other, wanted, wait))  # its lock is another process's: locks go by open file
        return obtain(self, wanted, wait)

    monkeypatch.setattr(PrefixStore, "obtain", first)
    no_computing()
    told: list[str] = []
    user = tiny_bench(DATA, BACKBONE)
    user.progress = lambda done, text: told.append(text)

    def complete() -> None:
        assert len(files(root)) == 1
        drafts[0].tensors["pooled"].fill_(3.0)
        drafts[0].keep(Phase(5.0, 4.0), Tally(2.0, 1.0))
        drafts[0].close()

    waits = between_looks(monkeypatch, complete)
    kept = store(root).get(BACKBONE, "data", DATA.train, 1, user)
    assert len(waits) == 1 and told == ["another process computes the same states"]
    assert kept.kept.cost == Phase(5.0, 4.0) and float(kept.kept.pooled[0].min()) == 3.0
    assert 4 < user.charged.wall_seconds < 5.0  # what it would have taken alone: waiting is no work


def test_a_pass_whose_process_dies_is_taken_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(root)
    dying = part.open("wb")
    assert try_lock(dying.fileno())
    waits = between_looks(monkeypatch, dying.close)
    kept, _ = get(store(root))
    assert len(waits) == 1 and same(kept, get(FrozenStore())[0])
    assert not part.exists() and len(files(root)) == 1


def test_nobody_waits_for_a_pass_that_is_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has no room is computed side by side."""
    waits = between_looks(monkeypatch, lambda: None)
    fill, inner = frozen_pass.fill, []

    def beside(*rest: Any) -> Any:
        if not inner:
            inner.append(None)
            inner.append(get(store(root, cap=10))[0])
        return fill(*rest)

    monkeypatch.setattr(frozen_pass, "fill", beside)
    assert same(get(store(root, cap=10))[0], inner[1]) and not waits


def test_a_cache_that_vanishes_on_the_way_is_one_warning(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected, fill = get(FrozenStore())[0], frozen_pass.fill

    def vanish(*rest: Any) -> Any:
        shutil.rmtree(root)
        return fill(*rest)

    monkeypatch.setattr(frozen_pass, "fill", vanish)
    opened = store(root)
    assert same(get(opened)[0], expected)
    get(opened, split=DATA.validation)
    assert len(caplog.records) == 1 and "No such file" in caplog.text


def test_a_file_where_the_cache_should_be_is_one_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    root.parent.mkdir()
    root.touch()
    assert same(get(store(root))[0], get(FrozenStore())[0])
    assert len(caplog.records) == 1 and "nothing can be kept in the cache" in caplog.text


CHILD = """
import sys, torch
from pathlib import Path
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import frozen_pass
from graftwork.io.cache_folder import CacheFolder
from graftwork.train.prefix_store import PrefixStore

torch.set_num_threads(1)
data, backbone = tiny_dataset(), open_backbone("tiny_text", precision="bf16")
disk = PrefixStore(CacheFolder(Path(sys.argv[1])), lambda: {"precision": "bf16", "threads": 1, "device": "cpu"})
real, bench = frozen_pass.fill, tiny_bench(data, backbone)
bench.progress = lambda done, text: print(text, flush=True)

def slowly(*rest):
    print("computing", flush=True)
    sys.stdin.readline()
    return real(*rest)

frozen_pass.fill = slowly
kept = frozen_pass.FrozenStore(disk=disk).get(backbone, "data", data.train, 1, bench)
print(float(kept.pooled(2).sum()), flush=True)
"""


@pytest.mark.slow
def test_of_two_processes_one_computes_and_when_it_is_killed_the_other(root: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    one = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
    assert one.stdout.readline() == "computing\n"
    other = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
    assert other.stdout.readline() == "another process computes the same states\n"
    one.kill()
    one.communicate()
    said = other.communicate("go\n")[0].splitlines()
    assert other.returncode == 0 and said[-2] == "computing"
    assert len(files(root)) == 1
    kept, user = get(store(root))
    assert user.charged.wall_seconds > 0 and str(float(kept.pooled(2).sum())) == said[-1]
