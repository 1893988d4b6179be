"""Compare, train and serve against one bank for half an hour, and check every result:
`python benchmarks/robust/soak.py --minutes 30`.

A server answers a few requests per second the whole time. Meanwhile rounds are run: a comparison and a training start
together, over a new folder of runs and a shared cache; the module is added to the served bank, and that of the round
before is removed. Everything was computed once before, alone: runs must be bit-identical to those, `graft verify` must
succeed, `graft bank check` must find nothing, and the server must give the runs' predictions.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "bank"))

from result_file import result_of
from served import TOKEN, Served, graft_serve

from graftwork.io.files import digest, file_digest, read_json, write_json

HERE = Path(__file__).parent
QUESTION = (
    "Do comparing, training and serving against one bank, side by side for half an hour, ever fail, differ from what "
    "each gives alone, or make the server grow?"
)
BAR = {"failures": 0, "server_growth_bytes": 50_000_000, "server_handles_growth": 0, "server_exit_code": 0}
LABELS, ROWS = 4, {"train": 80, "validation": 24, "test": 24}
METHODS = ("majority", "tfidf_svm", "linear_probe", "top_layers:k=1", "lora")
TRAINED = "lora"  # also by `graft train` during the comparison: the same run
RESIDENT = ("linear_probe", "top_layers:k=1", "lora")  # tasks that are in the bank the whole time
SAME = ("predictions.jsonl", "module/delta.safetensors")  # files of a run that must be byte-identical
PROCESS_SECONDS = 1800  # time limit of a command
SERVED_SECONDS = 30.0  # for a server to load an added task
MOST_TOLD = 20  # failures kept; all are counted


@dataclass(frozen=True)
class Scene:
    """The folders of the benchmark, and the commands run in them."""

    folder: Path
    backbone: str
    methods: tuple[str, ...] = METHODS
    resident: tuple[str, ...] = RESIDENT

    @property
    def bank(self) -> Path:
        """Return the served bank."""
        return self.folder / "soak.bank"

    def start(self, name: str, *words: object) -> Command:
        """Start `graft WORDS` in a process, with one thread."""
        log = self.folder / f"{name}.log"
        command = [sys.executable, "-m", "graftwork", *map(str, words)]
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command, stdout=stream, stderr=subprocess.STDOUT, cwd=self.folder, env=os.environ | ONE_THREAD
            )
        return Command(name, process, log)

    def compare(self, runs: str) -> Command:
        """Start a board of every method."""
        words = ("--methods", ",".join(self.methods), "--seeds", "1", "--exhaustive", "--jobs", "1", "--out", "board")
        return self.start("compare", "compare", *self._task(), *words, *self._running(runs))

    def train(self, method: str, name: str, runs: str) -> Command:
        """Start a run whose module is added to the bank."""
        where = ("--method", method, "--bank", self.bank, "--task", name)
        return self.start("train", "train", *self._task(), *where, *self._running(runs))

    def _task(self) -> list[object]:
        return ["train.csv", "--validation", "validation.csv", "--test", "test.csv", "--epochs", "1"]

    def _running(self, runs: str) -> list[object]:
        return ["--backbone", self.backbone, "--threads", "1", "--runs", runs, "--cache", "cache"]


ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Command:
    """A started process."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> str:
        """Wait for the end; return what is wrong with it, or ""."""
        try:
            code = self.process.wait(PROCESS_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"{self.name} did not end within {PROCESS_SECONDS} s"
        said = self.log.read_text(encoding="utf-8", errors="replace")
        if code or "Traceback" in said:
            return f"{self.name} ended with code {code}: {said.strip()[-300:]}"
        return ""


@dataclass
class Failures:
    """The failures, without names of this machine's folders."""

    folder: Path
    told: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def note(self, where: str, what: str) -> None:
        """Record a failure; does nothing if `what` is empty."""
        if what:
            self.count += 1
            what = what.replace(str(self.folder), "FOLDER")
            print(f"FAILURE  {where}: {what}", flush=True)
            self.told = [*self.told, {"where": where, "what": what}][:MOST_TOLD]


@dataclass(frozen=True)
class Reference:
    """The results of the runs without other load."""

    runs: Mapping[str, Mapping[str, str]]  # run -> file -> sha256
    board: str  # digest of the board's rows, without times and prices
    answers: Mapping[str, Mapping[str, str]]  # method -> text -> label

    @classmethod
    def of(cls, scene: Scene, runs: Path) -> Reference:
        """Return the reference of a finished comparison."""
        board = read_json(scene.folder / "board" / "leaderboard.json")
        texts = [row["text"] for row in rows_of(scene.folder / "test.csv")]
        answers = {
            row["method"]: dict(zip(texts, predicted(runs / row["runs"][0]), strict=True)) for row in board["rows"]
        }
        return cls({path.name: hashes(path) for path in finished(runs)}, board_digest(board), answers)


def finished(runs: Path) -> list[Path]:
    """Return the folders of complete runs."""
    return sorted(path.parent for path in runs.glob("[!.]*/result.json"))


def hashes(run: Path) -> dict[str, str]:
    """Return the sha256 of a run's files in `SAME`; a method may lack some."""
    return {name: file_digest(run / name) for name in SAME if (run / name).is_file()}


def predicted(run: Path) -> list[str]:
    """Return the predicted label of each test row."""
    lines = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["prediction"] for line in lines if line["split"] == "test"]


def board_digest(board: Mapping[str, Any]) -> str:
    """Return a digest of a board's rows without their costs."""
    return digest([{name: row[name] for name in ("method", "scores", "runs", "status")} for row in board["rows"]])


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def compared(reference: Reference, runs: Path, board: Path) -> list[str]:
    """Return the differences between a round and the reference."""
    found = {path.name: hashes(path) for path in finished(runs)}
    wrong = [f"run {run} is missing" for run in reference.runs.keys() - found.keys()]
    wrong += [f"run {run} was not to be made" for run in found.keys() - reference.runs.keys()]
    for run in reference.runs.keys() & found.keys():
        files = [name for name, sha in reference.runs[run].items() if found[run].get(name) != sha]
        wrong += [f"run {run} differs: {', '.join(files)}"] if files else []
    if not (board / "leaderboard.json").is_file():
        return [*wrong, "there is no leaderboard.json"]
    if board_digest(read_json(board / "leaderboard.json")) != reference.board:
        wrong.append("the board has other scores")
    left = sorted(path.name.partition(".")[2].partition(".")[2] for path in runs.glob(".*.*"))
    return [*wrong, *(f"left behind: a folder of a run, {name}" for name in left)]


class Asker(threading.Thread):
    """A thread that queries the server's resident tasks a few times per second and checks the runs' predictions."""

    def __init__(self, served: Served, expected: Mapping[str, Mapping[str, str]], failures: Failures, pause: float):
        super().__init__(daemon=True)
        self.served, self.failures, self.pause = served, failures, pause
        self.asked = [(task, text, label) for task, answers in expected.items() for text, label in answers.items()]
        self.statuses: Counter[int] = Counter()
        self.resident_bytes: list[int] = []
        self.apart = 0.0  # largest difference of a probability from its first value
        self._first: dict[tuple[str, str], dict[str, float]] = {}
        self._ending, self._going = threading.Event(), threading.Event()
        self._going.set()

    def run(self) -> None:
        """Query until `end`."""
        for task, text, label in cycle(self.asked):
            self._going.wait()
            if self._ending.wait(self.pause):
                return
            try:
                self._once(task, text, label)
                self.resident_bytes.append(self.served.resident_bytes())
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.statuses[0] += 1
                self.failures.note("server", f"no answer: {type(error).__name__}: {error}")

    def _once(self, task: str, text: str, label: str) -> None:
        status, told = ask(self.served.port, {"task": task, "text": text})
        self.statuses[status] += 1
        if status != 200:
            self.failures.note("server", f"status {status}: {json.dumps(told)[:200]}")
            return
        answer = told["rows"][0]["answers"][task]
        if answer["label"] != label:
            self.failures.note("server", f"{task} answers {answer['label']!r}, and the run predicts {label!r}")
        first = self._first.setdefault((task, text), answer["probabilities"])
        gaps = [abs(answer["probabilities"][name] - value) for name, value in first.items()]
        self.apart = max([self.apart, *gaps])

    def quietly(self, look: Callable[[], int]) -> int:
        """Return the result of `look` while queries are paused."""
        self._going.clear()
        time.sleep(2 * self.pause + 0.5)
        try:
            return look()
        finally:
            self._going.set()

    def end(self) -> None:
        """Stop."""
        self._ending.set()
        self._going.set()
        self.join()


def ask(port: int, body: Mapping[str, Any]) -> tuple[int, Any]:
    """Send one request over a new connection; return status and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/predict", json.dumps(body), head)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def handles(served: Served) -> int:
    """Return the number of files, sockets and pipes that the server has open."""
    return len(os.listdir(f"/proc/{served.process.pid}/fd"))


def answers_as_trained(port: int, task: str, expected: Mapping[str, str]) -> str:
    """Query a newly added task until it is served; return what is wrong with its answers."""
    end = time.monotonic() + SERVED_SECONDS
    while True:
        status, told = ask(port, {"rows": [{"task": task, "text": text} for text in expected]})
        if status == 200:
            break
        if time.monotonic() > end:
            return f"{task} is not served after {SERVED_SECONDS:g} s: status {status}"
        time.sleep(0.2)
    wrong = sum(
        row["answers"][task]["label"] != label for row, label in zip(told["rows"], expected.values(), strict=True)
    )
    return f"{wrong} of {len(expected)} answers of {task} are not those of its run" if wrong else ""


def prepare(scene: Scene) -> Reference:
    """Write the data, make every run alone, and add the resident tasks to the bank."""
    write_data(scene.folder)
    commands = [scene.compare("reference")]
    wrong = commands[0].end()
    for place, method in enumerate(scene.resident):
        wrong = wrong or scene.train(method, f"resident{place}", "reference").end()
    if wrong:
        raise SystemExit(wrong)
    return Reference.of(scene, scene.folder / "reference")


def write_data(folder: Path) -> None:
    """Write tickets of the most frequent labels, one file per split, always the same rows."""
    with as_file(files("graftwork.data") / "builtin" / "tickets.csv") as path:
        rows = rows_of(path)
    known = [label for label, _ in Counter(row["label"] for row in rows).most_common(LABELS)]
    rows = sorted({row["text"]: row for row in rows if row["label"] in known}.values(), key=digest)
    for split, count in ROWS.items():
        taken, rows = rows[:count], rows[count:]
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, ("text", "label"))
            writer.writeheader()
            writer.writerows(taken)


def one_round(scene: Scene, number: int, reference: Reference, served: Served, failures: Failures) -> None:
    """Run a comparison beside a training, then every check of their results."""
    name, runs = f"round{number}", f"runs{number}"
    begun = [scene.compare(runs), scene.train(TRAINED, name, runs)]
    for command in begun:
        failures.note(f"round {number}", command.end())
    for wrong in compared(reference, scene.folder / runs, scene.folder / "board"):
        failures.note(f"round {number}", wrong)
    known = sorted(reference.runs)
    checks: Sequence[Sequence[object]] = (
        ("verify", known[number % len(known)], "--runs", runs),
        ("bank", "check", scene.bank),
    )
    for words in checks:
        failures.note(f"round {number}", scene.start(str(words[0]), *words).end())
    failures.note(f"round {number}", answers_as_trained(served.port, name, reference.answers[TRAINED]))
    if number:
        failures.note(
            f"round {number}", scene.start("remove", "bank", "remove", scene.bank, f"round{number - 1}").end()
        )
    shutil.rmtree(scene.folder / runs, ignore_errors=True)


def soak(scene: Scene, chosen: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run rounds until time is up; `tell` gets the results after each."""
    failures, reference = Failures(scene.folder), prepare(scene)
    resident = {f"resident{place}": reference.answers[method] for place, method in enumerate(scene.resident)}
    begun, rounds, open_files = time.monotonic(), 0, []
    measured: dict[str, Any] = {}
    with graft_serve(scene.bank, scene.folder, 1) as served:
        asker = Asker(served, resident, failures, 1.0 / chosen.rate)
        asker.start()
        warm = 0
        while rounds < chosen.warm_up + chosen.rounds or time.monotonic() - begun < 60.0 * chosen.minutes:
            one_round(scene, rounds, reference, served, failures)
            rounds += 1
            open_files.append(asker.quietly(lambda: handles(served)))
            if rounds == chosen.warm_up:
                warm = len(asker.resident_bytes) - 1
            measured = {
                "rounds": rounds,
                "seconds": time.monotonic() - begun,
                "processes": len(scene.resident) + 1 + 4 * rounds + max(0, rounds - 1),
                "requests": sum(asker.statuses.values()),
                "statuses": {str(status): count for status, count in sorted(asker.statuses.items())},
                "failures": failures.count,
                "server_bytes": {"warm": asker.resident_bytes[warm], "most": max(asker.resident_bytes)},
                "server_growth_bytes": max(asker.resident_bytes[warm:]) - asker.resident_bytes[warm],
                "server_handles": open_files,
                "server_handles_growth": open_files[-1] - open_files[min(chosen.warm_up, rounds) - 1],
                "largest_probability_difference": asker.apart,
            }
            tell({"measured": measured, "told": failures.told})
        asker.end()
        served.process.terminate()
        measured["server_exit_code"] = served.process.wait(60)
        torn = "Traceback" in served.log.read_text(encoding="utf-8")
    failures.note("server", "a traceback in its log" if torn else "")
    return {"measured": measured | {"failures": failures.count}, "told": failures.told}


def missed(measured: Mapping[str, Any]) -> list[str]:
    """Return the bars that were not met."""
    return [name for name, most in BAR.items() if name not in measured or measured[name] > most]


def main() -> None:
    """Write the results after every round; the exit code is 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=1, help="at least, after those that warm up")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before the server's memory and handles count")
    parser.add_argument("--rate", type=float, default=4.0, help="requests a second")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--work", type=Path, help="an empty folder to keep; default: one that goes afterwards")
    parser.add_argument("--data", type=Path, help="not used: the tickets come with the package")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    chosen = parser.parse_args()
    asked = {name: getattr(chosen, name) for name in ("minutes", "rounds", "warm_up", "rate", "backbone")}
    content = result_of(QUESTION, BAR, {}, "unfinished", arguments=asked)

    def tell(found: dict[str, Any]) -> None:
        write_json(chosen.out / "soak.json", content | found)
        print(json.dumps(found["measured"]), flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = (chosen.work or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        found = soak(Scene(folder, chosen.backbone), chosen, tell)
    content["status"] = "failed" if missed(found["measured"]) else "ok"
    tell(found)
    sys.exit(content["status"] != "ok")


if __name__ == "__main__":
    main()
