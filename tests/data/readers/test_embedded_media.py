"""Images and sounds inside Parquet, and in sets of the library `datasets`, are the files that went in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.media import Media
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers import hub_datasets
from graftwork.data.readers.embedded_media import EmbeddedFile, cached_file, embedded_file, media_folder
from graftwork.errors import DataError
from graftwork.module.input_format import require_text
from graftwork.module.input_formats import IMAGE, SOUND
from graftwork.testing.tiny_media import CLASSES, write_image, write_sound

arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
HUB_NAMES = {"image": "img", "sound": "audio"}  # what sets of the hub call their columns


def files(folder: Path, role: str, count: int = 24) -> list[Path]:
    write, suffix = {"image": (write_image, "png"), "sound": (write_sound, "wav")}[role]
    return [write(folder / f"{i}.{suffix}", CLASSES[role][i % 2], i) for i in range(count)]


def table(path: Path, role: str, cells: list[Any], column: str = "") -> Path:
    labels = [CLASSES[role][i % 2] for i in range(len(cells))]
    parquet.write_table(arrow.table({column or role: cells, "label": labels}), path)
    return path


def media(task: Task, role: str) -> list[Media]:
    data = load(task)
    return [example.inputs[role] for split in data.splits.values() for example in split.examples]


@pytest.mark.parametrize("role", ["image", "sound"])
def test_content_in_parquet_is_the_file_that_went_in(tmp_path: Path, role: str) -> None:
    given = files(tmp_path / "files", role)
    structs = [{"bytes": file.read_bytes(), "path": file.name} for file in given]
    expected = {Media("", file.sha256, file.size) for file in media(Task.from_file(_listed(given, role)), role)}
    for name, cells in {
        "struct": structs,
        "no_name": [{"bytes": one["bytes"], "path": None} for one in structs],
        "bare": [one["bytes"] for one in structs],
        "paths": [{"bytes": None, "path": f"files/{one['path']}"} for one in structs],
    }.items():
        path = table(tmp_path / f"{name}.parquet", role, cells, HUB_NAMES[role])
        found = media(Task.from_file(path), role)
        assert len(found) == 24 and set(found) == expected, name
    assert len(media_folder().entries()) == 48, "with and without a suffix: the last form names files that are there"


def _listed(given: list[Path], role: str) -> Path:
    path = given[0].parent / "list.jsonl"
    rows = [{role: file.name, "label": CLASSES[role][i % 2]} for i, file in enumerate(given)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The library, with a cache of its own."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    hub_datasets._sets.cache_clear()
    yield datasets
    hub_datasets._sets.cache_clear()


@pytest.mark.parametrize("role", ["image", "sound"])
def test_sets_of_the_hub_are_read_without_decoding(tmp_path: Path, hub: Any, role: str) -> None:
    given = files(tmp_path / "files", role)
    feature = hub.Image() if role == "image" else hub.Audio()
    features = hub.Features({HUB_NAMES[role]: feature, "label": hub.ClassLabel(names=list(CLASSES[role]))})
    kept_in = [{"bytes": file.read_bytes(), "path": file.name} for file in given]
    columns = {HUB_NAMES[role]: kept_in, "label": [i % 2 for i in range(24)]}
    rows = hub.Dataset.from_dict(columns).cast(features)
    (tmp_path / "set").mkdir()
    rows.to_parquet(tmp_path / "set" / "train.parquet")
    rows.to_parquet(tmp_path / "set" / "test.parquet")
    rows.save_to_disk(tmp_path / "saved")
    expected = set(media(Task.from_file(_listed(given, role)), role))
    for name in (f"hub:{tmp_path / 'set'}", f"hub:{tmp_path / 'saved'}", str(tmp_path / "saved")):
        task = Task.from_file(name)
        assert set(media(task, role)) == expected
        assert sorted(load(task).task.labels) == sorted(CLASSES[role])


def test_a_set_of_class_folders_names_its_files(tmp_path: Path, hub: Any) -> None:
    for i in range(24):
        write_image(tmp_path / "set" / "train" / CLASSES["image"][i % 2] / f"{i}.png", CLASSES["image"][i % 2], i)
    assert len(set(media(Task.from_file(f"hub:{tmp_path / 'set'}"), "image"))) == 24
    assert not media_folder().entries(), "they are files already"


def test_a_module_is_asked_about_such_a_table(tmp_path: Path) -> None:
    for role, form in {"image": IMAGE, "sound": SOUND}.items():
        given = files(tmp_path / role, role, 3)
        cells = [{"bytes": file.read_bytes(), "path": None} for file in given]
        path = table(tmp_path / f"{role}.parquet", role, cells, HUB_NAMES[role])
        found = list(form.rows(path, Task("a", path), {})())
        assert [one.inputs[role].size for one in found] == [  # type: ignore[union-attr]
            form.example(1, str(file)).inputs[role].size for file in given
        ]


@pytest.mark.parametrize(
    ("cells", "what", "got"),
    [
        ([{"bytes": b"no image", "path": "a.png"}] * 20, "not an image", "begins with 'no image'"),
        ([None] * 20, "is null", "null"),
        ([{"bytes": None, "path": None}] * 20, "not a text", "{"),
        ([{"bytes": None, "path": "gone.png"}] * 20, "the image is not there", "gone.png"),
    ],
)
def test_a_bad_cell_is_told_with_its_row(tmp_path: Path, cells: list[Any], what: str, got: str) -> None:
    good = write_image(tmp_path / "a.png", "red", 1).read_bytes()
    path = table(tmp_path / "a.parquet", "image", [{"bytes": good, "path": "a.png"}, *cells])
    with pytest.raises(DataError) as caught:
        load(Task.from_file(path, image="image"))
    assert what in caught.value.what and got in caught.value.got
    assert caught.value.where.startswith(f"{path}:2")


def test_an_image_that_is_named_as_a_text_is_no_text(tmp_path: Path) -> None:
    cells = [{"bytes": file.read_bytes(), "path": file.name} for file in files(tmp_path / "files", "image")]
    texts, path = [f"text {i}" for i in range(24)], tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"text": cells, "choice1": texts, "choice2": texts, "label": ["0"] * 24}), path)
    for kind, text in {"classification": "text", "tagging": "text", "choice": "text"}.items():
        with pytest.raises(DataError) as caught:
            load(Task.from_file(path, kind=kind, text=text, label="label"))
        assert (
            caught.value.what == "the cell is an image or a sound, where a text is needed"
            and caught.value.where == f"{path}:1"
        )
        assert "--image COLUMN" in caught.value.do and "bytes)" in caught.value.got
    with pytest.raises(DataError, match="where a text is needed"):
        require_text(EmbeddedFile(b"a"), "")


def test_several_in_a_row_and_decoded_ones_are_refused_by_name(tmp_path: Path) -> None:
    good = {"bytes": write_image(tmp_path / "a.png", "red", 1).read_bytes(), "path": "a.png"}
    several = table(tmp_path / "a.parquet", "image", [[good, good]] * 20)
    with pytest.raises(DataError, match="several images or sounds in 'image'") as caught:
        load(Task.from_file(several))
    assert caught.value.where == f"{several}:1" and caught.value.got == "2 files"
    decoded = table(tmp_path / "b.parquet", "sound", [{"array": [0.1], "sampling_rate": 8000, "path": "a"}] * 20)
    with pytest.raises(DataError, match="a decoded sound in 'sound'"):
        load(Task.from_file(decoded))


def test_what_is_a_file_and_what_is_not() -> None:
    assert embedded_file({"bytes": b"a", "path": "b"}) == EmbeddedFile(b"a", "b")
    assert embedded_file({"bytes": None, "path": "b"}) == EmbeddedFile(None, "b")
    for value in ("a", 3, None, ["a"], {"a": 1}, {"bytes": "a", "path": "b"}, {"bytes": None, "path": None}):
        assert embedded_file(value) is None


def test_a_file_is_written_once_and_again_where_it_was_cut() -> None:
    path = cached_file(b"content", "x/y.PNG")
    assert path.suffix == ".png" and path.read_bytes() == b"content"
    first = path.stat().st_mtime_ns
    assert cached_file(b"content", "other.png") == path and path.stat().st_mtime_ns == first
    path.write_bytes(b"con")
    assert cached_file(b"content", "y.png").read_bytes() == b"content"
    assert cached_file(b"content", "../../etc/passwd").parent == path.parent
    assert cached_file(b"content", "a./../b.p/ng").name == path.stem
