"""Run by a test, in a process without torch: changes of a bank that are killed before each thing they do to a file.

python killed.py FOLDER CHANGE…
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from folders import fake_module, named, require_tidy, well

from graftwork.bank.bank_folder import BankFolder

TOUCHES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.link", "fcntl.flock"}


def kill_before(step: int) -> None:
    """End this process as kill -9 does, before the file system is changed for that time."""
    left = [step]

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in TOUCHES or writes:
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1

    sys.addaudithook(audit)


def survives(change: Callable[[BankFolder], Any], home: Path, modules: Path) -> int:
    """Kill `change` at every step; after each the bank is as before or as after, and the next change goes well."""
    before, after = named(BankFolder(home / "fresh")), _after(change, home)
    steps = 0
    while True:
        bank = BankFolder(Path(shutil.copytree(home / "fresh", home / "bank")))
        child = os.fork()
        if child == 0:
            kill_before(steps)
            change(bank)
            os._exit(0)
        done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        seen = named(bank)
        assert seen == after if done else seen in (before, after), (steps, seen)
        bank.add(modules / "next", "next", well)
        found = {name: one for name, one in named(bank).items() if name != "next"}
        assert found == after if seen == after else found in (before, after), (steps, found)
        require_tidy(bank)
        shutil.rmtree(home / "bank")
        if done:
            return steps
        steps += 1


def _after(change: Callable[[BankFolder], Any], home: Path) -> Mapping[str, tuple[int, str]]:
    """What a reader sees once it is done."""
    bank = BankFolder(Path(shutil.copytree(home / "fresh", home / "done")))
    change(bank)
    seen = named(bank)
    shutil.rmtree(bank.root)
    return seen


def main(home: Path, named_changes: list[str]) -> None:
    """Print how many steps each of these changes has."""
    os.fsync = lambda handle: None  # a process is killed here, not the power cut
    modules = home / "modules"
    for mark in ("one", "two", "three", "next"):
        fake_module(modules / mark, mark)
    bank = BankFolder.create(home / "fresh")
    bank.add(modules / "one", "task", well)
    bank.add(modules / "two", "task", well)
    bank.add(modules / "one", "other", well)
    changes: dict[str, Callable[[BankFolder], Any]] = {
        "add": lambda bank: bank.add(modules / "three", "new", well),
        "update": lambda bank: bank.add(modules / "three", "task", well),
        "remove": lambda bank: bank.remove("task"),
        "rename": lambda bank: bank.rename("task", "called"),
        "rollback": lambda bank: bank.rollback("task", well),
    }
    print(json.dumps({name: survives(changes[name], home, modules) for name in named_changes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
