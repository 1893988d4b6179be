"""What the source may not do, read as a tree and not as text; and which modules may open what comes from elsewhere."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE = CHECKOUT / "src" / "graftwork"
FILES = sorted(SOURCE.rglob("*.py"))
BENCHMARKS = sorted((CHECKOUT / "benchmarks").rglob("*.py"))

RUNS_WHAT_IT_READS = {
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle", "yaml", "imp",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.hub.load", "torch.jit.load", "os.system", "os.popen",
    "runpy.run_path", "numpy.lib.format.read_array",
}  # fmt: skip
MUST_BE_FALSE = {"trust_remote_code", "shell", "allow_pickle"}
MUST_BE_TRUE = {"weights_only"}
DOORS: Mapping[str, set[str]] = {  # what opens foreign files -> the modules that may use it
    "safetensors.torch.load": {"io/files.py"},
    "safetensors.torch.load_file": {"io/files.py"},
    "safetensors.safe_open": {"io/safetensors_header.py"},
    "zipfile.ZipFile": {"io/torch_archive.py"},
    "torch.load": {"io/torch_archive.py"},  # with weights_only
    "h5py.File": {"pretrained/allennlp.py"},
    "tokenizers.Tokenizer.from_buffer": {"pretrained/tokenizer_file.py"},
    "tokenizers.Tokenizer.from_file": set(),
    "tokenizers.Tokenizer.from_pretrained": set(),
    "PIL.Image.open": {"pretrained/media_files.py"},
    "soundfile.SoundFile": {"pretrained/media_files.py"},
    "soundfile.read": set(),
    "pyarrow.parquet.ParquetFile": {"data/readers/parquet.py"},
    "huggingface_hub.snapshot_download": {"pretrained/model_folder.py"},
    "spacy.tokens.DocBin": {"data/readers/spacy_examples.py"},
    "datasets.load_dataset": {"data/readers/hub_datasets.py"},
    "datasets.load_from_disk": {"data/readers/saved_sets.py"},
}
FROM_PRETRAINED = {  # each is handed tensors, or a folder of checked files
    "pretrained/load_folder.py", "pretrained/tokenizer_folder.py", "pretrained/images.py", "pretrained/load_media.py",
    "pretrained/gguf_file.py",  # a folder with one file, whose header was checked
    "testing/tokenizer_contract.py", "ship/exporters/transformers.py",  # of what was saved a moment ago
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else path.relative_to(CHECKOUT).as_posix()


def known_as(tree: ast.AST) -> dict[str, str]:
    """Name in this file -> what it is: `np` is `numpy`, `load_file` is `safetensors.torch.load_file`."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.partition(".")[0]: (alias.asname and alias.name) or
                      alias.name.partition(".")[0] for alias in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def spelled(node: ast.expr, names: Mapping[str, str]) -> str:
    """`torch.load` of a call's function, whatever torch is called in this file; empty for what has no name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = spelled(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def unsafe(tree: ast.AST) -> Iterator[str]:
    """What in a file runs what it reads, or could."""
    names = known_as(tree)
    restricted = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _weights_only(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in RUNS_WHAT_IT_READS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in RUNS_WHAT_IT_READS:
            yield str(node.module)
        elif isinstance(node, ast.Name | ast.Attribute) and spelled(node, names) in CALLS:
            if id(node) not in restricted:
                yield spelled(node, names)
        elif isinstance(node, ast.Call):
            yield from _of_call(node, names)


def _weights_only(node: ast.Call) -> bool:
    """Whether it is called with `weights_only=True`, with which `torch.load` runs nothing."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}.get("weights_only")
    return isinstance(given, ast.Constant) and given.value is True


def _of_call(node: ast.Call, names: Mapping[str, str]) -> Iterator[str]:
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in MUST_BE_FALSE and value is not False:
            yield f"{keyword.arg} that is not False"
        if keyword.arg in MUST_BE_TRUE and value is not True:
            yield f"{keyword.arg} that is not True"
    if spelled(node.func, names) == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        reached = f"{spelled(node.args[0], names)}.{node.args[1].value}"
        if reached in CALLS:
            yield reached


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def opens(tree: ast.AST) -> Iterator[str]:
    """The doors that a file goes through."""
    names = known_as(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            used = spelled(node, names)
            if used in DOORS:
                yield used
            if used.endswith(".from_pretrained"):
                yield "from_pretrained"


def test_nothing_runs_what_it_reads() -> None:
    found = {name_of(path): list(unsafe(tree_of(path))) for path in (*FILES, *BENCHMARKS)}
    assert len(found) > 100 and {name: used for name, used in found.items() if used} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import joblib.memory", "import yaml",
        "import torch\ntorch.load(f)",
        "import torch as t\nt.load(f)", "from torch import load\nload(f)", "from torch import load as read\nread(f)",
        "eval(x)", "run = exec", "import torch\ngetattr(torch, 'load')(f)", "f(trust_remote_code=True)",
        "f(trust_remote_code=chosen)", "import subprocess\nsubprocess.run(c, shell=True)", "import os\nos.system(c)",
        "import numpy as np\nnp.load(f, allow_pickle=True)", "f(weights_only=False)", "__import__(name)",
    ],
)  # fmt: skip
def test_unsafe_code_would_be_found(code: str) -> None:
    assert list(unsafe(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "model.eval()",
        "import torch\ntorch.load(f, weights_only=True)",
        "re.compile(x)",
        "import re\nre.compile(x)",
        "f(trust_remote_code=False)",
        "'pickle'  # eval(",
    ],
)
def test_safe_code_is_not(code: str) -> None:
    assert list(unsafe(ast.parse(code))) == []


def test_foreign_files_come_in_by_few_doors_and_every_door_is_where_it_is_said_to_be() -> None:
    used = {(door, name_of(path)) for path in FILES for door in opens(tree_of(path))}
    listed = {(door, module) for door, modules in DOORS.items() for module in modules}
    assert used == listed | {("from_pretrained", module) for module in FROM_PRETRAINED}


@pytest.mark.parametrize(
    ("code", "door"),
    [
        ("from safetensors.torch import load_file as take\ntake(p)", "safetensors.torch.load_file"),
        ("from tokenizers import Tokenizer\nTokenizer.from_file(p)", "tokenizers.Tokenizer.from_file"),
        ("import h5py\nh5py.File(p)", "h5py.File"),
        ("from transformers import AutoModel\nAutoModel.from_pretrained(p)", "from_pretrained"),
    ],
)
def test_another_door_would_be_found(code: str, door: str) -> None:
    assert door in set(opens(ast.parse(code)))
