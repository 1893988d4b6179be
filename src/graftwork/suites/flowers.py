"""Flower photos, a folder of images per class (The TensorFlow Team, "Flowers", 2019).

If lists of files exist beside the folders, they give the splits: `train_list`, and `test_list`, `val_list` (or
`validate_list`) or both. A list is a `.txt` file (per line a path, which may contain spaces, a space and the label) or
a `.tsv` file (a header, then a path and a label per line).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.data.readers.class_folder import LABEL, labelled_files
from graftwork.data.readers.lines import read_lines
from graftwork.errors import DataError, clip
from graftwork.registry import suites

TITLE = "Flower photos (The TensorFlow Team 2019)"
NAME = "flowers"
HELD_OUT = ("test_list", "val_list", "validate_list")  # the first that exists is the test split, the next validation
DRAWN = "there is no list of a test split: a fifth of the images, drawn by a hash of their content, is the test split"


def tasks(folder: Path) -> list[OfficialTask]:
    """Return the one task, split by the lists if there are any."""
    train, held_out = _list(folder, "train_list"), [found for name in HELD_OUT if (found := _list(folder, name))]
    if train is not None and held_out:
        of_train, scored, *others = [Source(path, partial(_listed, path)) for path in (train, *held_out)]
        validation = others[0] if others else None
        note = f"the images of {scored.path.name} are scored on"
        note += f", choices were made on those of {validation.path.name}" if validation else ""
        return [
            OfficialTask(
                NAME, "classification", ("accuracy",), of_train, {NAME: scored}, validation=validation, note=note
            )
        ]
    classes = folder if any(path.is_dir() for path in folder.iterdir()) else folder / "daisy"
    whole = Source(classes, partial(_in_folders, folder))
    return [OfficialTask(NAME, "classification", ("accuracy",), whole, {NAME: None}, note=DRAWN)]


def _list(folder: Path, name: str) -> Path | None:
    return next((path for suffix in (".txt", ".tsv") if (path := folder / f"{name}{suffix}").is_file()), None)


def _in_folders(folder: Path) -> Iterator[Row]:
    for file, label in labelled_files(folder)[1]:
        yield {"image": str(file.resolve()), LABEL: label}


def _listed(path: Path) -> Iterator[Row]:
    """Yield the rows of a list. Raises `DataError` with file:line for a line that is not a path and a label."""
    is_table = path.suffix == ".tsv"
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n").split("\t") if is_table else line.strip().rsplit(maxsplit=1)
        if (is_table and number == 1) or not fields or fields == [""]:
            continue
        if len(fields) != 2:
            raise DataError(
                "not a path and a label",
                where=f"{path}:{number}",
                got=clip(line.strip()),
                expected="daisy/1.jpg daisy",
                do="mend the line or remove it",
            )
        yield {"image": str((path.parent / fields[0]).resolve()), "label": fields[1]}


suites.register("flowers")(Suite(TITLE, tasks, hidden=False))
