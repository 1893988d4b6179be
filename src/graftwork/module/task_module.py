"""A task module: the output of a run, a small folder that with its backbone reproduces the run's predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from graftwork.core.arguments import told_arguments
from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.configured_methods import method_from_config
from graftwork.core.example import Example
from graftwork.core.kind import OwnOutputs, outputs_from
from graftwork.core.media import MEDIA, Media
from graftwork.core.method import THRESHOLDS_FACT, CountsCut, Fitted, Logits, Setting
from graftwork.core.ragged import flat, from_lists
from graftwork.core.task import Task
from graftwork.core.writing import Instruction, reading_part, with_instruction
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import file_digest, read_json, write_json, write_tensors, write_text
from graftwork.machine.environment import resolve_device
from graftwork.module.abstaining import Abstaining
from graftwork.module.calibration import temperature_of
from graftwork.module.exported_folder import (
    EXPORTED,
    cause_of,
    fitted_of_export,
    is_exported,
    read_export,
    require_answers,
    with_cause,
)
from graftwork.module.inputs import Text, example_of_given, require_list
from graftwork.module.module_display import module_html, module_text, readme_of
from graftwork.module.module_files import (
    DELTA,
    media_file,
    named_backbone,
    read_delta,
    read_description,
    read_self_test,
    require_fitting,
)
from graftwork.module.module_place import CARRIED, OWN_BACKBONE, module_folder, of_another_process
from graftwork.module.predict_many import predict_many
from graftwork.module.thresholds import reading_back, with_thresholds
from graftwork.pretrained.download_policy import kept_only
from graftwork.pretrained.media_files import identify, small_copy
from graftwork.pretrained.open_backbone import lasting_card, open_backbone
from graftwork.registry import kinds

FORMAT = 1
SELF_TEST_EXAMPLES = 8
SELF_TEST_FILES = 4  # images or sounds, stored in the module as small copies
READ_BACK = "read_back"  # in selftest.json: the log-probabilities of the generated texts, tokenised anew
TOLERANCE = {"fp32": 1e-3, "bf16": 0.1, "int8": 0.1}  # of a logit, times the largest one if that is above 1

# Frozen backbones open in this process, shared by modules; keyed by content, so never stale.
_OPEN: WeakValueDictionary[tuple[str, str, str, str], Backbone] = WeakValueDictionary()


@dataclass(repr=False)
class TaskModule:
    """A loaded and self-tested module. `description` is the content of `module.json`."""

    folder: Path
    task: Task
    fitted: Fitted
    description: Mapping[str, Any]
    backbone: Backbone | None
    difference: float = 0.0  # largest logit difference in the self-test on loading; 0.0: equal bits
    tested: NDArray[Any] | None = (
        None  # (N, C) or (W, C): logits of the self-test; outputs of the kind's own, or (N,) read back
    )

    @property
    def read_by(self) -> dict[str, Any]:
        """The columns and settings by which its training file was read; empty if they are not recorded."""
        return dict((self.description.get("data") or {}).get("read_by", {}))

    def __repr__(self) -> str:
        return module_text(self.folder, self.description)

    def _repr_html_(self) -> str:
        return module_html(self.folder, self.description)

    @classmethod
    @told_arguments
    def load(cls, folder: str | Path, *, device: str = "auto", backbone: Backbone | None = None) -> TaskModule:
        """Load a module folder, or a run's, to predict on `device` ("auto", "cpu" or "cuda"), wherever it was trained.

        `backbone` is an open backbone in the module's precision, or an encoder-decoder that has it as its encoder. By
        default it is the one that other modules of this process use, or it is opened by its name.

        Raises `IncompatibleModule` for another backbone, a changed file, or a self-test that differs; `ConfigError` for
        a device that is not available.
        """
        exported = is_exported(Path(folder))
        device = _of_an_export(device, folder) if exported else resolve_device(device)
        folder = Path(folder) if exported else module_folder(Path(folder))
        description = read_export(folder) if exported else read_description(folder)
        try:
            restore = cls._of_export if exported else cls._restored
            module = restore(folder, description, device, backbone)
            module._require_own_test(exported)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
            raise IncompatibleModule(
                f"{'graftwork' if exported else 'module'}.json or selftest.json is damaged",
                where=str(folder),
                got=f"{type(error).__name__}: {error}",
                do=f"restore it from a copy, or {'export' if exported else 'train'} it again",
            ) from error
        return module

    @classmethod
    def _restored(
        cls, folder: Path, description: Mapping[str, Any], device: str, backbone: Backbone | None
    ) -> TaskModule:
        """Load the module without its self-test."""
        if description.get("format") != FORMAT:
            raise IncompatibleModule(
                "unknown format", where=str(folder), got=repr(description.get("format")), expected=f"format {FORMAT}"
            )
        delta, question = read_delta(folder, description["delta_sha256"]), description["task"]
        task = Task.from_question(question["name"], question)
        if description["backbone"] is None:
            backbone = None
        elif backbone is None:
            backbone = known_backbone(folder, description, device)
        else:
            backbone = _backbone_of(backbone, folder, description)
        backbone = backbone and with_instruction(backbone, Instruction.of(task))
        setting = Setting(task, kinds.get(task.kind), backbone)
        method = method_from_config(description["method"])
        require_fitting(method, delta, setting, folder)
        facts = dict(description["facts"])
        thresholds = facts.pop(THRESHOLDS_FACT, None)  # added once, by the outermost wrapper, as in fitting
        temperature_of(description)  # refused here, rather than at the first answer
        fitted = with_thresholds(method.restore(setting, delta, facts), thresholds)
        return cls(folder, task, fitted, description, backbone)

    @classmethod
    def _of_export(
        cls, folder: Path, description: Mapping[str, Any], device: str, backbone: Backbone | None
    ) -> TaskModule:
        """Open an exported folder without its self-test. It runs on the CPU, and has no backbone to share."""
        question = description["task"]
        task = Task.from_question(question["name"], question)
        return cls(folder, task, fitted_of_export(folder, description), description, None)

    def require_tested(self, stored: Mapping[str, Any], found: Logits | None = None) -> None:
        """Raise `IncompatibleModule` unless logits (or `found`, if computed) and predictions match the self-test."""
        self.difference = self._self_test(stored, self.folder, found)

    def _require_own_test(self, exported: bool) -> None:
        stored = read_self_test(self.folder)
        try:
            self.require_tested(stored)
        except IncompatibleModule as error:
            if not exported:
                raise
            cause = cause_of(self.folder, self.description, stored, stored_examples(stored, self.folder))
            raise with_cause(error, cause) from None

    def in_fp32(self) -> TaskModule:
        """Return this module on the CPU in fp32, whatever it was trained in; its self-test is not repeated."""
        if self.description["backbone"] is None:
            return self
        question = self.description["task"] | {"name": self.task.name}  # that of a bank, where it has another there
        return self._restored(self.folder, {**self.description, "precision": "fp32", "task": question}, "cpu", None)

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens of a sequence; None without a backbone."""
        card = self.description["backbone"]
        return None if card is None else int(card["max_length"])

    @property
    def roles(self) -> tuple[str, ...]:
        """Its inputs: text; text_a and text_b; words; question and words; text and choices; image; sound."""
        return tuple(self.description["roles"])

    def predict(
        self, texts: Sequence[Text], *, abstain_below: float | None = None, target_precision: float | None = None
    ) -> list[dict[str, Any]]:
        """Return an answer per text (or pair): `{"label", "probabilities"}`, `{"value"}`, … from the kind's `decode`.

        A module for words takes a text, which is split into words, or a list of words; one for questions takes pairs of
        a question and a passage, or `{"question": …, "context": …}`; one for choices takes a text and a list of them,
        as a pair or by name; one for images or sounds takes the path of a file. Answers with a probability below
        `abstain_below`, or below the threshold at which a share `target_precision` of the remaining ones is right, are
        withheld: their prediction is None, and every answer has its `best_guess` and `probability`.

        Raises `ConfigError` for one text instead of a pair, the reverse, and a text that is not in a list, and as
        `Abstaining`; `DataError` for a file that can't be decoded, `StorageError` for a missing one.
        """
        return predict_many([self], texts, Abstaining(abstain_below, target_precision))[0]

    def cut(self, texts: Sequence[Text]) -> int:
        """Return how many of these texts are truncated by the backbone."""
        if isinstance(self.fitted, CountsCut):
            return self.fitted.cut(self.examples(texts))
        return self.backbone.encode(self.examples(texts)).cut if self.backbone else 0

    def examples(self, texts: Sequence[Text]) -> list[Example]:
        """Convert the texts to examples. Raises `ConfigError` as `predict` does."""
        require_list(texts)
        return [example_of_given(self.roles, number, text) for number, text in enumerate(texts, 1)]

    def self_test_examples(self) -> list[Example]:
        """Return the examples of the stored self-test."""
        return stored_examples(read_self_test(self.folder), self.folder)

    def _self_test(self, stored: Mapping[str, Any], folder: Path, found: Logits | None = None) -> float:
        examples = stored_examples(stored, folder)
        kind = kinds.get(self.task.kind)
        what = "the self-test gives other logits than when the module was made"
        writer = reading_back(self.fitted)
        if READ_BACK in stored and writer is not None:
            what = "the self-test finds other probabilities of texts than when the module was made"
            self.tested = probabilities = writer.read_back(examples, outputs_from(kind, stored["logits"]))
            expected, largest = np.array(stored[READ_BACK], dtype=np.float64), 1.0
            difference = float((np.abs(probabilities - expected) / np.maximum(1.0, np.abs(expected))).max())
        else:
            self.tested = outputs = flat(self.fitted.logits(examples) if found is None else found)
            if isinstance(kind, OwnOutputs):
                difference, largest = kind.difference(outputs, kind.from_lists(stored["logits"])), 1.0
            else:
                expected = flat(from_lists(stored["logits"]))
                difference, largest = self._logits_apart(outputs, expected, kind.outputs(self.task))
                require_answers(stored, self.task, examples, folder)
        allowed = TOLERANCE[self.description["precision"]] * max(1.0, largest)
        exported = self.backbone is None and self.description["backbone"] is not None
        again = "export the task again" if exported else "train the module again"
        if not difference <= allowed:
            raise IncompatibleModule(
                what,
                where=str(self.folder),
                got=f"a difference of {difference:.3g}",
                expected=f"at most {allowed:.3g}",
                do=f"{again}: the backbone or a library computes something else now",
            )
        return difference

    def _logits_apart(self, found: NDArray[Any], expected: NDArray[Any], outputs: int) -> tuple[float, float]:
        """Return the largest difference, and the largest expected logit. Raises `IncompatibleModule` by shape."""
        if found.shape != expected.shape or found.size != len(found) * outputs:
            raise IncompatibleModule(
                "the self-test gives logits of another shape than the task has answers",
                where=str(self.folder),
                got=str(found.shape),
                expected=f"{expected.shape}, {outputs} for each answer",
            )
        return float(np.abs(found - expected).max()), float(np.abs(expected).max())


def _of_an_export(device: str, folder: str | Path) -> str:
    if device not in ("auto", "cpu"):
        raise ConfigError("an exported folder runs on the CPU", where=str(folder), got=device, do="omit the device")
    return "cpu"


def stored_examples(stored: Mapping[str, Any], folder: Path) -> list[Example]:
    """Return the examples of a stored self-test, whose files are in `folder`."""
    sources = stored.get("sources", [None] * len(stored["inputs"]))
    return [
        Example(f"selftest/{i}", _inputs(inputs, folder), source=source)
        for i, (inputs, source) in enumerate(zip(stored["inputs"], sources, strict=True))
    ]


def _inputs(stored: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Restore inputs from JSON: tuples from lists, files from their names in the module's folder."""

    def restored(role: str, given: Any) -> Any:
        if role in MEDIA:
            return identify(media_file(folder, given), role)
        return tuple(given) if isinstance(given, list) else given

    return {role: restored(role, given) for role, given in stored.items()}


def known_backbone(folder: Path, description: Mapping[str, Any], device: str) -> Backbone:
    """Return the frozen backbone of a module or a bank, reusing one that is already open on `device`.

    `description` has its "backbone" (a card as JSON, which says whether it writes), "backbone_seed" and "precision";
    `folder` is used in messages.
    Raises `IncompatibleModule` if the name now refers to another backbone, and as `open_backbone`.
    """
    stored, precision = BackboneCard(**description["backbone"]), description["precision"]
    key = (stored.id, stored.revision, precision, device)
    backbone = _OPEN.get(key)
    if backbone is None:
        with kept_only():
            seed, name = description["backbone_seed"], named_backbone(folder, stored.id)
            with of_another_process(folder):
                backbone = open_backbone(name, precision=precision, device=device, seed=seed, writes=stored.writes)
        _require_revision(backbone, stored, folder)
        _OPEN[key] = backbone
    return backbone


def _backbone_of(backbone: Backbone, folder: Path, description: Mapping[str, Any]) -> Backbone:
    """Return a module's backbone, given open: itself, or its encoder if the module writes no texts."""
    stored = BackboneCard(**description["backbone"])
    found = backbone if stored.writes else reading_part(backbone)
    _require_revision(found, stored, folder)
    return found


def _require_revision(backbone: Backbone, stored: BackboneCard, folder: Path) -> None:
    if backbone.card.revision != stored.revision and backbone.card.id == named_backbone(folder, CARRIED):
        raise IncompatibleModule(
            "the backbone in this module's folder has changed since it was saved",
            where=str(folder / OWN_BACKBONE),
            got=f"revision {backbone.card.revision[:16]}",
            expected=f"revision {stored.revision[:16]}",
            do="restore it from a copy, or compress the module again",
        )
    if backbone.card.revision != stored.revision:
        raise IncompatibleModule(
            "this module belongs to another backbone",
            where=str(folder),
            got=f"{backbone.card.id}, revision {backbone.card.revision[:16]}",
            expected=f"{stored.id}, revision {stored.revision[:16]}",
            do="use the backbone that it was trained on, or train it again",
        )


def save_module(
    folder: Path, setting: Setting, fitted: Fitted, run: Mapping[str, Any], examples: Sequence[Example], logits: Logits
) -> int:
    """Write the module with a self-test over `examples` and their `logits`; return its size in bytes.

    `run` has the fields of module.json about the run: "run", "method", "recipe", "precision", "backbone_seed", …
    """
    write_tensors(folder / DELTA, fitted.delta())
    test = {"inputs": [stored_inputs(example) for example in examples], "logits": logits.tolist()}
    writer = reading_back(fitted)
    if writer is not None:
        test[READ_BACK] = writer.read_back(examples, logits).tolist()
    if any(example.source is not None for example in examples):
        test["sources"] = [example.source for example in examples]
    write_json(folder / "selftest.json", test)
    description = {
        "format": FORMAT,
        "task": {"name": setting.task.name} | setting.task.question(),
        "roles": list(examples[0].inputs),
        "backbone": lasting_card(setting.backbone.card) if setting.backbone else None,
        "facts": fitted.facts,
        "delta_sha256": file_digest(folder / DELTA),
    } | dict(run)
    write_json(folder / "module.json", description)
    write_text(folder / "README.md", readme_of(description))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def self_test_examples(folder: Path, examples: Sequence[Example]) -> list[Example]:
    """Return the first of `examples`; for files, write small copies into the module's folder."""
    if not set(examples[0].inputs) & set(MEDIA):
        return list(examples[:SELF_TEST_EXAMPLES])
    copies = []
    for number, example in enumerate(examples[:SELF_TEST_FILES]):
        inputs = {
            role: small_copy(given, role, folder / f"selftest_{number}") for role, given in example.inputs.items()
        }
        copies.append(Example(example.id, inputs))
    return copies


def stored_inputs(example: Example) -> dict[str, Any]:
    """Convert inputs to the form that `_inputs` reads."""
    return {
        role: Path(given.path).name if isinstance(given, Media) else given for role, given in example.inputs.items()
    }


def add_price_tag(folder: Path, costs: Mapping[str, Any]) -> None:
    """Add the price tag, which is known last, to `module.json`."""
    write_json(folder / "module.json", read_json(folder / "module.json") | {"costs": costs})


def add_to_description(folder: Path, found: Mapping[str, Any]) -> None:
    """Add or replace fields of `module.json` after the module was saved, and write README.md anew.

    In an exported folder only `graftwork.json` changes: its README.md has no scores.
    """
    if is_exported(folder):
        write_json(folder / EXPORTED, read_json(folder / EXPORTED) | dict(found))
        return
    description = read_json(folder / "module.json") | dict(found)
    write_json(folder / "module.json", description)
    write_text(folder / "README.md", readme_of(description))
