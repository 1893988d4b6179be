"""Switch versions of a bank's tasks, one change after another: `python swap.py BANK COUNT PORT TASK…`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from served import get

from graftwork.bank.bank import Bank
from graftwork.io.files import read_json, write_json

PATIENCE_SECONDS = 60.0


def other_version(bank: Bank, name: str, folder: Path) -> None:
    """Add a second version of a task with the same delta; its module.json differs, hence its digest does too."""
    module = bank.tasks[name].folder
    copy = folder / name
    copy.mkdir()
    for file in module.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    write_json(copy / "module.json", read_json(copy / "module.json") | {"note": "for the swaps"})
    bank.add(copy, name)


def until_served(bank: Bank, port: int, names: list[str]) -> None:
    """Wait until a server has loaded the bank's current versions."""
    wanted = {name: bank.tasks[name].version for name in names}
    end = time.monotonic() + PATIENCE_SECONDS
    while not wanted.items() <= {task["name"]: task.get("version") for task in get(port, "/v1/tasks")["tasks"]}.items():
        if time.monotonic() > end:
            raise SystemExit("the server does not take in what was changed")
        time.sleep(0.1)


def main() -> None:
    """Add a second version of every task; then roll back and forth, each time after the server has loaded them all."""
    path, count, port, names = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    bank = Bank.open(path)
    folder = path.parent / "versions"
    folder.mkdir()
    for name in names:
        other_version(bank, name, folder)
        until_served(bank, port, names)
    done = len(names)
    while done < count:
        for name in names[: count - done]:
            current = bank.tasks[name].version
            bank.rollback(name, to=next(version for version in bank.versions(name) if version != current))
            done += 1
        until_served(bank, port, names)
    print(json.dumps({"swaps": done}))


if __name__ == "__main__":
    main()
