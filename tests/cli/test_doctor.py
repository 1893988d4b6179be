"""`graft doctor`: what it prints, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Graft = Callable[..., Any]
FAST = ("--backbone", "tiny_text", "--seconds", "0")


def test_a_machine_that_is_well(graft: Graft, tmp_path: Path) -> None:
    done = graft("doctor", *FAST)
    assert done.code == 0, done.out
    lines = done.out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")][:3] == ["machine", "software", "folders"]
    listed = {line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "}
    assert {"processor", "precision", "versions", "disk"} <= listed and lines[-1] == "Nothing will fail."
    assert not (tmp_path / "runs").exists()


def test_what_fails_is_said_last_with_a_remedy_and_the_code_is_1(graft: Graft, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = graft("doctor", *FAST, "--runs", "file")
    assert done.code == 1 and done.err == ""
    closing = done.out.partition("what will fail\n")[2].splitlines()
    assert closing[0].startswith("  disk: runs: ") and closing[0].endswith("Not a directory")
    assert closing[1].startswith("    do: --runs DIR") and "Nothing will fail." not in done.out


def test_json_holds_the_same(graft: Graft) -> None:
    done = graft("doctor", *FAST, "--json")
    told = json.loads(done.out)
    assert told["well"] and told["format"] == 1 and told["checks"]["cores"]["findings"][0]["facts"]["usable"] >= 1


def test_seconds_are_a_number_of_seconds(graft: Graft) -> None:
    assert "--seconds" in graft("doctor", "--seconds", "-1").err
    assert graft("doctor", "--seconds", "nan").code == 2
