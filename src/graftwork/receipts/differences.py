"""Differences between two receipts: each has a name, and the recorded and the found value in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graftwork.core.task import SPLITS
from graftwork.machine.environment import DECIDING, deciding_variables
from graftwork.machine.memory import IN_PARTS
from graftwork.run.recorded_code import other_versions
from graftwork.run.recorded_data import added_up
from graftwork.run.recorded_numerics import OF_TORCH, numerics_of

INPUT, SURROUNDINGS, RECORD, OUTCOME = "input", "surroundings", "record", "outcome"
WEIGHTS = (".safetensors", ".bin", ".hdf5", ".h5")
TOKENIZER = (
    "tokenizer", "vocab", "merges", "spiece", "spm", "sentencepiece", "special_tokens", "added_tokens", "words.txt",
)  # fmt: skip
NUMERICS = {  # field of `numerics` -> name in reports
    "processor": "processor",
    "cpu_capability": "processor's vector units",
    "accelerator": "accelerator",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "mkldnn": "oneDNN",
    "built_with": "libraries of torch",
    "deterministic": "deterministic algorithms",
    "matmul_precision": "precision of products",
    "attention": "attention kernel",
    "arithmetic": "arithmetic of the engine",
}
DATA_FILE = "data file of"  # followed by the split
NOT_COMPARED = ("search", "selection")  # sections of the method that do not affect the run


@dataclass(frozen=True)
class Difference:
    """One value that differs from the recorded one."""

    about: str  # "labels", "row order", "tokenizer", "threads", "predictions", …
    group: str  # "input", "surroundings" of the run, its "record" on disk, or its "outcome"
    recorded: str
    found: str

    def line(self) -> str:
        """Format for people."""
        return f"{self.about}: recorded {self.recorded}, found {self.found}"


def data_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Compare data: removed or added rows, texts, labels, the split, the order of rows, or only the file's bytes."""
    found = [] if old["digest"] == new["digest"] else [_rows(old["splits"], new["splits"])]
    if old["labels"] != new["labels"]:
        found.append(Difference("label map", INPUT, _labels(old["labels"]), _labels(new["labels"])))
    for split, file in old["files"].items():
        other = new["files"].get(split)
        if other is not None and file["sha256"] != other["sha256"]:
            group = INPUT if found else SURROUNDINGS  # the same rows in other bytes, such as other line endings
            found.append(Difference(f"{DATA_FILE} {split}", group, _file(file), _file(other)))
    return found


def _rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    rows = [sum(split["rows"] for split in splits.values()) for splits in (old, new)]
    if rows[0] != rows[1]:
        return Difference("rows", INPUT, f"{rows[0]:,} rows", f"{rows[1]:,} rows")
    if added_up(old, "inputs_in_any_order") != added_up(new, "inputs_in_any_order"):
        return _hashes("texts", old, new, "inputs_sha256")
    if added_up(old, "rows_in_any_order") != added_up(new, "rows_in_any_order"):
        return _hashes("labels", old, new, "targets_sha256")
    if any(old[name]["rows_in_any_order"] != new[name]["rows_in_any_order"] for name in SPLITS):
        return Difference("split", INPUT, _parts(old), _parts(new))
    same = all(old[split]["inputs_sha256"] == new[split]["inputs_sha256"] for split in SPLITS)
    return _hashes("row order", old, new, "ids_sha256" if same else "inputs_sha256")


def _parts(splits: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{name} {splits[name]['rows']:,}" for name in SPLITS)
    return f"{sizes} (rows of test {splits['test']['rows_in_any_order'][:12]}…)"


def _hashes(about: str, old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Difference:
    """Return a difference with the hashes of the first split that differs."""
    split = next((split for split in SPLITS if old[split][name] != new[split][name]), "train")
    return Difference(about, INPUT, *(f"{split} {short(splits[split][name])}" for splits in (old, new)))


def model_differences(
    old: Mapping[str, Any] | None, files: Mapping[str, str], revision: str | None
) -> list[Difference]:
    """Compare backbones: `files` is name -> sha256 of the current files, `revision` that of the open backbone, if any.

    Weights, tokeniser and other files are distinguished.
    """
    if old is None:
        return []
    found = [
        Difference(
            name_of_file(name), INPUT, f"{name} {short(sha)}", short(files[name]) if name in files else "no file"
        )
        for name, sha in old["files"].items()
        if files.get(name) != sha
    ]
    found += [
        Difference(name_of_file(name), INPUT, "no file", f"{name} {short(sha)}")
        for name, sha in files.items()
        if name not in old["files"]
    ]
    if not found and revision is not None and revision != old["revision"]:
        found.append(Difference("backbone", INPUT, short(old["revision"]), short(revision)))
    return found


def name_of_file(name: str) -> str:
    """Return the type of a backbone's file, by its name."""
    last = name.rpartition("/")[2]
    if last.endswith(WEIGHTS):
        return "backbone weights"
    return "tokenizer" if last.startswith(TOKENIZER) else "backbone file"


def method_differences(old: Mapping[str, Any], new: Mapping[str, Any], group: str = INPUT) -> list[Difference]:
    """Compare method, recipe and question by field, such as `epochs` or `question.kind`, and the method's version."""
    return [
        Difference(_named(path), group, told, found)
        for path, told, found in leaves(old, new)
        if path.partition(".")[0] not in NOT_COMPARED
    ]


def _named(path: str) -> str:
    section, _, rest = path.partition(".")
    if path == "config.version":
        return "method version"
    if path.startswith("question.labels"):
        return "label map"
    return {"config": rest or path, "recipe": rest or path}.get(section, path)


def surroundings_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Compare code, libraries and arithmetic, which may change the last bits of a result."""
    found = []
    code, here = old["code"], new["code"]
    if code["source_sha256"] != here["source_sha256"]:
        found.append(Difference("code", SURROUNDINGS, _code(code), _code(here)))
    if code["python"] != here["python"]:
        found.append(Difference("python", SURROUNDINGS, code["python"], here["python"]))
    for name, (told, installed) in other_versions(code["distributions"]).items():
        found.append(Difference("library version", SURROUNDINGS, f"{name} {told}", installed or "not installed"))
    numbers, these = numerics_of(old), numerics_of(new)
    for key, about in NUMERICS.items():
        untold = key in OF_TORCH and None in (numbers[key], these[key])  # not recorded by a process without torch
        if numbers[key] != these[key] and not untold:
            found.append(Difference(about, SURROUNDINGS, _plain(numbers[key]), _plain(these[key])))
    for told, found_now in _kernels(numbers["blas"], these["blas"]):
        found.append(Difference("BLAS", SURROUNDINGS, told, found_now))
    deciding = [deciding_variables(numerics["variables"], numerics) for numerics in (numbers, these)]
    for name in DECIDING:
        values = [variables.get(name) for variables in deciding]
        if values[0] != values[1]:
            shown = [f"{name}={value}" if value is not None else f"no {name}" for value in values]
            found.append(Difference("environment variable", SURROUNDINGS, *shown))
    return found + _short_of_memory(numbers, these)


def _short_of_memory(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the splits of batches, due to low memory, that only the second execution made: they change rounding."""
    return [
        Difference("memory", SURROUNDINGS, _plain(old.get(name, "whole batches")), f"{name} {_plain(new[name])}")
        for name in (*IN_PARTS, "cuts")
        if name in new and old.get(name) != new[name]
    ]


def _kernels(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the libraries whose chosen kernels differ. Libraries loaded in only one process are ignored."""
    for item in old:
        here = {other["kernels"] for other in new if other["name"] == item["name"]}
        if here and item["kernels"] not in here:
            yield f"{item['name']} {item['kernels']}", f"{item['name']} {', '.join(sorted(map(str, here)))}"


def outcome_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Compare the outcomes of two executions; empty if they are equal to the last bit."""
    found = []
    if (old["status"], old["failure"]) != (new["status"], new["failure"]):
        found.append(Difference("failure", OUTCOME, _ended(old), _ended(new)))
    if old["log"]["first_losses"] != new["log"]["first_losses"] or old["log"]["steps"] != new["log"]["steps"]:
        found.append(Difference("losses", OUTCOME, _losses(old["log"]), _losses(new["log"])))
    for name in ("predictions", "weights"):
        shas = [(one[name] or {}).get("sha256") for one in (old, new)]
        if shas[0] != shas[1]:
            found.append(Difference(name, OUTCOME, short(shas[0]), short(shas[1])))
    for split in ("validation", "scores"):
        for path, told, here in leaves(old[split], new[split]):
            found.append(
                Difference("scores" if split == "scores" else "validation scores", OUTCOME, f"{path} {told}", here)
            )
    return found


def may_round(old: Mapping[str, Any], found: Sequence[Difference]) -> bool:
    """Return whether different bits are legitimate: the surroundings differ, a GPU adds in varying order, or low memory
    split a frozen pass or a prediction. Data files with the same rows in other bytes don't count."""
    around = [one for one in found if one.group == SURROUNDINGS and not one.about.startswith(DATA_FILE)]
    numerics = numerics_of(old)
    return bool(around) or numerics["device"] != "cpu" or any(name in numerics for name in IN_PARTS)


def failed_alike(old: Mapping[str, Any], new: Mapping[str, Any] | None) -> bool:
    """Return whether two executions failed with the same error class; messages may differ in rounded numbers."""
    outcomes = [one["outcome"] for one in (old, new) if one is not None]
    ended = {(one["status"], one["failure"] and one["failure"]["class"]) for one in outcomes}
    return len(ended) == 1 and all(one["failure"] for one in outcomes)


def leaves(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, old and new value of every difference between two JSON values; a list is one value."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            inside = f"{path}.{key}" if path else str(key)
            if key not in old or key not in new:
                yield inside, _plain(old.get(key, "nothing")), _plain(new.get(key, "nothing"))
            else:
                yield from leaves(old[key], new[key], inside)
    elif old != new:
        yield path, _plain(old), _plain(new)


def short(sha: str | None) -> str:
    """Format the first 12 digits of a hash."""
    return f"sha256 {sha[:12]}…" if sha else "none"


def _plain(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _labels(labels: Mapping[str, Any]) -> str:
    return f"{labels['count']} labels, {short(labels['sha256'])}"


def _file(file: Mapping[str, Any]) -> str:
    return f"{file['bytes']:,} bytes, {short(file['sha256'])}"


def _code(code: Mapping[str, Any]) -> str:
    commit = f", commit {code['commit'][:12]}{' and changes' if code['dirty'] else ''}" if code["commit"] else ""
    return f"{code['graftwork']}, source {code['source_sha256'][:12]}…{commit}"


def _ended(outcome: Mapping[str, Any]) -> str:
    failure = outcome["failure"]
    return f"{outcome['status']} ({failure['class']}: {failure['message']})" if failure else str(outcome["status"])


def _losses(log: Mapping[str, Any]) -> str:
    losses = log["first_losses"]
    return f"{log['steps']} steps, losses {', '.join(f'{loss!r}' for loss in losses[:2])}{', …' if losses else ''}"
