"""Exchanges versions of a bank's tasks, one change after another: `python swap.py BANK COUNT TASK…`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from graftwork.bank.bank import Bank
from graftwork.files import read_json, write_json


def other_version(bank: Bank, name: str, folder: Path) -> None:
    """A second version of a task with the same delta: its card says so, hence its digest is another one."""
    module = bank.tasks[name].folder
    copy = folder / name
    copy.mkdir()
    for file in module.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    write_json(copy / "module.json", read_json(copy / "module.json") | {"note": "for the swaps"})
    bank.add(copy, name)


def main() -> None:
    """Every task gets a second version; then they are rolled back and forth, as fast as once a second for all."""
    path, count, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    bank = Bank.open(path)
    folder = path.parent / "versions"
    folder.mkdir()
    for name in names:
        other_version(bank, name, folder)
    done = len(names)
    while done < count:
        began = time.monotonic()
        for name in names[: count - done]:
            versions = bank.versions(name)
            current = bank.tasks[name].version
            bank.rollback(name, to=next(version for version in versions if version != current))
            done += 1
        time.sleep(max(0.0, 2.0 - (time.monotonic() - began)))  # the server looks once a second: it sees every change
    time.sleep(3)
    print(json.dumps({"swaps": done}))


if __name__ == "__main__":
    main()
