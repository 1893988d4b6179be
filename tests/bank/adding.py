"""Run by a test, several at once, in processes without torch: adds tasks to one bank, reading it between.

python adding.py BANK MODULES NAME COUNT
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from folders import named

from graftwork.bank.bank_folder import BankFolder


def main(bank: BankFolder, modules: Path, name: str, count: int) -> None:
    """Half of the tasks are this process's own, half the versions of one that all add to."""
    while not (modules / "go").exists():
        time.sleep(0.001)
    for number in range(count):
        task = "shared" if number % 2 else f"{name}_{number}"
        bank.add(modules / f"{name}_{number}", task, lambda copy: time.sleep(0.002))
        assert task in named(bank)


if __name__ == "__main__":
    main(BankFolder(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
