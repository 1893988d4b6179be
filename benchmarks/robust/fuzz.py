"""Fuzz every reader under coverage guidance: `python benchmarks/robust/fuzz.py --runs 300000`.

It needs atheris (Google's libFuzzer for Python), which is no dependency of Graftwork: `pip install atheris`. There is
a target for each reader of data, of modules, of weights, and of task files; `--target NAME` runs one, `--list` names
them. Seeds are the files of malformed_cases.py. For any bytes a reader must return rows or raise a `GraftworkError`.
A finding is any other exception, more than 5 s or 1 GB for an input, a row that can't be written as UTF-8, a message
that can't be printed, and rejected rows where a strict reading finds nothing wrong.

Every target runs in its own process; results are in results/fuzz.json, and `--table` prints them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zlib import crc32

from result_file import BRIEF, result_of

RESULT = Path(__file__).parent / "results" / "fuzz.json"
QUESTION = "Is there a file that makes a reader fail in any other way than by a message, hang, or take a gigabyte?"
LEAST = "executions_of_a_target_at_least"
BAR = {LEAST: 300_000, "findings": 0}
MOST_SECONDS, MOST_BYTES = 5.0, 1 << 30  # per input; CPU seconds
LONGEST = 4096  # bytes of an input
WRITTEN = 8  # one input in so many has its bad rows written, which takes longer than reading it
BESIDE_A_PROGRAM = {"byteorder": b"little", "data/0": bytes(24), "version": b"3\n"}  # in an archive of tensors
BETWEEN = b"\n%%%\n"  # separates the files of an input with several
LOOKED_AT = ("data", "suites", "pretrain.text_files", "io.files", "io.json_limits", "io.plain_files",
             "io.safetensors_header", "io.torch_archive", "core.task", "targets.choices", "pretrained.media_files",
             "targets.labels", "kinds", "module.module_files", "module.task_module")  # fmt: skip
WORDS = (  # words that the files consist of
    '"', "'", ",", "\t", "\n", "\r\n", "\r", "{", "}", "[", "]", ":", "null", "true", "false", "NaN", "-1", "1e999",
    "0", "1", "2", "text", "label", "tokens", "tags", "O", "B-X", "I-X", "choices", "choice1", "choice2", "query",
    "candidate", "relevance", "question", "context", "answers", "answer_start", "id", "title", "data", "paragraphs",
    "qas", "is_impossible", "annotations", "result", "type", "value", "start", "end", "labels", "was_cancelled",
    "start_offset", "end_offset", "entities", "T1", "R1", "PER", "premise", "hypothesis", "passage", "sentence1",
    "sentence2", "start1", "end1", "target", "span1_index", "span1_text", "idx", "cause", "\u2028", "\ufeff",
    "\\ud83d", "dtype", "shape", "data_offsets", "F32", "BF16", "__metadata__", "name", "kind", "metrics", "seeds",
    "rejects",
)  # fmt: skip
_STATUS = re.compile(r"#(\d+)\s+(?:DONE|NEW|REDUCE|pulse|INITED|RELOAD)\s+cov: (\d+) ft: (\d+)")

Read = Callable[[bytes, Path], Any]


@dataclass(frozen=True)
class Target:
    """A fuzzing target: a reader, and the malformed files that are its seeds."""

    read: Read
    seeds: Callable[[], list[bytes]]


@dataclass
class Tried:
    """The results of a target's inputs."""

    runs: int = 0
    refused: int = 0  # inputs refused with a message
    slowest_seconds: float = 0.0
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by location


class Hang(BaseException):
    """An input exceeded its time limit; no reader catches this."""


def _hang(number: int, frame: Any) -> None:
    raise Hang


def execute(read: Read, content: bytes, folder: Path, tried: Tried, most_seconds: float = MOST_SECONDS) -> None:
    """Feed one input and record findings. The limit is in CPU seconds."""
    from graftwork.errors import GraftworkError, printable

    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tried.runs += 1
    signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, most_seconds)
    try:
        read(content, folder)
    except GraftworkError as error:
        tried.refused += 1
        try:
            printable(error.message).encode()
        except Exception as inner:
            _found(tried, f"message: {_where(inner)}", content)
    except (Exception, Hang) as error:
        _found(tried, _where(error), content)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    tried.slowest_seconds = max(tried.slowest_seconds, time.process_time() - began)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MOST_BYTES:
        _found(tried, f"memory: {grown / 1e9:.1f} GB", content)


def _where(error: BaseException) -> str:
    """Return the type of an exception and the last line of our code that it passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "graftwork" in frame.filename]
    last = frames[-1] if frames else None
    place = f"{last.filename.rpartition('graftwork/')[2]}:{last.lineno}" if last else "the target"
    return f"{type(error).__name__} at {place}: {str(error)[:120]!r}"


def _found(tried: Tried, where: str, content: bytes) -> None:
    kept = tried.findings.setdefault(where, {"times": 0, "input": content[:LONGEST].decode("latin-1")})
    kept["times"] += 1


def of_table(name: str, **flags: Any) -> Read:
    """Return a reader of a table, strict and with bad rows rejected."""

    def read(content: bytes, folder: Path) -> None:
        from graftwork.core.task import Task

        (folder / name).write_bytes(content)
        _both_ways(Task("t", folder / name, **flags), folder)

    return read


def of_packed_table(content: bytes, folder: Path) -> None:
    """Read a compressed table; if the first byte is odd, compress the rest here, so that the checksum is valid."""
    rest = content[1:]
    of_table("t.csv.gz")(gzip.compress(rest, 1, mtime=0) if content[:1] and content[0] % 2 else rest, folder)


def of_brat(content: bytes, folder: Path) -> None:
    """Read a text and its annotations."""
    from graftwork.core.task import Task

    text, _, annotations = content.partition(BETWEEN)
    (folder / "b").mkdir(exist_ok=True)
    (folder / "b" / "a.txt").write_bytes(text)
    (folder / "b" / "a.ann").write_bytes(annotations)
    _both_ways(Task("t", folder / "b", kind="tagging"), folder)


def of_media(name: str) -> Read:
    """Return a reader of the only file of a class folder."""

    def read(content: bytes, folder: Path) -> None:
        from graftwork.core.task import Task

        (folder / "f" / "a").mkdir(parents=True, exist_ok=True)
        (folder / "f" / "a" / name).write_bytes(content)
        _both_ways(Task("t", folder / "f"), folder)

    return read


def _both_ways(task: Any, folder: Path) -> None:
    from graftwork.core.kind import OfChoices
    from graftwork.data.load import read_records
    from graftwork.data.readers.columns import find_columns
    from graftwork.data.readers.rejects import Rejects, write_rejects
    from graftwork.data.readers.table import open_table
    from graftwork.errors import DataError
    from graftwork.registry import kinds

    kind = kinds.get(task.kind)
    if not isinstance(kind, OfChoices):
        task = find_columns(task, open_table(task.data), kind.per_word)
    aside = Rejects(aside=True)
    try:
        rows = [row.inputs for row in read_records(task, kind, task.data, aside)]
    except DataError:
        rows = []
        if not aside.found:
            raise
    if not crc32(path.read_bytes() if (path := task.data).is_file() else b"") % WRITTEN:
        write_rejects(folder / "rejects", aside.found)
    _require_whole(rows)
    strict = None
    try:
        read_records(task, kind, task.data)
    except DataError as error:
        strict = error
    if bool(aside.found) != (strict is not None):
        raise AssertionError("a strict reading and one that sets rows aside do not agree")
    if strict is not None:
        raise strict


def _require_whole(rows: Any) -> None:
    """Check that rows can be hashed, and written as UTF-8."""
    from graftwork.core.example import plain
    from graftwork.io.files import canonical

    for inputs in rows:
        canonical(plain(inputs))
        json.dumps(plain(inputs), ensure_ascii=False).encode()


def of_questions(name: str) -> Read:
    """Return a reader of questions about passages, strict and with bad ones rejected."""

    def read(content: bytes, folder: Path) -> None:
        from graftwork.core.task import Task
        from graftwork.data.readers.questions import read_questions
        from graftwork.data.readers.rejects import Rejects, write_rejects
        from graftwork.errors import DataError

        path = folder / name
        path.write_bytes(content)
        files = {"train": path, "validation": path, "test": path}
        task, aside = Task("t", path, kind="span"), {split: Rejects(aside=True) for split in files}
        found: DataError | None = None
        try:
            asked = read_questions(task, files, aside)
            _require_whole(example.inputs for example in asked.examples["train"])
        except DataError as error:
            found = error
        if not crc32(content) % WRITTEN:
            write_rejects(folder / "rejects", aside["train"].found)
        try:
            read_questions(task, files, {split: Rejects() for split in files})
        except DataError:
            raise
        if aside["train"].found or found is not None:
            raise AssertionError("a strict reading and one that sets questions aside do not agree")

    return read


def of_suite(suite: str, files: Mapping[str, str]) -> Read:
    """Return a reader of the training file of one of a suite's tasks (task -> file); the first byte selects it."""

    def read(content: bytes, folder: Path) -> None:
        from graftwork.registry import suites

        task, name = list(files.items())[content[0] % len(files) if content else 0]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content[1:])
        found = next(one for one in suites.get(suite).tasks(folder) if one.name == task)
        for row in found.train.read():
            json.dumps(row, ensure_ascii=False).encode()

    return read


def of_vectors(content: bytes, folder: Path) -> None:
    """Read word vectors; the first byte selects the suffix."""
    from graftwork.data.readers.word_vector_files import read_word_vectors

    path = folder / ("t.txt", "t.bin", "t.txt.gz")[content[0] % 3 if content else 0]
    path.write_bytes(content[1:])
    found = read_word_vectors(path)
    assert found.table.shape[0] == len(found.words) == len(set(found.words))
    "\n".join(found.words).encode()


def of_corpus(content: bytes, folder: Path) -> None:
    """Read a text file for pre-training; the first byte selects its suffix and unit."""
    from graftwork.pretrain.corpus import open_corpus

    choice = content[0] if content else 0
    path = folder / ("t.txt", "t.jsonl", "t.txt.gz", "t.jsonl.xz", "t.txt.bz2")[choice % 5]
    path.write_bytes(content[1:])
    for document in open_corpus([path], unit=("line", "paragraph", "file")[choice % 3]).documents():
        document.text.encode()


def of_task_file(content: bytes, folder: Path) -> None:
    """Read a task file, up to its data."""
    from graftwork.core.task import Task

    (folder / "t.toml").write_bytes(content)
    Task.from_file(folder / "t.toml")


def of_json(content: bytes, folder: Path) -> None:
    """Read one of our own records."""
    from graftwork.io.files import read_json

    (folder / "t.json").write_bytes(content)
    read_json(folder / "t.json")


def of_weights(name: str) -> Read:
    """Return a reader of a file of weights."""

    def read(content: bytes, folder: Path) -> None:
        from graftwork.io.files import safe_load

        (folder / name).write_bytes(content)
        for tensor in safe_load(folder / name, mapped=False).values():
            tensor.sum()

    return read


def of_archive(content: bytes, folder: Path) -> None:
    """Read an archive of tensors; if the first byte is odd, it is intact except its pickle, the rest of the input."""
    from graftwork.io.files import safe_load

    path = folder / "t.bin"
    if content[:1] and content[0] % 2:
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in (BESIDE_A_PROGRAM | {"data.pkl": content[1:]}).items():
                archive.writestr(f"t/{name}", part)
    else:
        path.write_bytes(content[1:])
    for tensor in safe_load(path, mapped=False).values():
        tensor.sum()


def of_module(content: bytes, folder: Path) -> None:
    """Read a task module's description and self-test, with its weights intact."""
    from graftwork.module.task_module import TaskModule

    description, _, test = content.partition(BETWEEN)
    (folder / "module.json").write_bytes(description)
    (folder / "selftest.json").write_bytes(test)
    (folder / "delta.safetensors").write_bytes(module_files()["delta.safetensors"])
    TaskModule.load(folder, device="cpu")


_MODULE: dict[str, bytes] = {}


def module_files() -> Mapping[str, bytes]:
    """Return the files of a module trained here: TF-IDF and a linear model, which need no backbone."""
    if not _MODULE:
        import graftwork as gw

        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "t.csv"
            rows = [f"{'good' if n % 2 else 'bad'} thing {n},{'ab'[n % 2]}" for n in range(40)]
            data.write_text("text,label\n" + "\n".join(rows) + "\n")
            run = gw.train(data, method="tfidf_svm", runs=Path(folder) / "runs", cache_size="0")
            _MODULE.update({path.name: path.read_bytes() for path in (run.folder / "module").iterdir()})
    return _MODULE


def seeds(*names: str, first: bytes = b"", word: str = "") -> Callable[[], list[bytes]]:
    """Return the malformed files named so whose case name contains `word`, with `first` before each."""

    def found() -> list[bytes]:
        from malformed_cases import CASES

        contents = [content for case in CASES if word in case.what for name, content in case.files.items()
                    if name in names and isinstance(content, bytes)]  # fmt: skip
        return [first + content for content in dict.fromkeys(contents) if len(content) <= LONGEST]

    return found


def together(*several: Callable[[], list[bytes]]) -> Callable[[], list[bytes]]:
    """Return seeds of several sorts."""
    return lambda: [content for one in several for content in one()]


def _made(make: Callable[[], Iterator[bytes]]) -> Callable[[], list[bytes]]:
    return lambda: list(make())


def _brat() -> Iterator[bytes]:
    from malformed_cases import CASES

    for case in CASES:
        if case.what.startswith("brat"):
            yield bytes(case.files["b/a.txt"]) + BETWEEN + bytes(case.files["b/a.ann"])  # type: ignore[arg-type]


def _parquet() -> Iterator[bytes]:
    from malformed_cases import parquet_of

    yield parquet_of({"text": ["a", "NA"], "label": ["x", "None"]})
    yield parquet_of({"text": ["a", None], "label": [1.0, float("nan")]})
    yield parquet_of({"text": ["a"] * 50, "label": [True, False] * 25})


def _weights() -> Iterator[bytes]:
    import torch
    from safetensors.torch import save

    yield save({"a": torch.ones(2, 3), "b": torch.zeros(4, dtype=torch.bfloat16)})
    yield save({})


def _archives() -> Iterator[bytes]:
    import io

    import torch

    for tensors in ({"a": torch.ones(2, 3), "b": torch.zeros(4, dtype=torch.int64)}, {}):
        made = io.BytesIO()
        torch.save(tensors, made)
        yield b"\0" + made.getvalue()
        with zipfile.ZipFile(made) as archive:
            yield b"\1" + archive.read("archive/data.pkl")


def _media(sound: bool) -> Iterator[bytes]:
    import numpy as np
    from malformed_cases import png, wav

    yield wav(np.sin(np.arange(200))) if sound else png()
    if sound:
        yield wav([0.5, np.nan], "FLOAT")


def _module() -> Iterator[bytes]:
    files = module_files()
    yield files["module.json"] + BETWEEN + files["selftest.json"]


def _lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


_ASKED = {"id": "1", "question": "What is long?", "answers": [{"text": "river", "answer_start": 4}]}
_ARTICLES = {"data": [{"title": "t", "paragraphs": [{"context": "The river is long.", "qas": [
    _ASKED, {**_ASKED, "id": "2", "is_impossible": True, "answers": []}]}]}]}  # fmt: skip
_SPAN = {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"], "text": "Ann"}}
_CHOICE = {"type": "choices", "value": {"choices": ["a"]}}
_COPA = {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": 1, "idx": 0}
_WIC = {
    "sentence1": "ab c",
    "sentence2": "ab d",
    "start1": 0,
    "end1": 2,
    "start2": 0,
    "end2": 2,
    "label": True,
    "idx": 0,
}
_WSC = {"text": "Mark saw him .", "label": False, "idx": 1, "target": {
    "span1_index": 0, "span1_text": "Mark", "span2_index": 2, "span2_text": "him"}}  # fmt: skip
WHOLE: Mapping[str, tuple[bytes, ...]] = {  # valid files, because the malformed ones are nearly all invalid
    "tsv": (b"text\tlabel\na\t1\nb\t-2.5e3\nc\t.5\n",),
    "multilabel": (_lines({"text": "a", "label": ["x", "y"]}, {"text": "b", "label": []}),),
    "choices": (_lines({"text": "q", "choices": ["a", "b"], "label": 1}, {"text": "r", "choices": ["a", "b"], "label": "b"}),
                _lines({"premise": "p", "question": "cause", "choice1": "a", "choice2": "b", "label": "choice1"})),
    "ranking": (b"query\tcandidate\trelevance\nq\ta\t1\nq\tb\t0\nr\ta\t0\nr\tc\t1\n",),
    "doccano": (_lines({"text": "Ann lost it", "label": [[0, 3, "PER"]]}, {"text": "x", "label": []}),
                _lines({"text": "Ann", "entities": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]})),
    "label_studio": (json.dumps([{"id": n, "data": {"text": "Ann lost it"}, "annotations": [{"result": [_SPAN]}]}
                                 for n in range(2)]).encode(),),
    "label_studio_choices": (json.dumps([{"id": n, "data": {"text": "Ann lost it"}, "annotations": [{"result": [_CHOICE]}]}
                                         for n in range(2)]).encode(),),
    "squad": (json.dumps(_ARTICLES).encode(),),
    "squad_lines": (_lines({"context": "The river is long.", **_ASKED}),),
    "superglue": (b"\0" + _lines({"question": "q", "passage": "p", "label": True, "idx": 0}), b"\2" + _lines(_COPA),
                  b"\1" + _lines({"premise": "p", "hypothesis": "h", "label": "entailment"}), b"\4" + _lines(_WIC),
                  b"\5" + _lines(_WSC)),
    "squad_suite": (b"\0" + json.dumps(_ARTICLES).encode(),),
    "glue": (b"\1gj04\t1\t\tA sentence.\n", b"\0sentence\tlabel\na\t1\n"),
    "task_file": (b'data = "t.csv"\nkind = "span"\nlabels = ["a", "b"]\nsplit_seed = 3\ndrop_leaks = true\n',),
}  # fmt: skip

GLUE = {"SST-2": "SST-2/train.tsv", "CoLA": "CoLA/train.tsv", "QQP": "QQP/train.tsv", "MRPC": "MRPC/train.tsv"}
SUPERGLUE = {name: f"{name}/train.jsonl" for name in ("BoolQ", "CB", "COPA", "RTE", "WiC", "WSC")}
TARGETS: Mapping[str, Target] = {
    "csv": Target(of_table("t.csv"), seeds("t.csv")),
    "csv_gz": Target(of_packed_table, together(seeds("t.csv.gz", first=b"\0"), seeds("t.csv", first=b"\1"))),
    "tsv": Target(of_table("t.tsv", kind="regression"), seeds("t.tsv")),
    "jsonl": Target(of_table("t.jsonl"), seeds("t.jsonl", word="JSONL")),
    "multilabel": Target(of_table("t.jsonl", kind="multilabel"), seeds("t.jsonl", word="JSONL")),
    "choices": Target(of_table("t.jsonl", kind="choice"), seeds("t.jsonl", word="choices")),
    "ranking": Target(of_table("t.tsv", kind="ranking"), seeds("t.tsv", word="ranking")),
    "conll": Target(of_table("t.conll", kind="tagging"), seeds("t.conll")),
    "conllu": Target(of_table("t.conllu", kind="tagging"), seeds("t.conllu")),
    "doccano": Target(of_table("t.jsonl", kind="tagging"), seeds("t.jsonl", word="doccano")),
    "label_studio": Target(of_table("t.json", kind="tagging"), seeds("t.json", word="Label Studio")),
    "label_studio_choices": Target(of_table("t.json"), seeds("t.json", word="Label Studio")),
    "brat": Target(of_brat, _made(_brat)),
    "squad": Target(of_questions("t.json"), seeds("t.json", word="SQuAD")),
    "squad_lines": Target(of_questions("t.jsonl"), seeds("t.jsonl", word="SQuAD")),
    "parquet": Target(of_table("t.parquet"), _made(_parquet)),
    "images": Target(of_media("1.png"), _made(lambda: _media(sound=False))),
    "sounds": Target(of_media("1.wav"), _made(lambda: _media(sound=True))),
    "glue": Target(of_suite("glue", GLUE), seeds("SST-2/train.tsv", first=b"\0")),
    "superglue": Target(of_suite("superglue", SUPERGLUE), together(
        *(seeds(name, first=bytes([n])) for n, name in enumerate(SUPERGLUE.values())))),
    "squad_suite": Target(of_suite("squad", {"SQuAD1.1": "train-v1.1.json"}), seeds("train-v1.1.json", first=b"\0")),
    "word_vectors": Target(of_vectors, together(seeds("t.txt", "t.vec", first=b"\0", word="vectors"),
                                                seeds("t.bin", first=b"\1"), seeds("t.txt.gz", first=b"\2"))),
    "corpus": Target(of_corpus, together(seeds("t.txt", first=b"\0", word="corpus"), seeds("t.txt.gz", first=b"\2"),
                                         seeds("t.jsonl", first=b"\1", word="corpus"))),
    "task_file": Target(of_task_file, seeds("t.toml")),
    "json": Target(of_json, seeds("t.json")),
    "safetensors": Target(of_weights("t.safetensors"), _made(_weights)),
    "archive": Target(of_archive, _made(_archives)),
    "module": Target(of_module, _made(_module)),
}  # fmt: skip


def instrumented() -> None:
    """Import the fuzzed code under atheris' coverage instrumentation; children are forks of this process."""
    import atheris

    with atheris.instrument_imports(include=[f"graftwork.{part}" for part in LOOKED_AT], enable_loader_override=False):
        import graftwork.data.load
        import graftwork.io.torch_archive
        import graftwork.module.task_module
        import graftwork.pretrain.corpus
        import graftwork.registry

        for registry in ("kinds", "suites", "methods"):
            for part in getattr(graftwork.registry, registry).names():
                getattr(graftwork.registry, registry).get(part)


def child(name: str, runs: int, place: Path) -> None:
    """Run a target in this process, which exits with it; the result is in `place`."""
    import atheris

    target, tried, began = TARGETS[name], Tried(), time.process_time()
    corpus = place / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, content in enumerate([*target.seeds(), *WHOLE.get(name, ())]):
        (corpus / f"seed{number}").write_bytes(content)
    files = place / "files"
    files.mkdir(exist_ok=True)
    written = [time.perf_counter()]

    def once(content: bytes) -> None:
        execute(target.read, content, files, tried)
        now = time.perf_counter()
        if tried.runs >= runs or now - written[0] > 1:
            written[0] = now
            told = {"executions": tried.runs, "refused": tried.refused, "cpu_seconds": time.process_time() - began,
                    "slowest_seconds": tried.slowest_seconds, "findings": tried.findings}  # fmt: skip
            (place / "tried.json").write_text(json.dumps(told))

    words = place / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS))
    settings = [
        f"-atheris_runs={runs}",
        f"-dict={words}",
        f"-max_len={LONGEST}",
        "-timeout=1200",
        "-rss_limit_mb=6000",
        "-seed=1",
    ]
    atheris.Setup([sys.argv[0], *settings, str(corpus)], once)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def fuzzed(name: str, runs: int, most_seconds: float) -> dict[str, Any]:
    """Run a target in its own process and return its result. Ending early is a finding."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        process = os.fork()
        if not process:
            _forked(name, runs, Path(folder))
        code = _waited(process, most_seconds)
        said = (Path(folder) / "said").read_text(encoding="utf-8", errors="replace")
        path = Path(folder) / "tried.json"
        told: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"executions": 0, "findings": {}}
    status = _STATUS.findall(said)
    told |= {"edges": int(status[-1][1]), "features": int(status[-1][2])} if status else {}
    if code:
        told["findings"][f"the process ended with code {code}"] = {"times": 1, "input": said[-1500:]}
    return told | {"stopped": code is None}


def _forked(name: str, runs: int, place: Path) -> None:
    """Redirect all output to a file, run, and exit. In the child only."""
    handle = os.open(place / "said", os.O_CREAT | os.O_WRONLY)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    code = 1
    try:
        child(name, runs, place)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def _waited(process: int, most_seconds: float) -> int | None:
    """Return the exit code, negative for a signal; None if it was stopped because its time was up."""
    until = time.monotonic() + most_seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.2)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def summary(targets: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts for the bar."""
    counts = [one["executions"] for one in targets.values()]
    return {
        "executions_of_a_target": min(counts, default=0),
        "executions": sum(counts),
        "targets": len(counts),
        "targets_with_enough": sum(count >= BAR[LEAST] for count in counts),
        "findings": sum(len(one["findings"]) for one in targets.values()),
    }


def is_met(targets: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether every target had its executions and none has a finding."""
    whole = targets.keys() == TARGETS.keys()
    return whole and all(
        one["executions"] >= BAR[LEAST] and len(one["findings"]) <= BAR["findings"] for one in targets.values()
    )


def table(result: Mapping[str, Any]) -> str:
    """Format the results as Markdown."""
    lines = ["| target | executions | processor seconds | edges covered | slowest input | findings |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | --- |")
    for name, one in result["targets"].items():
        findings = "; ".join(one["findings"]).replace("|", "\\|") or "none"
        slowest = f"{1000 * one.get('slowest_seconds', 0):.0f} ms"
        lines.append(f"| {name} | {one['executions']:,} | {one.get('cpu_seconds', 0):.0f} | {one.get('edges', '')} | "
                     f"{slowest} | {findings} |")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Run targets, one after another, and write each result as soon as it is ready."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="not used: every seed is made by code")
    parser.add_argument("--runs", type=int, default=BAR[LEAST])
    parser.add_argument("--target", action="append", choices=TARGETS, help="one, or several; default: all")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of a target at most")
    parser.add_argument("--out", type=Path, default=RESULT.parent)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(TARGETS))
    elif chosen.table:
        print(table(json.loads((chosen.out / RESULT.name).read_text())))
    else:
        run(chosen)


def run(chosen: argparse.Namespace) -> None:
    """Run every requested target; results of earlier calls are kept."""
    try:
        engine = f"atheris {version('atheris')}"
    except PackageNotFoundError:
        raise SystemExit("it needs atheris: pip install atheris") from None
    instrumented()  # before anything of ours is imported
    from graftwork.io.files import read_json, write_json

    path = chosen.out / RESULT.name
    targets = read_json(path)["targets"] if path.is_file() else {}
    about = {"engine": engine, "python": sys.version.split()[0]}
    for name in chosen.target or TARGETS:
        targets[name] = fuzzed(name, chosen.runs, chosen.seconds)
        ordered = {known: targets[known] for known in TARGETS if known in targets}
        status = "ok" if is_met(ordered) else "failed"
        write_json(path, result_of(QUESTION, BAR, summary(ordered), status, BRIEF, **about, targets=ordered))
        print(name, {key: value for key, value in targets[name].items() if key != "findings"}, flush=True)
        for where in targets[name]["findings"]:
            print("   ", where, flush=True)


if __name__ == "__main__":
    main()
