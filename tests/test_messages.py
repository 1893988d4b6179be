"""Every message that is raised on purpose says what, where, got, expected and do, as far as each helps.

The sites are read from the source: a message that never ran in a test is held to the same rules.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from graftwork.cli.main import main

SOURCE = Path(__file__).resolve().parents[1] / "src" / "graftwork"
PARTS = ("what", "where", "got", "expected", "do")
SAYS_THE_RULE = re.compile(
    r"\b(must|only|needs?|at least|or more|above 0|first|means nothing|is for several|exclude)\b"
)
OUR_WORDS = re.compile(r"\b(Traceback|exception|stack trace|NoneType|KeyError|TypeError)\b", re.IGNORECASE)
OF_FILES = ("DataError", "StorageError", "IncompatibleModule")
WITHOUT_A_PLACE = {  # what of a message of these is enough, and why
    "bank/exchange/imported_module.py": "the folder was named in the command, and the message names the backbone",
    "pretrained/build_backbone.py": "the backbone is named",
    "pretrained/word_vector_table.py": "the word is named",
    "pretrain/training_text.py": "the corpus was named in the command, and may be many files",
    "pretrain/objectives/word_vectors.py": "the same",
    "pretrain/packing.py": "the same",
}
WITHOUT_A_REMEDY = {
    "an internal error": "the server's own fault: its reader can do nothing",
    "without_places(": "an error of another kind with its places taken out, for readers over the network",
}
OURS = {
    "column",
    "delimiter",
    "folder.name",
    "name",
    "role",
    "suffix",
    "task.kind",
}  # names of parts, columns asked for, folders
QUOTED_DATA = ("data", "suites")  # whose messages show what stands in files


@dataclass(frozen=True)
class Site:
    """A call that makes an error."""

    path: Path
    line: int
    error: str
    parts: dict[str, ast.expr]
    spread: bool  # parts are handed on from another error

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line}"

    def text(self, part: str) -> str:
        """The words of a part, {} for what is filled in; "" where there is none."""
        return words(self.parts[part]) if part in self.parts else ""

    @property
    def source(self) -> str:
        return ast.unparse(self.parts["what"])


def words(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.IfExp):
        return f"{words(node.body)} | {words(node.orelse)}"
    if isinstance(node, ast.BinOp):
        return words(node.left) + words(node.right)
    return "{}"


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


@functools.cache
def error_classes() -> dict[str, ast.ClassDef]:
    """`GraftworkError` and whatever is made of it, wherever it stands."""
    classes = [node for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {node.name: node for node in classes if node.name == "GraftworkError"}
    while more := {node.name: node for node in classes if node.name not in found and bases(node) & found.keys()}:
        found |= more
    return found


@functools.cache
def sites() -> tuple[Site, ...]:
    return tuple(site for path, tree in trees().items() for site in sites_in(path, tree))


def sites_in(path: Path, tree: ast.Module) -> Iterator[Site]:
    errors = error_classes().keys()
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not bases(node) & errors}
    asked = errors - own
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in asked:
            given = node.args[1:] if node.func.id == "HttpRefusal" else node.args
            if node.func.id == "UnknownName" or not given:
                continue
            named = {item.arg: item.value for item in node.keywords if item.arg in PARTS}
            spread = any(item.arg is None for item in node.keywords)
            yield Site(path, node.lineno, node.func.id, {"what": given[0], **named}, spread)


def test_the_walk_sees_the_errors_and_their_sites() -> None:
    assert {
        "ConfigError",
        "DataError",
        "UnknownName",
        "Diverged",
        "OutOfMemory",
        "HttpRefusal",
    } <= error_classes().keys()
    assert len(sites()) > 300 and {"errors.py"} != {site.path.name for site in sites()}


def failing(rule: str) -> list[str]:
    return [f"{site}: {site.source}" for site in sites() if not RULES[rule](site)]


def says_what(site: Site) -> bool:
    return bool(site.text("what").strip())


def says_where(site: Site) -> bool:
    known = site.spread or "where" in site.parts or str(site).partition(":")[0] in WITHOUT_A_PLACE
    return known or site.error not in OF_FILES


def says_what_to_do(site: Site) -> bool:
    if site.spread or {"do", "expected"} & site.parts.keys() or SAYS_THE_RULE.search(site.text("what")):
        return True
    return any(start in site.source for start in WITHOUT_A_REMEDY)


def ends_open(site: Site) -> bool:
    """A part is a phrase: no full stop at its end, nor a space at either."""
    told = [text for part in PARTS for text in site.text(part).split(" | ") if text]
    return all(text == text.strip() and not re.search(r"(?<!\.)\.$", text) for text in told)


def speaks_to_users(site: Site) -> bool:
    return not any(OUR_WORDS.search(site.text(part)) for part in PARTS)


def clips_data(site: Site) -> bool:
    """Values of a file are shown by `clip`: quoted, escaped, and cut."""
    if site.path.relative_to(SOURCE).parts[0] not in QUOTED_DATA or site.error != "DataError":
        return True
    shown = [item for part in PARTS if part in site.parts for item in ast.walk(site.parts[part])]
    quoted = [item.value for item in shown if isinstance(item, ast.FormattedValue) and item.conversion == ord("r")]
    clipped = {
        arg for item in shown if isinstance(item, ast.Call) and ast.unparse(item.func) == "clip" for arg in item.args
    }
    called = [
        item.args[0]
        for item in shown
        if isinstance(item, ast.Call) and ast.unparse(item.func) == "repr" and item not in clipped
    ]
    return not [one for one in quoted + called if ast.unparse(one) not in OURS]


RULES = {
    "says what happened": says_what,
    "says where, of what stands in a file": says_where,
    "says what to do, or what is expected, or the rule": says_what_to_do,
    "is made of phrases": ends_open,
    "speaks to users": speaks_to_users,
    "clips what stands in data": clips_data,
}


@pytest.mark.parametrize("rule", RULES)
def test_every_message(rule: str) -> None:
    found = failing(rule)
    assert not found, f"{len(found)} do not: it {rule}\n" + "\n".join(found)


def site(code: str, path: str = "data/load.py") -> Site:
    node = ast.parse(code, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    named = {item.arg: item.value for item in node.keywords if item.arg}
    return Site(SOURCE / path, 1, node.func.id, {"what": node.args[0], **named}, spread=False)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("says what happened", "ConfigError('')"),
        ("says where, of what stands in a file", "DataError('a bad row', do='mend it')"),
        ("says what to do, or what is expected, or the rule", "ConfigError('it is wrong', got='x')"),
        ("is made of phrases", "ConfigError('it is wrong.', do='mend it')"),
        ("speaks to users", "ConfigError('a KeyError', do='mend it')"),
        ("clips what stands in data", "DataError(f'no {value!r}', where='x', do='mend it')"),
        ("clips what stands in data", "DataError('no', where='x', got=repr(value))"),
    ],
)
def test_a_bad_message_would_be_found(rule: str, code: str) -> None:
    assert not RULES[rule](site(code))


def test_what_is_let_be_is_there() -> None:
    files = {str(site).partition(":")[0] for site in sites() if site.error in OF_FILES and "where" not in site.parts}
    assert set(WITHOUT_A_PLACE) <= files
    assert all(any(start in site.source for site in sites()) for start in WITHOUT_A_REMEDY)


def provoked() -> dict[str, tuple[list[str], tuple[str, ...]]]:
    """Error class -> a command that raises it, in a folder where `write_inputs` was, and what must be printed."""
    quick = ["--backbone", "tiny_text", "--epochs", "1"]
    return {
        "ConfigError": (["train", "data.csv"], ("neither --method nor --budget", "expected: one of them", "do:")),
        "UnknownName": (
            ["train", "data.csv", "--method", "lorra"],
            ("unknown method 'lorra'", "expected: one of", "'lora'"),
        ),
        "DataError": (
            ["train", "bad.csv", "--method", "majority"],
            ("bad.csv:3: ", "got:", "expected: 2 fields", "do:"),
        ),
        "NotWhole": (
            ["vectors", "torn.txt.gz"],
            ("torn.txt.gz: not a whole gzip file", "expected: gzip, as its suffix says", "do:"),
        ),
        "StorageError": (["train", "none.csv", "--method", "majority"], ("none.csv: ", "no such file")),
        "IncompatibleModule": (
            ["predict", "broken", "a text"],
            ("broken: unknown format", "got:      99", "expected: format 1"),
        ),
        "OutOfMemory": (
            ["train", "data.csv", "--method", "lora", *quick, "--max-memory", "1MB"],
            (
                "the run ended as out_of_memory: one example of",
                "more than --max-memory",
                "got:",
                "expected: at most 1 MB",
            ),
        ),
        "Diverged": (
            ["train", "data.csv", "--method", "adapter", *quick[:2], "--epochs", "4", "--learning-rate", "1e30"],
            ("the run ended as diverged: training diverged at step", "got:", "do:"),
        ),
    }


ELSEWHERE = {
    "GraftworkError": "the class of all, raised for runs that failed: as for OutOfMemory and Diverged",
    "InputError": "X or y of an estimator, tests/estimators",
    "HttpRefusal": "an answer of the server, whose tests provoke it",
    "MissingExtra": "a process without an extra, tests/cli/test_without_extras.py",
    "TaskFailed": "a row of a stream, whose tests provoke it",
}


def write_inputs(folder: Path) -> None:
    rows = "".join(f"text number {i},{'ab'[i % 2]}\n" for i in range(40))
    (folder / "data.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    (folder / "bad.csv").write_text("text,label\none,a\ntwo,b,c\n", encoding="utf-8")
    (folder / "torn.txt.gz").write_bytes(b"half")
    (folder / "broken").mkdir()
    for name in ("module.json", "selftest.json"):
        (folder / "broken" / name).write_text('{"format": 99}', encoding="utf-8")


def test_every_class_is_provoked_or_let_be() -> None:
    assert provoked().keys() | ELSEWHERE.keys() == error_classes().keys()


@pytest.mark.parametrize("error", provoked())
def test_every_class_through_the_command_line(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    arguments, held = provoked()[error]
    code = main(arguments)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, ""), printed.err
    first, *further = printed.err.rstrip().splitlines()
    assert first.startswith("graft: ") and not OUR_WORDS.search(printed.err)
    assert [part for part in held if part not in printed.err] == []
    order = [line.split(":")[0].strip() for line in further if re.match(r"  (got|expected|do):", line)]
    assert order == sorted(order, key=PARTS.index), "the parts come in their order"
