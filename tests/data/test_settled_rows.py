"""Tags in every spelling become spans; those that cannot be read so are told, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError

SPAN_METRICS = ("entity_f1", "conll_f1", "accuracy")
STANDARD = ("B-PER", "I-PER", "I-PER", "O", "B-PER", "O", "B-PER", "B-PER", "I-PER")


def write(folder: Path, tags: Sequence[str], name: str = "t.conll", rows: int = 30) -> Path:
    """Write sentences with these tags, all of other words."""
    path = folder / name
    path.write_text("\n".join("".join(f"w{row}x{at} {tag}\n" for at, tag in enumerate(tags)) for row in range(rows)))
    return path


def found(folder: Path, tags: str, **flags: object) -> Dataset:
    return load(Task.from_file(write(folder, tags.split()), kind="tagging", **flags))


def place(data: Dataset, count: int) -> dict[str, int]:
    """What a count of places in every sentence is in each split."""
    return {name: count * len(split.examples) for name, split in data.splits.items()}


@pytest.mark.parametrize(
    ("tags", "kind", "name", "changed"),
    [
        ("B I I O B O B B I", "span", "IOB tags without types", 7),
        ("b i i o b o b b i", "span", "IOB tags without types", 9),
        ("B I E O S O S B E", "span", "BIOES tags without types", 7),
        ("PER-B PER-I PER-I O PER-B O PER-B PER-B PER-I", "PER", "IOB tags", 7),
        ("B_PER I_PER I_PER O B_PER O B_PER B_PER I_PER", "PER", "IOB tags", 7),
        ("b-per i-per i-per o b-per o b-per b-per i-per", "per", "IOB tags", 9),
        ("B-PER I-PER E-PER O S-PER O S-PER B-PER E-PER", "PER", "BIOES tags", 4),
        ("B-PER I-PER L-PER O U-PER O U-PER B-PER L-PER", "PER", "BILOU tags", 4),
        ("B-PER M-PER E-PER O S-PER O S-PER B-PER E-PER", "PER", "BMES tags", 5),
        ("I-PER I-PER E-PER O E-PER O E-PER I-PER E-PER", "PER", "IOE tags", 6),
    ],
)
def test_every_spelling_is_read_as_the_same_spans(
    tmp_path: Path, tags: str, kind: str, name: str, changed: int
) -> None:
    data = found(tmp_path, tags)
    assert data.task.labels == (f"B-{kind}", f"I-{kind}", "O") and data.task.metrics == SPAN_METRICS
    assert {example.target for example in data.train.examples} == {tuple(t.replace("PER", kind) for t in STANDARD)}
    told, strays = data.report["mended"].items()
    assert told[0].startswith(f"{name}, read as spans and written with B- and I- ('")
    assert told[1] == place(data, changed)
    assert strays == ("Tags inside a span that continue nothing, read as B-", place(data, 0))
    assert any(line.startswith(name) and "of train" in line for line in data.report["warnings"])


def test_tags_that_need_nothing_are_as_before(tmp_path: Path) -> None:
    data = found(tmp_path, " ".join(STANDARD))
    assert data.report["mended"] == {"I- tags that continue nothing, read as B-": place(data, 0)}
    assert not any("tag" in line for line in data.report["warnings"])
    iob1 = found(tmp_path, "I-PER I-PER I-PER O I-PER O I-PER B-PER I-PER")
    assert iob1.report["mended"] == {"I- tags that continue nothing, read as B-": place(data, 3)}
    assert iob1.digest == data.digest and iob1.task.metrics == SPAN_METRICS
    assert any(line.startswith("I- tags that continue nothing, read as B-: ") for line in iob1.report["warnings"])


def test_parts_of_speech_stay_names(tmp_path: Path) -> None:
    data = found(tmp_path, "N V O D N")
    assert data.task.labels == ("D", "N", "O", "V") and data.task.metrics == ("accuracy",)
    assert not any("tag" in line for line in data.report["warnings"])


@pytest.mark.parametrize("tags", ["O PER PER O O O LOC", "0 1 2 0 0 0 1", "O B~PER O O MISC"])
def test_spans_that_are_not_read_are_warned_of(tmp_path: Path, tags: str) -> None:
    data = found(tmp_path, tags)
    assert data.task.metrics == ("accuracy",)
    (line,) = (line for line in data.report["warnings"] if "as outside of spans" in line)
    assert f"The tag {tags[0]!r} is on " in line and "B-TYPE or I-TYPE" in line


@pytest.mark.parametrize("tags", ["O BPER IPER LOC LOC LOC", "O B_PER I_PER X X X", "O PER+B PER+I"])
def test_tags_half_of_which_mark_spans_are_warned_of(tmp_path: Path, tags: str) -> None:
    first, second = tags.split()[1:3]
    assert any(
        line.startswith(f"The tags {first!r} and {second!r} seem to mark spans, but not all tags do: ")
        for line in found(tmp_path, tags).report["warnings"]
    )


def test_tags_of_two_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="some tags mark spans and some do not") as caught:
        found(tmp_path, "B-A I-A E-A O B-A L-A O S-A")
    assert "all of one scheme" in caught.value.expected
    with pytest.raises(DataError) as caught:
        found(tmp_path, "B-A E-A O MISC")
    assert caught.value.do == "mend 'MISC'"


def test_metrics_of_spans_name_the_tags_that_mark_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scores spans") as caught:
        found(tmp_path, "O PER PER O", metrics="entity_f1")
    assert caught.value.got == "the labels 'O', 'PER'"


def test_stray_tags_of_other_schemes_are_counted_or_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ["B-A", "E-A", "O", "S-A"])
    path.write_text(path.read_text() + "\nx O\ny E-A\n\nx O\n")
    data = load(Task.from_file(path, kind="tagging"))
    assert sum(data.report["mended"]["Tags inside a span that continue nothing, read as B-"].values()) == 1
    odd = next(e for split in data.splits.values() for e in split.examples if e.inputs["words"] == ("x", "y"))
    assert odd.target == ("O", "B-A")
    with pytest.raises(DataError, match="the tag 'E-A' continues nothing") as caught:
        load(Task.from_file(path, kind="tagging", stray_tags="refuse"))
    assert caught.value.where == f"{path}:151"
    aside = tmp_path / "bad.jsonl"
    kept = load(Task.from_file(path, kind="tagging", stray_tags="refuse", rejects=str(aside)))
    assert sum(kept.report["rows"].values()) == 31
    (line,) = map(json.loads, aside.read_text().splitlines())
    assert line["line"] == 151 and line["row"] == "x O\ny E-A\n"


@pytest.mark.parametrize("labels", ["B-A,I-A,E-A,S-A,O", "O,I-A,B-A"])
def test_labels_may_be_listed_in_either_spelling(tmp_path: Path, labels: str) -> None:
    data = found(tmp_path, "B-A E-A O S-A", labels=labels)
    assert data.task.labels == tuple(label for label in labels.split(",") if label[0] not in "ES")
    with pytest.raises(DataError, match="unknown label 'B-B'"):
        found(tmp_path, "B-A E-A O S-A S-B", labels=labels)


def test_a_split_of_which_no_tag_tells_the_scheme_is_read_as_the_others(tmp_path: Path) -> None:
    train, test = write(tmp_path, ["B", "E", "O", "S"]), write(tmp_path, ["O", "S"], "test.conll", 5)
    data = load(Task.from_file(train, kind="tagging", test=test))
    assert data.test.examples[0].target == ("O", "B-span")
