"""Export of a task module: written by an exporter, run by the other tool's library, compared, and put in place."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from graftwork.core.arguments import told_arguments
from graftwork.core.backbone import device_of
from graftwork.core.example import Example
from graftwork.core.kind import NamesMistakes, OwnOutputs
from graftwork.core.method import Logits
from graftwork.core.progress import Progress, silent
from graftwork.core.ragged import Ragged, flat
from graftwork.core.task import Dataset, Split
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.io.new_folder import new_folder
from graftwork.machine.thread_count import limited_to
from graftwork.module.exported_folder import ANSWERS, EXPORTED, FORMAT_OF_EXPORT, PARTS, is_exported, predictions_of
from graftwork.module.module_files import SELF_TEST
from graftwork.module.task_module import TaskModule, add_to_description, stored_inputs
from graftwork.module.trained_on import own_data, reopen_data, with_data_at
from graftwork.registry import exporters, kinds
from graftwork.ship.compressed_costs import compressed_costs
from graftwork.ship.exporter import Exporter, Opens, Quantizes
from graftwork.ship.rung_measure import BATCH, latency_ratio, pace, scores_on, stored_with_backbone
from graftwork.ship.unwrapped import unwrapped
from graftwork.units import percent, several

CHECKED = 256  # rows of the data that are compared, at most
ALLOWED = 1e-4  # largest difference of a logit in fp32, times the largest logit if that is above 1
TESTED = 2_000  # rows of test at most that an 8-bit export is scored on: with more it has no score of its own
MOST_CHANGED = 0.05  # share of predictions that 8-bit integers may change
ALIKE = 0.1  # regression values count as unchanged within this many standard deviations of the training targets


@told_arguments
def export(
    module: TaskModule | str | Path,
    folder: str | Path,
    *,
    to: str,
    int8: bool = False,
    data: str | Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Export a task module (or the folder of one, or of a run) to the new or empty `folder`, in the format `to`.

    The written files are run by the other tool's library on the self-test and up to 256 rows of the data that the
    module was made with, if that data is still there; the folder appears only if the logits are those of the module
    in fp32. With `int8`, weights become 8-bit integers, and the result states the share of predictions that change.
    If Graftwork can run the format (`onnx`), the folder is timed in alternation with the module, on up to 32 texts: the
    result has the ratio, `times_as_fast`, and the folder a price tag. In 8-bit integers its scores are measured again,
    on a test split of up to 2,000 rows. `data` is the new place of the training file, if it was moved. Returns what
    was compared, as JSON.

    Raises `ConfigError` for a module that doesn't fit the format, `IncompatibleModule` for differing logits,
    `MissingExtra` for a library that is not installed, `StorageError`.
    """
    began, target = time.monotonic(), Path(folder)
    to = to.replace("-", "_")  # sentence-transformers, as the library is called
    opened = with_data_at(_on_the_cpu(module), data)
    dataset = reopened(opened) if data is None else own_data(opened)
    told, texts = write_export(opened, target, to, int8, splits_to_compare(dataset), progress)
    if isinstance(exporters.get(to), Opens):
        if int8:
            progress(0.8, "scoring")
            told["scores"] = _scored(target, dataset)
        if opened.description.get("costs"):
            progress(0.9, "timing answers")
            told["times_as_fast"] = _priced(opened, target, texts, time.monotonic() - began)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return {"folder": str(folder), "to": to, "task": opened.task.name, "bytes": size} | told


def _on_the_cpu(module: TaskModule | str | Path) -> TaskModule:
    """Open a module on the CPU, where an exported folder is compared with it and timed beside it."""
    if not isinstance(module, TaskModule):
        return TaskModule.load(module, device="cpu")
    if module.backbone is None or device_of(module.backbone.module).type == "cpu":
        return module
    return replace(TaskModule.load(module.folder, device="cpu"), task=module.task)


def write_export(
    opened: TaskModule, folder: Path, to: str, int8: bool, splits: Sequence[Split], progress: Progress = silent
) -> tuple[dict[str, Any], list[Example]]:
    """Export as `export` does, but without timing and with an empty price tag: the module's own is for torch.

    Rows of `splits` are compared, those of the first one first. Returns what was compared, and examples of the task:
    these rows, or else the self-test.
    """
    exporter = exporters.get(to)
    _require_fit(unwrapped(opened), exporter, to, int8)
    with new_folder(folder) as made:
        exact = unwrapped(opened.in_fp32())
        progress(0.1, "writing")
        exporter.write(exact, made)
        progress(0.5, "comparing")
        examples, known = rows_to_compare(exact, splits)
        logits = exact.fitted.logits(examples)
        difference = require_logits(exact, exporter.logits(made, exact, examples), logits, to)
        told: dict[str, Any] = {"texts": len(examples), "largest_difference": difference, "known_rows": known}
        if int8:
            assert isinstance(exporter, Quantizes)
            progress(0.7, "converting to 8-bit integers")
            exporter.quantize(made)
            told["int8"] = changes(exact, examples, exporter.logits(made, exact, examples), logits, to)
            require_few(told["int8"], str(exact.folder))
        if isinstance(exporter, Opens):
            _seal(made, exact, examples[: len(examples) - known], exporter, told, int8)
    return told, examples[-known:] if known else exact.self_test_examples()


def _scored(folder: Path, data: Dataset | None) -> dict[str, float]:
    """Add the scores of an 8-bit folder on test; {} without the data, or if test has more than `TESTED` rows."""
    if data is None or len(data.test.examples) > TESTED:
        return {}
    scores = scores_on(data.task, data.test, TaskModule.load(folder).fitted.logits(data.test.examples))
    add_to_description(folder, {"scores": scores})
    return scores


def _priced(module: TaskModule, folder: Path, examples: Sequence[Example], seconds: float) -> float:
    """Add the price tag to a folder that took `seconds` to export; return its speed as a multiple of the module's."""
    with limited_to(1):  # onnxruntime keeps the number that it is opened with
        exported = TaskModule.load(folder)
    speed = pace(module, exported, examples[:BATCH]).ratio
    latency = latency_ratio(module, exported, examples[:BATCH])
    costs = compressed_costs(module.description["costs"], seconds, stored_with_backbone(exported), speed, latency)
    add_to_description(folder, {"costs": costs})
    return speed


def _require_fit(module: TaskModule, exporter: Exporter, to: str, int8: bool) -> None:
    where = str(module.folder)
    if is_exported(module.folder):
        raise ConfigError("this folder was exported already", where=where, do="export the module that it was made of")
    if why := exporter.unfit(module):
        raise ConfigError(f"the task can't be exported to {to}: {why}", where=where, do="graft ls exporters has others")
    if getattr(module.task.settings, "costs", None) is not None and not isinstance(exporter, Opens):
        others = ((name, exporters.get(name)) for name in exporters.names())
        able = [name for name, other in others if isinstance(other, Opens) and not other.unfit(module)]
        raise ConfigError(
            f"the task has costs, and what is exported to {to} gives the most probable label, not the cheapest one",
            where=where,
            do=f"{f'export it to {able[0]}, or ' if able else ''}train it without --costs",
        )
    if int8 and not isinstance(exporter, Quantizes):
        able = [name for name in exporters.names() if isinstance(exporters.get(name), Quantizes)]
        raise ConfigError(f"{to} is not written in 8-bit integers", do=f"omit --int8, or export to {', '.join(able)}")


def reopened(module: TaskModule) -> Dataset | None:
    """Return the data that the module was trained on, or None where it is not found unchanged."""
    return reopen_data(module.description.get("data"), module.task)[0]


def splits_to_compare(data: Dataset | None) -> list[Split]:
    """Return the splits whose rows are compared; train is last, because a module is surest of what it has learnt."""
    return [] if data is None else [data.validation, data.test, data.train]


def rows_to_compare(module: TaskModule, splits: Sequence[Split]) -> tuple[list[Example], int]:
    """Return the examples to compare, the last of them rows of the splits, and the number of these rows."""
    tested = module.self_test_examples()
    rows = [one for split in splits for one in split.examples[:CHECKED]]
    known = [replace(one, target=None) for one in rows[:CHECKED]]
    return [*tested, long_example(tested[0]), *known], len(known)


def long_example(example: Example) -> Example:
    """Return an example whose text is longer than any network reads, so that truncation is compared too."""
    role = next(role for role in ("text", "text_a", "words") if role in example.inputs)
    given = example.inputs[role]
    many = " ".join([given] * 200) if isinstance(given, str) else given * 200
    source = None if example.source is None else " ".join([example.source] * 200)
    return Example("selftest/long", dict(example.inputs) | {role: many}, source=source)


def require_logits(module: TaskModule, found: Logits, expected: Logits, to: str) -> float:
    """Return the largest difference of exported logits. Raises `IncompatibleModule` if it is more than rounding."""
    difference, largest = _apart(module, found, expected, to)
    if not difference <= ALLOWED * max(1.0, largest):
        raise IncompatibleModule(
            f"{to} gives other logits than the module",
            where=str(module.folder),
            got=f"a difference of {difference:.3g}",
            expected=f"at most {ALLOWED * max(1.0, largest):.3g}, as fp32 rounds",
            do="keep the module: its network is not one that this format holds",
        )
    return difference


def same_logits(module: TaskModule, found: Logits, expected: Logits, to: str) -> bool:
    """Return whether exported logits differ by no more than rounding in fp32."""
    difference, largest = _apart(module, found, expected, to)
    return difference <= ALLOWED * max(1.0, largest)


def _apart(module: TaskModule, found: Logits, expected: Logits, to: str) -> tuple[float, float]:
    """Return the largest difference of a logit and the largest expected logit. Raises `IncompatibleModule`."""
    kind = kinds.get(module.task.kind)
    if isinstance(kind, OwnOutputs):
        return kind.difference(found, expected), 1.0
    one, other = flat(found), flat(expected)
    if one.shape != other.shape:
        raise IncompatibleModule(
            f"{to} gives logits of another shape than the module",
            where=str(module.folder),
            got=str(one.shape),
            expected=str(other.shape),
        )
    return float(np.abs(one - other).max()), float(np.abs(other).max())


def changes(
    module: TaskModule, examples: Sequence[Example], found: Logits, expected: Logits, to: str
) -> dict[str, Any]:
    """Return the share of changed predictions, the number of all, and the largest difference of a logit, as JSON.

    A prediction is the tag of a word, the number of a text, or the whole answer to any other example. A number is
    changed if it moves by more than `beyond` standard deviations of the training targets; for others that is None.
    """
    difference, _ = _apart(module, found, expected, to)
    kind, task = kinds.get(module.task.kind), module.task
    one, other = (flat(kind.predictions(logits, task)) for logits in (found, expected))
    beyond = None
    if one.ndim == 1 and one.dtype.kind == "i":
        differing = one != other
    elif one.ndim == 1 and not isinstance(found, Ragged):
        differing, beyond = ~np.isclose(one, other, rtol=0, atol=ALIKE), ALIKE
    else:
        named = cast(NamesMistakes, kind)
        told, before = (map(named.brief, kind.decode(logits, task, examples)) for logits in (found, expected))
        differing = np.array([answer != known for answer, known in zip(told, before, strict=True)])
    return {
        "changed_predictions": float(differing.mean()),
        "predictions": len(differing),
        "largest_difference": difference,
        "beyond": beyond,
    }


def share_changed(changed: Mapping[str, Any]) -> str:
    """Format the result of `changes`: `1.1 % of 265 predictions`."""
    share, of = percent(changed["changed_predictions"]), several(changed["predictions"], "prediction")
    beyond = changed["beyond"]
    return f"{share} % of {of}" + (f" by more than {beyond:g} standard deviations of the targets" if beyond else "")


def are_few(changed: Mapping[str, Any]) -> bool:
    """Return whether 8-bit integers change no more predictions than is allowed."""
    return changed["changed_predictions"] <= MOST_CHANGED and bool(np.isfinite(changed["largest_difference"]))


def require_few(changed: Mapping[str, Any], where: str, *, task: str = "") -> None:
    """Raise `IncompatibleModule` where 8-bit integers change more predictions than is allowed."""
    if not are_few(changed):
        raise IncompatibleModule(
            f"8-bit integers change too many predictions{f' of task {task!r}' if task else ''}",
            where=where,
            got=f"{share_changed(changed)}, logits by up to {changed['largest_difference']:.3g}",
            expected=f"at most {MOST_CHANGED:.0%}",
            do="export this task without --int8" if task else "export without --int8",
        )


def _seal(
    folder: Path, module: TaskModule, examples: Sequence[Example], exporter: Any, told: dict[str, Any], int8: bool
) -> None:
    """Write the self-test of what was exported, and the hashes of all files into graftwork.json."""
    logits = exporter.logits(folder, module, examples) if int8 else module.fitted.logits(examples)
    described = read_json(folder / EXPORTED)
    parts = {PARTS: exporter.parts(folder, described, examples)}
    write_json(folder / SELF_TEST, self_test_of(module, examples, logits.tolist()) | parts)
    files = {path.name: file_digest(path) for path in sorted(folder.iterdir()) if path.name != EXPORTED}
    export_told = {"format": FORMAT_OF_EXPORT, **described["export"], "compared": told, "files": files}
    write_json(folder / EXPORTED, described | {"costs": {}, "export": export_told})


def self_test_of(module: TaskModule, examples: Sequence[Example], logits: list[Any]) -> dict[str, Any]:
    """Return a self-test as JSON: the examples, these logits and, for kinds with labels, the predictions."""
    test: dict[str, Any] = {"inputs": [stored_inputs(example) for example in examples], "logits": logits}
    if any(example.source is not None for example in examples):
        test["sources"] = [example.source for example in examples]
    if kinds.get(module.task.kind).has_labels:
        test[ANSWERS] = predictions_of(logits, module.task, examples)
    return test
