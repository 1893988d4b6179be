"""Feed every reader files that are invalid, or only look so: `python benchmarks/robust/malformed.py`.

Each of the files of malformed_cases.py must give exactly its rows, or a message that names the place, what is wrong
there, what was expected and what to do. Files that a command reads go through `graft data` too, which must print the
same and exit with 2. `--table` prints results/malformed.json as the table of its page, `--only WORD` tries the files
with that word in their name.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malformed_cases import CASES, Case, Right, Wrong
from result_file import BRIEF, result_of

from graftwork.cli.main import main as graft
from graftwork.core.kind import OfChoices
from graftwork.core.media import Media
from graftwork.core.task import Task, read_task_file
from graftwork.data.load import load, read_records
from graftwork.data.readers.columns import find_columns
from graftwork.data.readers.questions import read_questions
from graftwork.data.readers.rejects import Rejects
from graftwork.data.readers.table import open_table
from graftwork.data.readers.word_vector_files import read_word_vectors
from graftwork.errors import GraftworkError, printable
from graftwork.io.files import read_json, write_json
from graftwork.pretrain.corpus import open_corpus
from graftwork.registry import kinds, suites

RESULT = Path(__file__).parent / "results" / "malformed.json"
QUESTION = "Does any reader change a file's content without a word, fail with a traceback, or not say where and why?"
BAR = {"files": 40, "silent": 0, "tracebacks": 0, "lacking": 0}
DATA, MESSAGE, SILENT, TRACEBACK, LACKING, MISSED = "data", "message", "silent", "traceback", "lacking", "other message"
GOOD_ENDS = (DATA, MESSAGE)


@dataclass(frozen=True)
class Ended:
    """The outcome of reading a file."""

    end: str  # one of the six words
    told: str = ""  # the first line of the message, or the difference


def rows_of_table(path: Path, **flags: Any) -> Any:
    """Return inputs and target of every row, as the splits get them."""
    task = Task.from_file(path, **flags)
    kind = kinds.get(task.kind)
    if not isinstance(kind, OfChoices):
        task = find_columns(task, open_table(path), kind.per_word)
    return [[*(_plain(given, path) for given in record.inputs.values()), _listed(record.target)]
            for record in read_records(task, kind, path)]  # fmt: skip


def rows_of_load(path: Path, **flags: Any) -> Any:
    """Return the rows after all checks of a data set, including that labels fit one another."""
    return len(load(Task.from_file(path, **flags)).train.examples)


def rows_of_questions(path: Path, **flags: Any) -> Any:
    """Return words and answer places of every question."""
    files = dict.fromkeys(("train", "validation", "test"), path)
    asked = read_questions(Task.from_file(path, kind="span"), files, {name: Rejects() for name in files})
    return [[example.inputs["question"], [f"{gold.text}@{gold.start}" for gold in example.target]]
            for example in asked.examples["train"]]  # fmt: skip


def rows_of_suite(path: Path, suite: str, task: str) -> Any:
    """Return the rows of a task's training file."""
    found = next(one for one in suites.get(suite).tasks(path) if one.name == task)
    return [dict(row) if row is not None else None for row in found.train.read()]


def rows_of_vectors(path: Path) -> Any:
    """Return words with their numbers."""
    found = read_word_vectors(path)
    return [
        [word, [round(float(number), 6) for number in row]] for word, row in zip(found.words, found.table, strict=True)
    ]


def rows_of_corpus(path: Path, words: bool = False) -> Any:
    """Return documents, or all their words."""
    found = [document.text for document in open_corpus([path]).documents()]
    return " ".join(found).split() if words else found


def rows_of_task(path: Path) -> Any:
    """Return the settings of a task file, with file names as written there."""
    asked, comparison = read_task_file(path)
    return {**asked, **comparison, "data": asked["data"].name}


READERS: Mapping[str, Callable[..., Any]] = {
    "table": rows_of_table, "load": rows_of_load, "questions": rows_of_questions, "suite": rows_of_suite,
    "vectors": rows_of_vectors, "corpus": rows_of_corpus, "task": rows_of_task,
}  # fmt: skip
COMMANDS = ("table", "load", "questions", "task")  # read by `graft data` too


def _plain(given: Any, path: Path) -> Any:
    if isinstance(given, Media):
        return str(Path(given.path).relative_to(path if path.is_dir() else path.parent))
    return _listed(given)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def write_files(case: Case, folder: Path) -> Path:
    """Write the case's files; return the path to read."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content)
    return folder / case.asked


def tried(case: Case, folder: Path, read: Callable[..., Any] | None = None) -> Ended:
    """Read the case's files, written to `folder`, with its reader or with `read`."""
    path = write_files(case, folder)
    flags = {key: value for key, value in case.flags.items() if key != "open"}
    try:
        rows = (read or READERS[case.reader])(path, **flags)
    except GraftworkError as error:
        return judged(case, error, folder)
    except Exception as error:
        return Ended(TRACEBACK, f"{type(error).__name__}: {error}"[:200])
    if isinstance(case.outcome, Wrong):
        return Ended(SILENT, f"read as {rows!r}"[:200])
    if rows != case.outcome.rows:
        return Ended(SILENT, f"{rows!r} and not {case.outcome.rows!r}"[:200])
    return Ended(DATA)


def judged(case: Case, error: GraftworkError, folder: Path) -> Ended:
    """Return whether the message is the expected one, with all its parts."""
    told = printable(f"{error.where}: {error.what}".replace(f"{folder}/", ""))[:200]
    if isinstance(case.outcome, Right):
        return Ended(MISSED, told)
    parts = (error.where, error.what, error.got or error.expected, error.do)
    if not all(parts):
        return Ended(LACKING, told)
    place = error.where.removeprefix(f"{folder}/")
    if not place.startswith(case.outcome.place) or case.outcome.says not in error.what:
        return Ended(MISSED, told)
    return Ended(MESSAGE, told)


def commanded(case: Case, folder: Path) -> Ended:
    """Run `graft data` on an invalid file: it must give the same message and exit code 2."""
    path = write_files(case, folder)
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in case.flags.items() if key != "open"]
    kind = ["--kind=span"] if case.reader == "questions" else []
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = graft(["data", str(path), *kind, *flags])
    said = output.getvalue()
    if code != 2 or "Traceback" in said or "internal error" in said:
        return Ended(SILENT if code == 0 else TRACEBACK, said.strip().splitlines()[-1][:200] if said.strip() else "")
    assert isinstance(case.outcome, Wrong)
    parts = [part in said for part in ("  got:", "  expected:")]
    whole = case.outcome.says in said and case.outcome.place in said and any(parts) and "  do:" in said
    return Ended(MESSAGE if whole else MISSED, said.splitlines()[0].replace(f"{folder}/", "")[:200])


def measured(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return the outcome of each file, by its reader and, if a command reads it, by the command."""
    found = []
    for case in cases:
        told: dict[str, Any] = {"reader": case.reader, "case": case.what, "wrong": isinstance(case.outcome, Wrong)}
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            ended = tried(case, Path(folder))
        told |= {"end": ended.end, "told": ended.told, "seconds": round(time.perf_counter() - began, 3)}
        if isinstance(case.outcome, Wrong) and case.reader in COMMANDS:
            with tempfile.TemporaryDirectory() as folder:
                told["command"] = commanded(case, Path(folder)).end
        if not {told["end"], told.get("command", MESSAGE)} <= set(GOOD_ENDS):
            print(case.what, told, flush=True)
        found.append(told)
    return found


def summed(found: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts for the bar."""
    ends = Counter(one["end"] for one in found)
    commands = Counter(one["command"] for one in found if "command" in one)
    return {
        "files": len(found),
        "data": ends[DATA],
        "messages": ends[MESSAGE],
        "silent": ends[SILENT] + commands[SILENT],
        "tracebacks": ends[TRACEBACK] + commands[TRACEBACK],
        "lacking": ends[LACKING] + ends[MISSED] + commands[LACKING] + commands[MISSED],
        "by_command": sum(commands.values()),
    }


def is_met(counts: Mapping[str, int]) -> bool:
    """Return whether the bar is met."""
    return counts["files"] >= BAR["files"] and all(counts[name] <= BAR[name] for name in BAR if name != "files")


def table(result: Mapping[str, Any]) -> str:
    """Format the results as Markdown."""
    counts = result["measured"]
    lines = ["| file | ends in | message |", "| --- | --- | --- |"]
    for one in result["cases"]:
        told = one["told"].replace("|", "\\|")
        lines.append(f"| {one['case']} | {one['end']} | {told} |")
    head = (
        f"{counts['files']} files: {counts['data']} are read exactly, {counts['messages']} end in a message with "
        f"place, what, got or expected, and do ({counts['by_command']} of them by `graft data` too); "
        f"{counts['silent']} changed without a word, {counts['tracebacks']} tracebacks, {counts['lacking']} messages "
        "that lack something."
    )
    return head + "\n\n" + "\n".join(lines)


def main() -> None:
    """Try every file and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="not used: every file is made by code")
    parser.add_argument("--out", type=Path, default=RESULT.parent)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    path = chosen.out / RESULT.name
    if chosen.table:
        print(table(read_json(path)))
        return
    found = measured([case for case in CASES if chosen.only in case.what])
    counts = summed(found)
    content = result_of(QUESTION, BAR, counts, "ok" if is_met(counts) else "failed", BRIEF, cases=found)
    write_json(path, content)
    print(content["status"], counts)


if __name__ == "__main__":
    main()
