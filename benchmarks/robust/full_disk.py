"""Fill the disk at every write of every command in turn: `python benchmarks/robust/full_disk.py`.

Two ways. First every file opened for writing, every new folder and every rename fails in turn, as on a full disk; the
system's audit events report each, including those of libraries. Then, if a file system in memory can be mounted, the
disk really is too small, by several amounts. Results in the work folder are not computed again;
`--only train,remove` tries a part of it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import errno
import gc
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from result_file import result_of

from graftwork.cli.main import main as graft
from graftwork.io.files import file_digest, read_json, safe_load, write_json
from graftwork.testing import tiny_dataset

HERE = Path(__file__).parent
QUESTION = (
    "When the disk is full at any one write of a command, is every file old or new and whole, is nothing half-written "
    "left, does one message say so, and does the same command go on once there is room?"
)
BAR = {"torn": 0, "changed": 0, "left_over": 0, "unclear": 0, "not_gone_on": 0}
WRITING = re.compile(r"[wax+]")
FULL = "the disk is full"
WARNINGS = ("nothing can be kept in the cache", "no checkpoint can be written")  # each once, and the command continues
OPTIONAL = re.compile(r"(^|/)(cache|\.[0-9a-f]+\.checkpoint)(/|$)")  # files that a command does not need
RUN = "runs/*/result.json"
STEPS, PAGE = 12, 4096  # sizes of a small disk per command, and the block size in bytes
ROOM = 64 << 20  # bytes of the small disk
Words = Sequence[str]


@dataclass(frozen=True)
class Case:
    """A command, and the commands run before it in its folder."""

    name: str
    words: Words
    before: tuple[Words, ...] = ()  # commands, not measured


TRAINING = ("--backbone", "tiny_text", "--precision", "fp32", "--epochs", "1", "--cache", "cache", "--threads", "1")
LORA = ("train", "data.csv", "--method", "lora", *TRAINING)
COMPARED = (
    "compare",
    "data.csv",
    "--methods",
    "majority,linear_probe,lora",
    "--out",
    "board",
    "--jobs",
    "1",
    *TRAINING,
)
CURVE = ("curve", "data.csv", "--methods", "majority,linear_probe", "--draws", "1", "--out", "curve", *TRAINING)
PRETRAIN = (
    "pretrain", "corpus.txt", "--size", "size.json", "--steps", "3", "--batch", "4",
    "--length", "16", "--checkpoint-every", "0", "--cache", "cache", "--precision", "fp32", "--threads", "1",
)  # fmt: skip
CREATE, ADD = ("bank", "create", "own.bank"), ("bank", "add", "own.bank", "module")
SECOND = ("bank", "add", "own.bank", "other", "--task", "data")
CASES = (
    Case("train", LORA),
    Case("compare", (*COMPARED, "--seeds", "2"), ((*COMPARED, "--seeds", "1"),)),
    Case("curve", (*CURVE, "--sizes", "4/class,8/class"), ((*CURVE, "--sizes", "4/class"),)),
    Case("pretrain", PRETRAIN),
    Case("predict", ("predict", "module", "--file", "data.csv", "--out", "answers.csv")),
    Case("data", ("data", "data.csv", "--html", "report.html")),
    Case("create", CREATE),
    Case("add", SECOND, (CREATE, ADD)),
    Case("rename", ("bank", "rename", "own.bank", "data", "called"), (CREATE, ADD, SECOND)),
    Case("rollback", ("bank", "rollback", "own.bank", "data"), (CREATE, ADD, SECOND)),
    Case("remove", ("bank", "remove", "own.bank", "data"), (CREATE, ADD, SECOND)),
    Case("export", ("bank", "export-task", "own.bank", "data", "exported", "--format", "peft"), (CREATE, ADD)),
    Case("stream", ("stream", "data.toml", "--bank", "own.bank", "--out", "streamed", "--method", "lora", *TRAINING)),
    Case("verify", ("verify", "board", "--record"), ((*COMPARED, "--seeds", "1"),)),
)  # fmt: skip


@dataclass
class Disk:
    """Counts the writes below a folder, and makes one of them fail."""

    root: str = ""
    fails: int = -1  # which write, from 0; -1: none
    sites: list[str] = field(default_factory=list)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Handle an audit event of this process."""
        if not self.root or event not in ("open", "os.mkdir", "os.rename"):
            return
        path = args[1] if event == "os.rename" else args[0]
        if isinstance(path, int) or not self.writes(event, args):
            return
        place = os.path.abspath(os.fsdecode(path))
        if not place.startswith(self.root):
            return
        self.sites.append(f"{event.removeprefix('os.')} {named(place.removeprefix(self.root))}")
        if len(self.sites) - 1 == self.fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)

    def writes(self, event: str, args: tuple[Any, ...]) -> bool:
        """Return whether the event needs disk space; a lock is a file without content."""
        if event != "open":
            return True
        mode, flags = args[1], args[2] or 0
        return bool(WRITING.search(mode) if mode else flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


DISK = Disk()


def named(place: str) -> str:
    """Return a path with random parts and hashes replaced."""
    place = re.sub(r"[0-9a-f]{64}", "HASH", place)
    place = re.sub(r"\.([0-9a-f]{12})\.[a-z0-9_]{8}(?=/|$)", r".ID.xxxx", place)
    return re.sub(r"(?<=\.)[a-z0-9_]{8}(?=(\.part)?$)", "xxxx", re.sub(r"[0-9a-f]{12}", "ID", place))


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Use `folder` as the working folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run(folder: Path, words: Words) -> tuple[int, str]:
    """Run a command in this process; return its exit code and error output."""
    said = io.StringIO()
    with inside(folder), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = graft(list(words))
    return code, said.getvalue()


def write_scene(folder: Path) -> None:
    """Write data, and two modules of a task."""
    folder.mkdir(parents=True)
    data = tiny_dataset(rows=30)
    examples = [example for split in data.splits.values() for example in split.examples]
    lines = [(f"{example.inputs['text']} {number}", example.target) for number, example in enumerate(examples)]
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *lines])
    (folder / "data.toml").write_text('data = "data.csv"\n')
    (folder / "corpus.txt").write_text("".join(f"{place} times {text}\n" for place in range(40) for text, _ in lines))
    (folder / "answers.csv").write_text("the answers of yesterday\n")
    (folder / "report.html").write_text("the report of yesterday</html>\n")
    write_json(
        folder / "size.json",
        {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16},
    )
    for seed, name in ((0, "module"), (1, "other")):
        code, said = run(folder, (*LORA, "--seed", str(seed), "--runs", "first"))
        assert code == 0, said
        newest = max((folder / "first").glob("*/module"), key=lambda path: path.stat().st_mtime_ns)
        shutil.copytree(newest, folder / name)
    shutil.rmtree(folder / "first")
    shutil.rmtree(folder / "cache")


def state(folder: Path) -> dict[str, str]:
    """Return path -> sha256 of every file."""
    listed = (path for path in folder.rglob("*") if path.is_file() and path.name != "ballast")
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in listed}


def whole(path: Path) -> bool:
    """Return whether a file is complete, as far as its format shows it."""
    try:
        if path.suffix == ".json":
            read_json(path)
        elif path.suffix == ".jsonl":
            text = path.read_text(encoding="utf-8")
            assert not text or text.endswith("\n")
            for line in text.splitlines():
                json.loads(line)
        elif path.suffix == ".safetensors":
            safe_load(path)
        elif path.suffix == ".html":
            assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
        elif path.suffix == ".csv":
            assert path.read_bytes().endswith(b"\n")
    except Exception:
        return False
    return True


def judged(folder: Path, before: Mapping[str, str], code: int, said: str, site: str) -> dict[str, list[str]]:
    """Return what is wrong after a command on a full disk."""
    now = state(folder)
    new = {name for name, content in now.items() if before.get(name) != content}
    found: dict[str, list[str]] = {name: [] for name in BAR}
    found["torn"] = sorted(name for name in new if not whole(folder / name))
    gone = sorted(name for name in before if name not in now)
    bank = sorted(name for name in new if name in before and name.startswith("own.bank/"))
    runs = [path.parent for path in folder.glob(RUN)]
    half = [path.name for path in runs if not all((path / name).is_file() for name in ("spec.json", "log.jsonl"))]
    found["changed"] = [*half, *([*gone, *bank] if code else ())]
    hidden = [path for path in folder.rglob(".*") if path.name != ".lock" and not OPTIONAL.search(path.as_posix())]
    found["left_over"] = sorted(path.relative_to(folder).as_posix() for path in hidden)
    lines = [line for line in said.splitlines() if line.startswith("graft: ")]
    messages = [line for line in lines if not any(warning in line for warning in WARNINGS)]
    once = all(sum(warning in line for line in lines) <= 1 for warning in WARNINGS)
    clear = code == 2 and len(messages) == 1 and FULL in messages[0] if code else not messages
    if not (clear and once) or "Traceback" in said:
        found["unclear"] = [f"code {code}: {said[:400]}"]
    return {name: [f"{site}: {one}" for one in listed] for name, listed in found.items()}


def gone_on(folder: Path, case: Case, site: str) -> dict[str, list[str]]:
    """Run the same command with enough space; only `create` may fail because its bank exists."""
    code, said = run(folder, case.words)
    return {} if code == 0 else {"not_gone_on": [f"{site}: code {code}: {said[:400]}"]}


@dataclass
class Found:
    """The result of a case."""

    tried: int = 0
    done: int = 0  # commands that succeeded: the failed write was optional
    wrong: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in BAR})

    def note(self, wrong: Mapping[str, list[str]]) -> None:
        """Add the findings of one more failed write."""
        for name, listed in wrong.items():
            self.wrong[name] += listed


def fresh(scene: Path, folder: Path) -> Path:
    """Return a fresh copy of the scene."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(scene, folder)
    return folder


def every_site(case: Case, scene: Path, folder: Path) -> tuple[Found, list[str]]:
    """Make each write of the command fail in turn."""
    code, said = run(fresh(scene, folder), case.words)
    assert code == 0, said
    found, sites = Found(), ["?"]
    while found.tried < len(sites):
        fresh(scene, folder)
        before = state(folder)
        DISK.root, DISK.fails, DISK.sites = f"{folder}/", found.tried, []
        try:
            code, said = run(folder, case.words)
        finally:
            DISK.root = ""
        if len(DISK.sites) <= found.tried:
            break  # fewer writes this time
        sites += [""] * (len(DISK.sites) - len(sites)) + [""]
        sites[found.tried] = DISK.sites[found.tried]
        found.done += code == 0
        found.note(judged(folder, before, code, said, sites[found.tried]))
        found.note(gone_on(folder, case, sites[found.tried]) if code else {})
        found.tried += 1
    return found, [site for site in sites if site and site != "?"]


def small_disk(case: Case, scene: Path, folder: Path) -> Found:
    """Run the command on a disk with several amounts of free space; `folder` is the file system."""
    found = Found()
    restore(scene, folder)
    held = sum(
        path.stat().st_size for path in folder.glob("own.bank/**/*")
    )  # a bank copies so much and then removes it
    needed = max(held, used(folder, lambda: run(folder, case.words))) + STEPS * PAGE
    for room in sorted({step * needed // STEPS // PAGE * PAGE for step in range(STEPS)}):
        restore(scene, folder)
        before, site = state(folder), f"{room:,} bytes free"
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        if free > room:
            with (folder / "ballast").open("wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, free - room)
        code, said = run(folder, case.words)
        (folder / "ballast").unlink(missing_ok=True)
        found.done += code == 0
        found.note(judged(folder, before, code, said, site))
        found.note(gone_on(folder, case, site) if code else {})
        found.tried += 1
    return found


def restore(scene: Path, folder: Path) -> None:
    """Reset the file system to the scene."""
    gc.collect()  # a removed file keeps its space while it is mapped
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(scene, folder, dirs_exist_ok=True)


def used(folder: Path, action: Callable[[], object]) -> int:
    """Return the bytes of the file system that an action uses."""
    before = os.statvfs(folder)
    action()
    after = os.statvfs(folder)
    return (before.f_bavail - after.f_bavail) * after.f_frsize


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[str]:
    """Mount a small file system in memory at `folder`; yields the reason if that fails, else ""."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ("mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder))
    try:
        done = subprocess.run(words, capture_output=True, text=True)
        reason = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        reason = str(error)
    try:
        yield reason
    finally:
        if not reason:
            subprocess.run(("umount", "-l", str(folder)), check=True)  # forward passes may still be mapped


def measured(work: Path, names: Sequence[str]) -> dict[str, Any]:
    """Measure every case, both ways."""
    torch.set_num_threads(1)
    for stream in ("HOME", "XDG_CACHE_HOME", "GRAFTWORK_CACHE"):
        os.environ[stream] = str(work / "home")
    if not (work / "scene").is_dir():
        write_scene(work / "scene")
    cases: dict[str, Any] = {}
    wrong: dict[str, list[str]] = {name: [] for name in BAR}
    with mounted(work / "small") as reason:
        for case in (case for case in CASES if not names or case.name in names):
            kept = work / f"{case.name}.json"
            if not kept.is_file():
                write_json(kept, tried(case, work, small=not reason))
            cases[case.name] = read_json(kept)
            for name, listed in cases[case.name].pop("told").items():
                wrong[name] += [f"{case.name}: {line}" for line in listed]
            print(case.name, {name: count for name, count in cases[case.name].items() if name != "sites"}, flush=True)
    counts = {name: len(listed) for name, listed in wrong.items()}
    totals = {name: sum(case[name] for case in cases.values()) for name in ("writes_that_failed", "small_disks")}
    totals["sites"] = sum(len(case["sites"]) for case in cases.values())
    return totals | counts | {"no_small_disk": reason, "told": wrong, "cases": cases}


def tried(case: Case, work: Path, small: bool) -> dict[str, Any]:
    """Measure one case, both ways if there is a small disk."""
    scene = fresh(work / "scene", work / f"scene_{case.name}")
    for words in case.before:
        code, said = run(scene, words)
        assert code == 0, said
    found, sites = every_site(case, scene, work / "tried")
    there = small_disk(case, scene, work / "small") if small else Found()
    return {
        "writes_that_failed": found.tried,
        "done_all_the_same": found.done,
        "small_disks": there.tried,
        "small_done": there.done,
        "sites": sorted(set(sites)),
        "told": {name: [*found.wrong[name], *there.wrong[name]] for name in BAR},
    }


def result(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of results/full_disk.json."""
    return result_of(QUESTION, BAR, found, "ok" if all(found[name] == 0 for name in BAR) else "failed")


def main() -> int:
    """Measure and write; return 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="a folder of its own.  [default: one that goes again]")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--only", default="", help=f"some of {', '.join(case.name for case in CASES)}")
    given = parser.parse_args()
    sys.addaudithook(DISK.hear)
    with tempfile.TemporaryDirectory(prefix="graftwork-disks-") as scratch:
        work = (given.work or Path(scratch)).absolute()
        told = result(measured(work, [name for name in given.only.split(",") if name]))
    write_json(given.out / "full_disk.json", told)
    print({name: told["measured"][name] for name in BAR}, told["status"])
    return int(told["status"] != "ok")


if __name__ == "__main__":
    sys.exit(main())
