"""Every tokenizer learns the same bytes in every process: the library's hash tables have another order in each."""

from __future__ import annotations

import os
import subprocess
import sys

from graftwork.registry import tokenizers

PROGRAM = """
from graftwork.registry import tokenizers
texts = [f"{place * 7919 % 1000:03d}word{place % 37} of{place % 11}{place % 13}, naïve" for place in range(3000)]
parts = {name: tokenizers.get(name) for name in tokenizers.names()}
found = {name: part.train(texts, 600, part.lowercase).revision for name, part in parts.items()}
"""


def test_two_processes_learn_the_same_bytes() -> None:
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", f"{PROGRAM}\nprint(found)"]
    other = subprocess.run(command, env=own, capture_output=True, text=True, check=True).stdout
    here: dict[str, dict[str, str]] = {}
    exec(PROGRAM, here)
    assert other.strip() == str(here["found"])
    assert here["found"].keys() == set(tokenizers.names())
    assert len(set(here["found"].values())) == 5
