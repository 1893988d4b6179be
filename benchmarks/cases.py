"""Run inputs that once went wrong, and compare what comes out with what should: `python benchmarks/cases.py FOLDER`.

Every folder below FOLDER with a script `cmd` is a case, ROOM/NUMBER-NAME. Its script is run by bash, with the paths of
`graft` and of Python in GRAFT and PYTHON, and what it prints is held against the patterns of ROOM/NAME in cases.toml:
each of `must` stands in it, none of `must_not` does. A copy of the folder is what runs; in it a file that holds nothing
but the relative path of another file is a link to it, as links become where they can't be stored. Words after FOLDER
choose the cases whose name holds one of them.
Without the folder there is nothing to do. Ends with 1 where a case is wrong, or has no patterns.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

TABLE = Path(__file__).with_suffix(".toml")
NEVER = ("internal error", r'File "[^"]*/graftwork/[^"]*", line \d')  # the latter of a traceback
SECONDS = 600.0
LONGEST_LINK = 256  # bytes
NUMBER = re.compile(r"^\d+-")
Expected = Mapping[str, Sequence[str]]


def cases_of(root: Path, words: Sequence[str]) -> dict[str, Path]:
    """Return name -> folder of the cases whose name holds one of the words; of all cases without words."""
    found = {f"{path.parts[-3]}/{NUMBER.sub('', path.parts[-2])}": path.parent for path in sorted(root.glob("*/*/cmd"))}
    return {name: folder for name, folder in found.items() if not words or any(word in name for word in words)}


def copied(folder: Path, to: Path) -> Path:
    """Copy a case to a new folder, with links where files stand for them; return it."""
    shutil.copytree(folder, to, copy_function=shutil.copyfile)
    for path in (to, *to.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    for path in [path for path in to.rglob("*") if path.is_file() and path.stat().st_size < LONGEST_LINK]:
        target = path.read_text(encoding="utf-8", errors="replace")
        if target.startswith("../") and (path.parent / target).is_file():
            path.unlink()
            path.symlink_to(target)
    return to


def printed(folder: Path, seconds: float = SECONDS) -> str:
    """Run a case's script; return what it prints, errors included. What it has started ends with it."""
    scripts = Path(sysconfig.get_path("scripts"))
    own = {"GRAFT": str(scripts / "graft"), "PYTHON": sys.executable} | os.environ
    with subprocess.Popen(
        ["bash", str(folder / "cmd")],
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            out, _ = process.communicate(timeout=seconds)
            late = ""
        except subprocess.TimeoutExpired:
            late = f"\nstill running after {seconds:.0f} s\n"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if late:
            out, _ = process.communicate()
    return out.decode(errors="replace") + late


def wrong(out: str, expected: Expected) -> list[str]:
    """Return what is wrong with the output; nothing where it is right."""
    missing = [f"lacks   {one}" for one in expected.get("must", ()) if not re.search(one, out, re.MULTILINE)]
    never = (*NEVER, "still running after", *expected.get("must_not", ()))
    return missing + [f"holds   {one}" for one in never if re.search(one, out, re.MULTILINE)]


def main() -> int:
    """Run the cases, tell of each, and end with 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*")
    chosen = parser.parse_args()
    if not chosen.folder.is_dir():
        print(f"no cases at {chosen.folder}: nothing to do")
        return 0
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    cases, failed = cases_of(chosen.folder.resolve(), chosen.words), []
    for name, folder in cases.items():
        began = time.monotonic()
        out = ""
        if name in known:
            with tempfile.TemporaryDirectory() as place:
                out = printed(copied(folder, Path(place) / folder.name))
        found = wrong(out, known[name]) if name in known else [f"has no patterns in {TABLE.name}"]
        print(f"{'WRONG' if found else 'right'}  {name}, {time.monotonic() - began:.0f} s", flush=True)
        if found:
            failed.append(name)
            print("\n".join([*(f"    {line}" for line in found), *(f"    | {line}" for line in out.splitlines())]))
    print(f"{len(cases) - len(failed)} of {len(cases)} cases are right")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
