"""The shape of the code, as CONTRIBUTING.md describes it: what these tests allow is what a reader may rely on."""

from __future__ import annotations

import ast
import dataclasses
import functools
import graphlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import graftwork
from graftwork import registry
from graftwork.cli.main import command_summaries
from graftwork.cli.options import task_flags
from graftwork.core.kind_settings import kind_settings
from graftwork.core.task import read_task_file
from graftwork.errors import UnknownName

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE = CHECKOUT / "src" / "graftwork"
FILES = sorted(SOURCE.rglob("*.py"))
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])

PARTS = ("backbones", "kinds", "methods", "metrics", "meters", "suites")
LAYERS = (  # an import points to a lower line
    ("__init__", "__main__", "testing"),
    ("cli",), ("serve",), ("doctor",), ("pretrain",), ("benchmark",), ("compare",), ("bank",), ("ship",),
    ("estimators",), ("budget",), ("decision",), ("receipts",), ("evaluate",), ("run",), ("module",),
    *((part,) for part in PARTS),
    ("data",), ("train",), ("pretrained",), ("targets",), ("core",), ("machine",), ("nn",), ("config",), ("io",),
    ("documents", "errors", "registry", "units"),
)  # fmt: skip
LEVEL = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
METHOD_CARD = ("How to use", "Suggested hyper-parameters", "Cost and quality", "Technical details", "Attribution")


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def top(path: Path) -> str:
    """`run` of `run/store.py`, `errors` of `errors.py`."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below, what stands under `if TYPE_CHECKING:` left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from runtime_nodes(child)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """`run.store` for each module of Graftwork that is imported, `__init__` for the package itself."""
    for node in runtime_nodes(tree_of(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, inside = name.partition(".")
            if package == "graftwork" and inside != "__version__":
                yield inside if inside.partition(".")[0] in LEVEL else "__init__"


def definitions(node: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Public functions and classes and the public methods of the latter; nothing that is nested in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            yield f"{inside}{child.name}", child  # type: ignore[misc]
            if isinstance(child, ast.ClassDef):
                yield from definitions(child, f"{child.name}.")


def test_the_walk_sees_the_code() -> None:
    assert len(FILES) > 10
    assert "io.files.read_toml" in set(imports(SOURCE / "core" / "task.py"))
    assert "Task.resolved" in {name for name, _ in definitions(tree_of(SOURCE / "core" / "task.py"))}
    assert LEVEL["cli"] > LEVEL["run"] > LEVEL["methods"] > LEVEL["train"] > LEVEL["core"] > LEVEL["errors"] == 0


def test_imports_point_downward() -> None:
    assert not {top(path) for path in FILES} - LEVEL.keys(), "a folder or module has no layer"
    assert not [
        f"{name_of(path)} imports {module}" for path in FILES for module in imports(path) if not downward(path, module)
    ]


def test_no_module_imports_itself_by_others() -> None:
    """Imports inside functions count too. `prepare` raises `CycleError`, which names the modules."""
    names = {name_of(path).removesuffix(".py").replace("/", "."): path for path in FILES}
    graph = {name: {own(module, names) for module in imports(path)} - {name} for name, path in names.items()}
    graphlib.TopologicalSorter(graph).prepare()
    assert {"io.files", "core.arguments"} <= graph["core.task"]


def own(module: str, names: Mapping[str, Path]) -> str:
    """`run.store` of `run.store.RunStore`."""
    return module if module in names else module.rpartition(".")[0]


def downward(path: Path, module: str) -> bool:
    here, (there, _, rest) = top(path), module.partition(".")
    lower = LEVEL[there] < LEVEL[here] or here == "__main__"
    ground = LEVEL[there] == LEVEL[here] == 0
    family = there == here and (here not in PARTS or path.stem == rest.partition(".")[0])
    return lower or ground or family


def test_files_and_functions_are_short() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in FILES} | {
        f"{name_of(path)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    limits = {name: MOST_LINES_OF_A_FUNCTION if ": " in name else MOST_LINES_OF_A_FILE for name in lengths}
    assert {name: length for name, length in lengths.items() if length > limits[name]} == {}


def test_public_things_have_docstrings() -> None:
    public = [(name_of(path), node) for path in FILES for node in [("", tree_of(path)), *definitions(tree_of(path))]]
    assert [f"{path}: {name or 'the module'}" for path, (name, node) in public if not ast.get_docstring(node)] == []


def twice(named: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that stand in several places, with the places."""
    places: dict[str, list[str]] = {}
    for name, place in named:
        places.setdefault(name, []).append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_a_name_of_a_file_stands_once() -> None:
    registered = {
        *PARTS,
        "pretrain/objectives",
        "pretrain/tokenizers",
        "ship/compressions",
        "ship/exporters",
        "doctor/checks",
    }
    commands = {"cli"}  # or the command's
    exempt = {SOURCE / folder for folder in registered | commands}
    found = [path for path in FILES if path.stem != "__init__" and path.parent not in exempt]
    assert len(found) > 300
    assert twice((path.stem, name_of(path)) for path in found) == {}


def test_a_name_of_a_public_class_stands_once() -> None:
    classes = [
        (node.name, name_of(path))
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(classes) > 300
    assert twice(iter(classes)) == {}


def test_file_names_say_something() -> None:
    assert not [name_of(path) for path in FILES if path.stem.strip("_") in EMPTY_NAMES]


def test_every_registry_is_told_to_those_who_add_a_part() -> None:
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    for part in (one for one in vars(registry).values() if isinstance(one, registry.Registry)):
        group = part.package.removeprefix("graftwork")
        assert f"| `{group[1:].replace('.', '/')}/NAME.py` |" in text and f"`{group}`" in text.replace("graftwork", "")


@pytest.mark.parametrize("folder", [*PARTS, "objectives", "tokenizers", "compressions", "exporters"])
def test_every_part_has_a_card_and_every_card_a_part(folder: str) -> None:
    names = set(getattr(registry, folder).names())
    cards = {path.stem for path in (CHECKOUT / "docs" / "cards" / folder).glob("*.md")}
    assert names, f"{folder} is empty"
    assert names == cards


@pytest.mark.parametrize("name", registry.methods.names())
def test_method_cards_have_their_headings_and_true_defaults(name: str) -> None:
    text = (CHECKOUT / "docs" / "cards" / "methods" / f"{name}.md").read_text()
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == list(METHOD_CARD)
    defaults = {item.name: str(item.default) for item in dataclasses.fields(cast(Any, registry.methods.get(name)))}
    assert dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text, flags=re.MULTILINE)) == defaults


@pytest.mark.parametrize(
    ("folder", "name"),
    [(folder, name) for folder in ("objectives", "compressions") for name in getattr(registry, folder).names()],
)
def test_cards_have_true_defaults(folder: str, name: str) -> None:
    text = (CHECKOUT / "docs" / "cards" / folder / f"{name}.md").read_text()
    part = getattr(registry, folder).get(name)
    defaults = {item.name: str(item.default) for item in dataclasses.fields(cast(Any, part))}
    assert dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text, flags=re.MULTILINE)) == defaults


def in_documents(pattern: str) -> Iterator[tuple[Path, str]]:
    """Document and what matches, for every match."""
    for path in DOCUMENTS:
        for found in re.findall(pattern, path.read_text(), flags=re.MULTILINE | re.DOTALL):
            yield path, found


def test_documents_name_real_commands() -> None:
    named = {(path.name, word) for path, word in in_documents(r"(?:^|`|\$ |bin/) *graft ([a-z]+)")}
    assert named and [(path, word) for path, word in named if word not in command_summaries()] == []


def test_documents_link_to_real_files() -> None:
    links = list(in_documents(r"\]\((?!https?:|#|mailto:)([^)#\s]+)"))
    assert links and [(path.name, link) for path, link in links if not (path.parent / link).exists()] == []


def test_python_in_documents_compiles_and_names_real_things() -> None:
    blocks = list(in_documents(r"^```python\n(.*?)^```"))
    assert blocks
    for path, block in blocks:
        ast.parse(block, filename=str(path))
        assert set(re.findall(r"\bgw\.(\w+)", block)) <= set(graftwork.__all__), path


def test_every_key_of_a_task_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text("no_key = 1")
    with pytest.raises(UnknownName) as refused:
        read_task_file(tmp_path / "task.toml")
    page = (CHECKOUT / "docs" / "reference" / "data-files.md").read_text().partition("## Task files")[2]
    told = [key for cell in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE) for key in re.findall(r"`(\w+)`", cell)]
    known = refused.value.expected.removeprefix("one of ").split(", ")
    on_cards = {key for key in known if key not in told and is_told_on_cards(key)}  # keys of single kinds
    assert sorted([*told, *on_cards]) == sorted(known)
    flags = {*re.findall(r"`(--[a-z-]+)`", page), *(f"--{key.replace('_', '-')}" for key in on_cards)}
    assert flags == {flag for option in task_flags(lambda: None).__click_params__ for flag in option.opts}


def is_told_on_cards(key: str) -> bool:
    """Whether this is a setting of kinds whose cards all tell of it."""
    cards = CHECKOUT / "docs" / "cards" / "kinds"
    setting = kind_settings().get(key)
    return setting is not None and all(f"`{key}`" in (cards / f"{kind}.md").read_text() for kind in setting.users)


def test_the_glossary_has_each_word_once() -> None:
    rows = re.findall(r"^\| (\*\*.+?) \|", (CHECKOUT / "docs" / "glossary.md").read_text(), flags=re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]
    assert words and sorted(words) == sorted(set(words))


def test_readme_is_there() -> None:
    assert (CHECKOUT / "README.md") in DOCUMENTS
