"""A task: one type of question on one data set. Pure data, read from `tasks/NAME.toml` or from flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.arguments import fitting, told_arguments
from graftwork.core.example import Example, text_of
from graftwork.core.in_memory import FOLDER, filled_columns, name_of, splits_of, with_names, write_once
from graftwork.core.kind_settings import kind_settings, no_use, parse_kind_settings, settings_of
from graftwork.core.part_settings import split_words
from graftwork.errors import ConfigError, UnknownName, clip
from graftwork.io.display import card, facts
from graftwork.io.files import read_toml
from graftwork.io.gzip_files import plain_name
from graftwork.registry import kinds, metrics
from graftwork.units import several

if TYPE_CHECKING:
    from graftwork.core.ragged import Numbers

BUILTIN = Path(__file__).parent.parent / "data" / "builtin"
SPLITS = ("train", "validation", "test")
SPLIT_NAMES: Mapping[str, tuple[str, ...]] = {  # their names in files, folders and hub data sets
    "train": ("train", "training"),
    "validation": ("validation", "dev", "val", "valid"),
    "test": ("test",),
}
LISTS = ("labels", "metrics")
FILES = ("data", "validation", "test")
OF_FORMAT_1: Mapping[str, Any] = {
    "choices": (), "count_from": None, "stray_tags": "repair", "realign": False, "thresholds": None, "positive": None,
    "scale": (0.0, 1.0), "unanswerable": False,
}  # fmt: skip
# above: settings of single kinds, with their defaults, that every record holds; below: those in every question too
IN_EVERY_QUESTION = ("positive", "scale")
RECORDED_FIRST = (
    "name", "data", "validation", "test", "kind", "text", "text_a", "text_b", "image", "sound", "choices", "count_from",
    "label", "labels", "metrics", "stray_tags", "realign", "drop_leaks", "rejects", "thresholds", "positive", "scale",
    "unanswerable", "split_seed",
)  # fmt: skip


_TYPED: Mapping[str, Any] = {  # settings whose type is checked
    **dict.fromkeys(("name", "kind"), str),
    **dict.fromkeys(("text", "text_a", "text_b", "image", "sound", "label"), str | None),
    **dict.fromkeys(LISTS, str | Sequence[str]),
    "drop_leaks": bool, "split_seed": int | None,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
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
    label: str | None = None  # column of the target, or one per label, comma-separated; None: found by name
    labels: tuple[str, ...] = ()  # indexed by class; empty: those of the training split, sorted
    metrics: tuple[str, ...] = ()  # the first is the headline; empty: the kind's defaults
    drop_leaks: bool = False  # remove rows of train that are exact or near duplicates of validation or test
    rejects: str | None = None  # file for unreadable rows; None: the first of them is an error
    split_seed: int | None = None  # seed of splits without a file; None and 0 give the same
    settings: Any = None  # an instance of its kind's `Kind.settings`; may be given as name -> value

    def __post_init__(self) -> None:
        label: Any = self.label
        if isinstance(label, list | tuple):
            object.__setattr__(self, "label", ",".join(map(str, label)))
        for key, hint in _TYPED.items():
            object.__setattr__(self, key, fitting(key, getattr(self, key), hint))
        for key in LISTS:
            object.__setattr__(self, key, tuple(split_words(getattr(self, key))))
        for split in FILES:
            if isinstance(path := getattr(self, split), str):
                object.__setattr__(self, split, self.find(path))
        if not isinstance(self.settings, kinds.get(self.kind).settings):
            object.__setattr__(self, "settings", parse_kind_settings(self.kind, self.settings or {}))
        if self.labels and not kinds.get(self.kind).has_labels:
            users = [name for name in kinds.names() if kinds.get(name).has_labels]
            raise no_use(self.kind, "labels", self.labels, users)

    def __repr__(self) -> str:
        return f"Task {self.name}: {self.kind} of {self.data}{self._told_labels(6)}"

    def _repr_html_(self) -> str:
        told = {"kind": self.kind} | {split: str(path) for split, path in self.files.items()}
        told |= {
            name: str(getattr(self, name) or "") for name in ("text", "text_a", "text_b", "image", "sound", "label")
        }
        told |= {"labels": self._told_labels(40).removeprefix(", "), "metrics": ", ".join(self.metrics)}
        unsaid = "" if self.label else "The columns are chosen when the file is read: see gw.data_report(task)."
        return card(f"Task {self.name}", (), facts(told), about=unsaid)

    def _told_labels(self, most: int) -> str:
        """Return `, 3 labels: bad, good, so so`, with at most `most` of them; "" if none are known."""
        if not self.labels:
            return ""
        more = ", …" if len(self.labels) > most else ""
        return f", {several(len(self.labels), 'label')}: {', '.join(self.labels[:most])}{more}"

    @classmethod
    @told_arguments
    def from_file(cls, path: str | Path, **flags: Any) -> Task:
        """Build a task from a data file, a folder of splits or classes, or a task file (TOML), which `flags` override.

        A list, such as `metrics`, may be one comma-separated string. The settings of the task's kind are flags too.

        Raises `ConfigError` for an unknown key, a key of the wrong type and a setting that only other kinds have,
        `StorageError` for a missing file.
        """
        path = cls.find(path)
        flags = {key: value for key, value in flags.items() if value not in (None, ())}
        settings: dict[str, Any] = {"name": _stem(path), "data": path}
        if path.suffix == ".toml":
            settings = read_task_file(path)[0]
        settings |= flags
        for key in FILES:
            if settings.get(key) is not None:
                settings[key] = cls.find(settings[key])
        if flags.keys() - {*cls._of_every_kind(), *settings_of(settings.get("kind", cls.kind))}:
            known = [*cls._of_every_kind(), *kind_settings()]
            for key in flags:
                if key not in known:
                    raise UnknownName("task setting", key, known)
        try:
            return cls.from_settings(settings)
        except ConfigError as error:
            error.where = error.where or (str(path) if path.suffix == ".toml" else "")
            raise

    @classmethod
    @told_arguments
    def from_data(cls, data: Any, *, folder: str | Path = FOLDER, **flags: Any) -> Task:
        """Build a task from data in memory, or from what `from_file` takes; a task is returned as it is.

        `data`, and in `flags` also `validation` and `test`, may be a data frame of pandas or polars, an Arrow table, a
        set of the library `datasets`, `(texts, labels)`, a list of dictionaries, or a dictionary of columns. A
        dictionary of splits, such as `{"train": …, "test": …}` or a `DatasetDict`, gives the task these splits. The
        data are written to files in `folder` that are named by their content: equal data, and a CSV with the same
        cells, make the same runs. The other `flags` are those of `from_file`.

        Raises as `from_file`, and `DataError` for a missing value in the text or the label.
        """
        splits = splits_of(data, SPLIT_NAMES)
        splits |= {name: flags.pop(name) for name in FILES if flags.get(name) is not None}
        flags = with_names(flags)
        per_word = kinds.get(fitting("kind", flags.get("kind") or cls.kind, str)).per_word
        needed = {} if flags.get("rejects") else filled_columns(flags, per_word)
        files = {
            name: found
            if isinstance(found, str | Path | Task)
            else write_once(found, folder, name if len(splits) > 1 else "data", needed, per_word)
            for name, found in splits.items()
        }
        train = files.pop("train")
        if isinstance(train, Task):
            return train.resolved(**flags, **files)
        if not isinstance(splits["train"], str | Path) and not flags.get("name"):
            flags["name"] = name_of(Path(train))
        return cls.from_file(train, **flags, **files)

    @classmethod
    def from_settings(cls, told: Mapping[str, Any]) -> Task:
        """Build a task from its settings and those of its kind in one mapping, as `as_dict` returns it."""
        own = {name: value for name, value in told.items() if name in cls._of_every_kind()}
        return cls(**own, settings={name: value for name, value in told.items() if name not in own})

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Task:
        """Build a task from `as_dict` in JSON; ignore names that neither a task nor its kind has."""
        of_kind = [item.name for item in fields(kinds.get(told["kind"]).settings)]
        known = {name: value for name, value in told.items() if name in (*cls._of_every_kind(), *of_kind)}
        return cls.from_settings(
            {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
        )

    @classmethod
    def from_question(cls, name: str, question: Mapping[str, Any]) -> Task:
        """Build a task without files from `question` in JSON. Raises `KeyError` without kind, labels or metrics."""
        told = {key: question[key] for key in ("kind", "labels", "metrics")}
        asked = [item.name for item in fields(kinds.get(told["kind"]).settings) if "in_question" in item.metadata]
        return cls.from_json(
            {"name": name, "data": Path(), **told, **{key: question[key] for key in asked if key in question}}
        )

    @classmethod
    def _of_every_kind(cls) -> list[str]:
        """Return the names of the settings that tasks of every kind have."""
        return [item.name for item in fields(cls) if item.name != "settings"]

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
        """The type of its inputs: "text", "image" or "sound"; correct once the columns are resolved."""
        return "image" if self.image is not None else "sound" if self.sound is not None else "text"

    def question(self) -> dict[str, Any]:
        """Return what determines a result, as JSON: no paths, no name, no column names.

        It holds `positive` and `scale`, and those settings of the kind that are not the default.
        """
        asked = {"kind": self.kind, "labels": self.labels, "metrics": self.metrics}
        asked |= {name: OF_FORMAT_1[name] for name in IN_EVERY_QUESTION}
        listed = [(item, getattr(self.settings, item.name)) for item in fields(self.settings)]
        own = {name: getattr(metrics.get(name), "source", "") for name in self.metrics if name in metrics.here_only()}
        written = {"own_metrics": own} if any(own.values()) else {}  # functions of a notebook, by their source
        return {**asked, **written} | {
            item.name: value for item, value in listed if "in_question" in item.metadata and value != item.default
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all settings by name: the task's, and at the same level its kind's."""
        of_kind = {item.name: getattr(self.settings, item.name) for item in fields(self.settings)}
        return {name: getattr(self, name) for name in self._of_every_kind()} | of_kind

    def as_record(self) -> dict[str, Any]:
        """Return `as_dict` as receipts record it: `RECORDED_FIRST` in this order, then all others that are not None."""
        told = {**OF_FORMAT_1, **self.as_dict()}
        later = {name: value for name, value in told.items() if value is not None and name not in RECORDED_FIRST}
        return {name: told[name] for name in RECORDED_FIRST} | later

    @property
    def files(self) -> dict[str, Path]:
        """Split -> the file or folder that is given for it, train first."""
        named = {"train": self.data, "validation": self.validation, "test": self.test}
        return {split: path for split, path in named.items() if path is not None}

    def resolved(self, **changes: Any) -> Task:
        """Return a copy with settings of its own or of its kind changed, such as those derived from the data."""
        own = {name: value for name, value in changes.items() if name in self._of_every_kind()}
        of_kind = {name: value for name, value in changes.items() if name not in own}
        return replace(self, **own, settings=replace(self.settings, **of_kind) if of_kind else self.settings)


def positive_of(task: Task) -> str | None:
    """Return the positive class, which f1 is computed for; None for a task without one."""
    return getattr(task.settings, "positive", None)


def builtin_names() -> list[str]:
    """Return the names of the package's data sets."""
    return sorted(path.stem for path in BUILTIN.glob("*.csv"))


def _stem(path: Path) -> str:
    """Derive a name: `data/tickets.csv.gz` is `tickets`, the folder `v1.2` is `v1.2`, `hub:glue:cola` `hub-glue-cola`.

    Generic split names are dropped, or the boards of different data sets would overwrite each other:
    `mrpc/train.tsv` and `mrpc.train.tsv` are `mrpc`.
    """
    own = path.name if path.name not in ("", "..") else path.resolve().name
    name = own if path.is_dir() or str(path).startswith("hub:") else Path(own[: len(plain_name(Path(own)))]).stem
    if name.lower() in SPLIT_NAMES["train"]:
        return path.absolute().parent.name or name
    before, _, last = name.rpartition(".")
    return (before if before and last.lower() in SPLIT_NAMES["train"] else name).replace(":", "-")


_TASK_KEYS: Mapping[str, type] = {
    "name": str, "data": str, "validation": str, "test": str, "kind": str, "text": str, "text_a": str,
    "text_b": str, "image": str, "sound": str, "label": str, "labels": list, "metrics": list, "split_seed": int,
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
    dict: "a table, or the name of a file",
}


def read_task_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a task file: the settings of the task and those of its comparison; paths are relative to the file.

    Raises `ConfigError` for an unknown key or a value of the wrong type.
    """
    content = read_toml(path)
    label = content.get("label")
    if isinstance(label, list) and all(isinstance(name, str) for name in label):
        content["label"] = ",".join(label)
    _check_keys(content, path)
    if "data" not in content:
        raise ConfigError(
            "the task file names no data",
            where=str(path),
            got=f"the settings {', '.join(content) or 'none'}",
            expected="the setting data",
            do='add a line like data = "train.tsv"',
        )
    for key in FILES:
        if key in content and not content[key].startswith(("builtin:", "hub:")):
            content[key] = path.parent / content[key]
    if "rejects" in content:
        content["rejects"] = str(path.parent / content["rejects"])
    for name in content.keys() - {*_TASK_KEYS, *_COMPARE_KEYS}:
        setting = kind_settings()[name]
        if setting.type is dict and isinstance(content[name], str) and content[name] not in setting.choices:
            content[name] = str(path.parent / content[name])
    comparison = {key: content.pop(key) for key in _COMPARE_KEYS if key in content}
    return {"name": path.stem} | content, comparison


def _check_keys(content: Mapping[str, Any], path: Path) -> None:
    known = {**_TASK_KEYS, **_COMPARE_KEYS}
    if content.keys() - known:
        known |= {name: setting.type for name, setting in kind_settings().items()}
    for key, value in content.items():
        if key not in known:
            raise UnknownName("setting", key, known, where=str(path))
        if type(value) is not known[key] and (known[key], type(value)) not in ((float, int), (dict, str)):
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
