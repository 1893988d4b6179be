"""Count what a reader of the source has to know: `python benchmarks/structure.py [--before CHECKOUT]`.

It counts files and lines, the lengths of functions, cycles of imports, the files of our own whose functions are called
between an entry and its answer, and the files that a new part touched. The table is printed and written to
structure.md; `--before` puts an earlier checkout beside this one. Entries are driven through the command line, each in
a process of its own that has done the same once before, so that imports do not count.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

HERE = Path(__file__).resolve().parent
ADDED = {  # part -> the commits that added it; the seam that `prefix` needs is a commit of its own, 730c6a2
    "the method `ia3`": ("d2db94c",),
    "the method `prefix`": ("c084e04",),
    "T5's encoder": ("66ec024",),
}
TEXT = "a film that is good"
WARM_UP, REQUESTS, SECONDS = 3, 3, 120.0
TOKEN = "0123456789abcdef0123456789abcdef"
TRAIN = ("train", "data.csv", "--method", "lora", "--backbone", "tiny_text", "--epochs", "1", "--threads", "1",
         "--cache-size", "0")  # fmt: skip
WAYS = {
    "row": "files that a row passes in `graft train`, from its file to its prediction",
    "predict": "files that a text passes in `graft predict MODULE TEXT`",
    "request": "files that a request passes in `graft serve`",
}
Values = dict[str, int | str]


def lines_of(text: str, tree: ast.Module) -> Counter[str]:
    """Return the number of lines of code, of docstrings, of comments, and of blank lines."""
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body and ast.get_docstring(node, clean=False) is not None else None
            said.update(range(first.lineno, (first.end_lineno or 0) + 1) if first else ())
    found: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        kind = "blank" if not plain else "comments" if plain.startswith("#") else "code"
        found["docstrings" if number in said else kind] += 1
    return found


def imports(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Yield those of the modules that are imported, in functions too but not for type checking only."""
    kept: list[ast.AST] = [tree]
    while kept:
        node = kept.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        kept += ast.iter_child_nodes(node)
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            found = name if name in modules else name.rpartition(".")[0]
            if found in modules:
                yield found


def cycles(graph: Mapping[str, set[str]]) -> int:
    """Return the number of groups of modules that import each other, directly or through others."""
    place = {name: number for number, name in enumerate(graph)}
    matrix = np.zeros((len(graph), len(graph)), bool)
    for name, others in graph.items():
        matrix[place[name], [place[other] for other in others]] = True
    _, groups = connected_components(matrix, connection="strong")
    return int((np.bincount(groups) > 1).sum())


def counted(source: Path) -> tuple[Values, Counter[str]]:
    """Return the counts of a package's folder, and the number of files in each of its rooms."""
    files = sorted(source.rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lengths = {str(path.relative_to(source)): len(text.splitlines()) for path, text in texts.items()}
    spans = sorted(
        ((node.end_lineno or 0) - node.lineno + 1, node.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    lines = sum((lines_of(texts[path], trees[path]) for path in files), Counter[str]())
    names = {path: module_of(path, source) for path in files}
    modules = set(names.values()) - {source.name}  # whose names are others' anyway
    graph = {name: set(imports(trees[path], modules)) for path, name in names.items()}
    longest = max(lengths, key=lengths.__getitem__)
    values: Values = {
        "files": len(files),
        "lines": lines.total(),
        **{f"lines: {kind}": lines[kind] for kind in ("code", "docstrings", "comments", "blank")},
        "longest file, lines": f"{lengths[longest]} (`{longest}`)",
        "functions": len(spans),
        "longest function, lines": f"{spans[-1][0]} (`{spans[-1][1]}`)",
        "function at the 90th percentile, lines": spans[int(0.9 * (len(spans) - 1))][0],
        "cycles of imports": cycles(graph),
    }
    rooms = Counter(path.relative_to(source).parts[0] if path.parent != source else "in none" for path in files)
    return values, rooms


def module_of(path: Path, source: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Trace:
    """Collects the files below a folder whose functions are called while it is on, in every thread started later."""

    def __init__(self, source: Path):
        self.folder, self.on = f"{source}{os.sep}", False
        self.files: set[str] = set()

    def listen(self) -> None:
        """Hear of the calls of this thread and of those that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note the file of a called function; the body of a module or class is none."""
        code = frame.f_code
        function = event == "call" and code.co_flags & inspect.CO_NEWLOCALS
        if self.on and function and code.co_filename.startswith(self.folder):
            self.files.add(code.co_filename.removeprefix(self.folder))


def passed(way: str) -> set[str]:
    """Return the files that are passed, in the working folder; `row` first, whose run the others use. In a child."""
    import graftwork
    from graftwork.cli.main import main

    trace = Trace(Path(graftwork.__file__).parent)

    def run(*words: str) -> None:
        if code := main(words):
            raise SystemExit(f"graft {' '.join(words)} ended with {code}")

    if way == "row":
        run(*TRAIN, "--seed", "0", "--runs", "runs")
        sys.addaudithook(lambda event, arguments: _between(trace, event, arguments))
        trace.listen()
        run(*TRAIN, "--seed", "1", "--runs", "others")
        return trace.files
    module = str(next(Path("runs").glob("*/module")))
    if way == "predict":
        run("predict", module, TEXT)
        trace.listen()
        trace.on = True
        run("predict", module, TEXT)
        trace.on = False
        return trace.files
    run("bank", "create", "own.bank")
    run("bank", "add", "own.bank", module, "--task", "mood")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found: list[set[str]] = []
    threading.Thread(target=_ask, args=(trace, port, found), daemon=True).start()
    trace.listen()
    run("serve", "own.bank", "--port", str(port), "--token-file", "token", "--threads", "1")
    return set.intersection(*found)  # what looks at the bank every second is in one of them at most


def _between(trace: Trace, event: str, arguments: tuple[Any, ...]) -> None:
    """Switch the trace on where the data file is opened first, and off where its predictions are written."""
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        name = os.path.basename(os.fspath(arguments[0]))
        if name == "data.csv":
            trace.on = True
        elif "predictions.jsonl" in name:
            trace.on = False


def _ask(trace: Trace, port: int, found: list[set[str]]) -> None:
    """Send requests to the server of this process, the last ones traced, and end it."""
    head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    body = json.dumps({"task": "mood", "text": TEXT}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/predict", body, head)
    answered, begun = 0, time.monotonic()
    while answered < WARM_UP + REQUESTS and time.monotonic() - begun < SECONDS:
        time.sleep(0.3)
        trace.files, trace.on = set(), answered >= WARM_UP
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                answer.read()
        except urllib.error.URLError:
            continue  # it has not begun to listen
        if trace.on:
            found.append(trace.files)
        trace.on = False
        answered += 1
    os.kill(os.getpid(), signal.SIGTERM)


def traced(source: Path, folder: Path) -> Values:
    """Return how many files each way passes, of the package in `source`."""
    rows = [f"a {word} that is {label} {n},{label}" for n in range(36) for word in "xy" for label in ("good", "bad")]
    (folder / "data.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "token").touch(0o600)
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    places = {"PYTHONPATH": str(source.parent), "GRAFTWORK_CACHE": str(folder), "XDG_CACHE_HOME": str(folder)}
    own = os.environ | places | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    for way in WAYS:
        command = [sys.executable, str(HERE / "structure.py"), "--trace", way]
        with (folder / f"{way}.log").open("w") as log:
            code = subprocess.run(command, cwd=folder, env=own, stdout=log, stderr=log).returncode
        if code:
            raise SystemExit((folder / f"{way}.log").read_text()[-3000:])
    return {said: len(json.loads((folder / f"{way}.json").read_text())) for way, said in WAYS.items()}


def git(checkout: Path, *words: str) -> str:
    """Return what git says of a checkout."""
    command = ("git", "-C", str(checkout), *words)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def touched(commits: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the source files that commits made, and those that they changed."""
    told = [git(HERE.parent, "show", "--name-status", "--format=", commit, "--", "src") for commit in commits]
    lines = [line.replace("src/graftwork/", "").split("\t") for one in told for line in one.splitlines()]
    made = {path for status, path in lines if status == "A"}
    return sorted(made), sorted({path for _, path in lines} - made)


def rows_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a Markdown table."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (header, ["---"] * len(header), *rows))


def report(checkouts: Sequence[Path]) -> str:
    """Return the page: a column for each checkout, the last of them this one."""
    found = []
    for checkout in checkouts:
        values, rooms = counted(checkout / "src" / "graftwork")
        with tempfile.TemporaryDirectory() as folder:
            found.append((values | traced(checkout / "src" / "graftwork", Path(folder)), rooms))
    from graftwork.machine.environment import environment

    header = ["", *(["before"] if len(found) > 1 else []), "now"]
    names = sorted({room for _, rooms in found for room in rooms})
    added = [[part, *(f"{len(files)}: {', '.join(f'`{file}`' for file in files)}" for files in touched(commits))]
             for part, commits in ADDED.items()]  # fmt: skip
    commits = " and ".join(git(checkout, "rev-parse", "--short=8", "HEAD") for checkout in checkouts)
    here = environment()
    return "\n\n".join([
        "# What a reader of the source has to know",
        "`python benchmarks/structure.py --before CHECKOUT` counts `src/graftwork` here and in an earlier checkout. "
        "A file is passed if one of its functions is called between the entry and its answer, imports left out.",
        rows_of(header, [[name, *(values[name] for values, _ in found)] for name in found[0][0]]),
        "## Files of each room",
        rows_of(header, [[room, *(rooms[room] for _, rooms in found)] for room in names]),
        "## What a new part touched",
        rows_of(["part", "new source files", "changed source files"], added),
        f"Commit {commits}, {here['time'][:10]}, Python {sys.version.split()[0]}, {here['processor']}.",
    ]) + "\n"  # fmt: skip


def main() -> None:
    """Count, print and write; in a child, trace one way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="an earlier checkout, which comes first")
    parser.add_argument("--out", type=Path, default=HERE / "structure.md")
    parser.add_argument("--trace", choices=WAYS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.trace:
        Path(f"{chosen.trace}.json").write_text(json.dumps(sorted(passed(chosen.trace))), encoding="utf-8")
        return
    page = report([*([chosen.before.resolve()] if chosen.before else []), HERE.parent])
    chosen.out.write_text(page, encoding="utf-8")
    print(page, end="")


if __name__ == "__main__":
    main()
