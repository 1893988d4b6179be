"""A task: one type of question on one data set. Pure data, read from `tasks/NAME.toml` or from flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.example import Example, text_of
from graftwork.core.part_settings import split_words
from graftwork.errors import ConfigError, UnknownName, clip
from graftwork.io.files import read_toml

if TYPE_CHECKING:
    from graftwork.core.ragged import Numbers

BUILTIN = Path(__file__).parent.parent / "data" / "builtin"
SPLITS = ("train", "validation", "test")
SPLIT_NAMES: Mapping[str, tuple[str, ...]] = {  # their names in files, folders and hub data sets
    "train": ("train", "training"),
    "validation": ("validation", "dev", "val", "valid"),
    "test": ("test",),
}
STRAYS = ("repair", "refuse")
COUNTS = ("0", "1")
THRESHOLDS = ("validation", "half")
LISTS = ("labels", "metrics", "choices")
OF_SOME_KINDS = ("labels", "positive", "thresholds", "stray_tags", "realign", "choices", "count_from")


@dataclass(frozen=True)
class Task:
    """Files, columns and kind of a task. The fields are named like the command line's flags."""

    name: str  # name of the board; not part of a run's identity
    data: Path  # the training file, or all data if there is no test file
    validation: Path | None = None
    test: Path | None = None
    kind: str = "classification"  # a name in `kinds`; never guessed from the values
    text: str | None = None  # column of the text, or of the words; None: found by name
    text_a: str | None = None
    text_b: str | None = None
    image: str | None = None  # column of the paths of images, relative to the file; None: found by name
    sound: str | None = None  # column of the paths of sounds
    choices: tuple[str, ...] = ()  # columns of the choices, or the one of their lists; empty: found by name
    count_from: str | None = None  # index of the first choice in labels, "0" or "1"; None: 0 if that is certain
    label: str | None = None  # column of the target; None: found by name
    labels: tuple[str, ...] = ()  # indexed by class; empty: those of the training split, sorted
    metrics: tuple[str, ...] = ()  # the first is the headline; empty: the kind's defaults
    stray_tags: str = "repair"  # tagging: I- tags that continue no span are read as B-; with "refuse" they are an error
    realign: bool = False  # span: an answer not found at its offset is taken from its nearest occurrence
    drop_leaks: bool = False  # remove rows of train that are exact or near duplicates of validation or test
    rejects: str | None = None  # file for unreadable rows; None: the first of them is an error
    thresholds: str | None = None  # multilabel: chosen on "validation" for F1 (None), or "half": a probability of 0.5
    positive: str | None = None  # positive class of `f1`; None: the rarer of two
    scale: tuple[float, float] = (0.0, 1.0)  # mean and sd of the training targets (regression)
    unanswerable: bool = False  # span: some training questions have no answer in their passage
    split_seed: int | None = None  # seed of splits without a file; None and 0 give the same

    def __post_init__(self) -> None:
        for key in LISTS:
            object.__setattr__(self, key, tuple(split_words(getattr(self, key))))
        for split in ("data", "validation", "test"):
            if isinstance(path := getattr(self, split), str):
                object.__setattr__(self, split, self.find(path))

    @classmethod
    def from_file(cls, path: str | Path, **flags: Any) -> Task:
        """Build a task from a data file, a folder of splits or classes, or a task file (TOML), which `flags` override.

        A list, such as `metrics`, may be one comma-separated string.

        Raises `ConfigError` for an unknown key or a key of the wrong type, `StorageError` for a missing file.
        """
        path = cls.find(path)
        flags = {key: value for key, value in flags.items() if value not in (None, ())}
        settings: dict[str, Any] = {"name": _stem(path), "data": path}
        if path.suffix == ".toml":
            settings = read_task_file(path)[0]
        known = [item.name for item in fields(cls) if item.name not in ("scale", "unanswerable")]
        for key in flags:
            if key not in known:
                raise UnknownName("task setting", key, known)
        settings |= flags
        for key in ("data", "validation", "test"):
            if settings.get(key) is not None:
                settings[key] = cls.find(settings[key])
        if settings.get("stray_tags", "repair") not in STRAYS:
            raise UnknownName("value of stray_tags", settings["stray_tags"], STRAYS)
        if settings.get("count_from") not in (None, *COUNTS):
            raise UnknownName("value of count_from", settings["count_from"], COUNTS)
        if settings.get("thresholds") not in (None, *THRESHOLDS):
            raise UnknownName("value of thresholds", settings["thresholds"], THRESHOLDS)
        return cls(**settings)

    @staticmethod
    def find(path: str | Path) -> Path:
        """Return the file for `path`; `builtin:NAME` is one of the package's data sets."""
        scheme, colon, name = str(path).partition(":")
        if not (colon and scheme == "builtin"):
            return Path(path)
        if name not in builtin_names():
            raise UnknownName("built-in data set", name, builtin_names())
        return BUILTIN / f"{name}.csv"

    @property
    def reads(self) -> str:
        """The type of its inputs: "text", "image" or "sound"; known once the columns are."""
        return "image" if self.image is not None else "sound" if self.sound is not None else "text"

    def question(self) -> dict[str, Any]:
        """Return what determines a result, as JSON: no paths, no name, no column names."""
        kept = ("kind", "labels", "metrics", "positive", "scale")
        asked = {key: value for key, value in asdict(self).items() if key in kept}
        asked |= {"unanswerable": True} if self.unanswerable else {}
        return asked | ({"thresholds": self.thresholds} if self.thresholds else {})

    def resolved(self, **changes: Any) -> Task:
        """Return a copy with values derived from the data (labels, scale, columns) filled in."""
        return replace(self, **changes)


def builtin_names() -> list[str]:
    """Return the names of the package's data sets."""
    return sorted(path.stem for path in BUILTIN.glob("*.csv"))


_PACKED = re.compile(r"\.gz$", re.IGNORECASE)


def _stem(path: Path) -> str:
    """Derive a name: `data/tickets.csv.gz` is `tickets`, the folder `v1.2` is `v1.2`, `hub:glue:cola` `hub-glue-cola`.

    Generic split names are dropped, or the boards of different data sets would overwrite each other:
    `mrpc/train.tsv` and `mrpc.train.tsv` are `mrpc`.
    """
    own = path.name if path.name not in ("", "..") else path.resolve().name
    name = own if path.is_dir() or str(path).startswith("hub:") else Path(_PACKED.sub("", own)).stem
    if name.lower() in SPLIT_NAMES["train"]:
        return path.absolute().parent.name or name
    before, _, last = name.rpartition(".")
    return (before if before and last.lower() in SPLIT_NAMES["train"] else name).replace(":", "-")


_TASK_KEYS: Mapping[str, type] = {
    "name": str, "data": str, "validation": str, "test": str, "kind": str, "text": str, "text_a": str,
    "text_b": str, "image": str, "sound": str, "label": str, "labels": list, "metrics": list, "positive": str,
    "stray_tags": str, "realign": bool, "choices": list, "count_from": str, "thresholds": str, "split_seed": int,
    "drop_leaks": bool, "rejects": str,
}  # fmt: skip
_COMPARE_KEYS: Mapping[str, type] = {
    "backbone": str, "methods": list, "seeds": int, "epochs": int, "batch_size": int,
    "worth": float, "exhaustive": bool, "augment": bool, "out": str, "cache": str, "cache_size": str, "jobs": int,
    "vary": list,
}  # fmt: skip

_TYPE_WORDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of strings",
}


def read_task_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a task file: the settings of the task and those of its comparison; paths are relative to the file.

    Raises `ConfigError` for an unknown key or a value of the wrong type.
    """
    content = read_toml(path)
    _check_keys(content, path)
    if "data" not in content:
        raise ConfigError(
            "the task file names no data",
            where=str(path),
            got=f"the settings {', '.join(content) or 'none'}",
            expected="the setting data",
            do='add a line like data = "train.tsv"',
        )
    for key in ("data", "validation", "test"):
        if key in content and not content[key].startswith(("builtin:", "hub:")):
            content[key] = path.parent / content[key]
    if "rejects" in content:
        content["rejects"] = str(path.parent / content["rejects"])
    comparison = {key: content.pop(key) for key in _COMPARE_KEYS if key in content}
    return {"name": path.stem} | content, comparison


def _check_keys(content: Mapping[str, Any], path: Path) -> None:
    known = {**_TASK_KEYS, **_COMPARE_KEYS}
    for key, value in content.items():
        if key not in known:
            raise UnknownName("setting", key, known, where=str(path))
        if type(value) is not known[key] and not (known[key] is float and type(value) is int):
            raise ConfigError(
                f"setting {key!r} has the wrong type",
                where=str(path),
                got=clip(repr(value)),
                expected=_TYPE_WORDS[known[key]],
                do="correct the line",
            )
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ConfigError(
                f"setting {key!r} must hold strings only",
                where=str(path),
                got=clip(repr(value)),
                expected='strings such as ["a", "b"]',
                do="quote each of them",
            )


@dataclass(frozen=True)
class Split:
    """The examples of one split and their encoded targets."""

    name: str  # "train" | "validation" | "test"
    examples: tuple[Example, ...]
    targets: Numbers  # (N,) int64 classes | (N, C) float32 0/1 | (N,) float32 | per word, as the kind encodes them


@dataclass(frozen=True)
class Dataset:
    """A task with its data, read, split and checked."""

    task: Task  # resolved: labels, metrics and columns filled in
    splits: Mapping[str, Split]
    digest: str  # sha256 of all examples' ids, inputs and targets, in order: the data's part of a run's identity
    report: Mapping[str, Any] = field(default_factory=dict)  # JSON: the data report

    @property
    def train(self) -> Split:
        """The examples for training."""
        return self.splits["train"]

    @property
    def validation(self) -> Split:
        """The examples for model selection."""
        return self.splits["validation"]

    @property
    def test(self) -> Split:
        """The examples that scores are reported on; used once per run."""
        return self.splits["test"]


def texts_of(dataset: Dataset) -> Iterator[str]:
    """Yield every text of every split; words and choices are joined by spaces."""
    for split in dataset.splits.values():
        for example in split.examples:
            yield from map(text_of, example.inputs.values())
