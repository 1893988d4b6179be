"""Reader of class folders: `daisy/1.jpg` is an image labelled `daisy`, `yes/1.wav` a sound labelled `yes`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from graftwork.core.media import MEDIA, SUFFIXES, Media, conversion
from graftwork.data.readers.embedded_media import EmbeddedFile, cached_file
from graftwork.data.readers.rejects import NumberedRow, RowSource
from graftwork.errors import DataError, clip, nearest
from graftwork.io.files import storage_errors
from graftwork.io.gzip_files import plain_name
from graftwork.pretrained.media_files import identify

LABEL = "label"  # name of the column of class folder names
LONGEST_NAME = 255  # characters; for a longer name no similar one is suggested
TABLES = (".csv", ".tsv", ".jsonl", ".json", ".conll", ".conllu", ".parquet")  # may be meant instead of a folder
LEFT_BEHIND = ("thumbs.db", "desktop.ini")  # files that file managers create


def opened(path: Path) -> RowSource:
    """Return a row per file, numbered from 1: its path inside the folder, as `image` or `sound`, and its label."""
    role, found = labelled_files(path)

    def rows() -> Iterator[NumberedRow]:
        for number, (file, label) in enumerate(found, 1):
            yield number, {role: str(file.relative_to(path)), LABEL: label}, 0, 0

    return RowSource.named((role, LABEL), rows)


def labelled_files(path: Path) -> tuple[str, list[tuple[Path, str]]]:
    """Return the role of the class folders' files (image or sound), and each file with its label, sorted by name.

    Files beside the class folders are ignored. Raises `DataError` where there are no class folders, or one holds a file
    that is neither image nor sound.
    """
    with storage_errors(path):
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        found = [(file, folder.name) for folder in folders for file in _files(folder)]
    if not found:
        _refuse_empty(path, folders)
    roles = {role: file for file, _ in reversed(found) if (role := _role(file))}
    if len(roles) > 1:
        raise DataError(
            "the folder holds images and sounds",
            where=str(path),
            got=" and ".join(str(file.relative_to(path)) for file in roles.values()),
            expected="one sort of file",
            do="keep them in two folders",
        )
    return next(iter(roles)), found


def media_of(cell: str | EmbeddedFile, role: str, source: Path, where: str) -> Media:
    """Return the file that `cell` contains, or names relative to the folder of the list `source`, or inside a folder.

    A Windows path with backslashes is read with slashes if only that file exists. Raises `DataError` with the location
    in the list for a missing file and for a bad file in the list itself, and with the file's path for another bad file.
    """
    if isinstance(cell, EmbeddedFile):
        if cell.content is not None:
            return _of_content(cell.content, cell.path, role, where)
        cell = cell.path
    folder = source if source.is_dir() else source.parent
    if (path := _file(folder, cell)) or ("\\" in cell and (path := _file(folder, _with_slashes(cell)))):
        return identify(path, role)
    raise DataError(
        f"the {role} is not there" if cell.strip() else f"no {role} is named",
        where=where,
        got=clip(cell),
        expected=f"a path relative to {folder}",
        do=_remedy(cell, folder),
    )


def require_heard(sounds: Iterable[Media], source: Path) -> None:
    """Raise `DataError` where every one of these recordings is digital silence."""
    if all(sound.silent for sound in sounds):
        raise DataError(
            "all recordings are silent: there is nothing to learn",
            where=str(source),
            got="no sample but zeros in any row of train",
            expected="a class that can be heard",
            do="listen to the files; convert or record them again",
        )


def _of_content(content: bytes, name: str, role: str, where: str) -> Media:
    try:
        return identify(cached_file(content, name), role)
    except DataError as error:
        error.where = where + (f" ({clip(name)})" if name else "")
        raise


def of_windows(cell: str, source: Path) -> bool:
    """Return whether `media_of` reads the path with slashes for its backslashes."""
    return "\\" in cell and not _file(source.parent, cell) and _file(source.parent, _with_slashes(cell)) is not None


def _with_slashes(cell: str) -> str:
    return cell.replace("\\", "/")


def _file(folder: Path, cell: str) -> Path | None:
    """Return the path of the file that `cell` names; None if it is not there, or can't be."""
    path = folder / cell
    return path if cell.strip() and os.path.isfile(path) else None  # `Path.is_file` raises if the name is too long


def _remedy(cell: str, folder: Path) -> str:
    """Return a remedy for a missing path: the longest end of it that exists, or the most similar name."""
    if any(mark in cell for mark in "\t\n\r\b\f"):
        return "the path holds a control character: in JSON a backslash is written twice, or as a slash"
    given = _with_slashes(cell)
    path = folder / given
    parts = given.split("/")
    tails = ("/".join(parts[start:]) for start in range(1, len(parts)))
    if (tail := next((tail for tail in tails if tail.strip("/.") and _file(folder, tail)), None)) is not None:
        before = cell[: len(cell) - len(tail)]
        return f"did you mean {clip(tail)}? then take {clip(before)} off the paths, which are those of another place"
    meant = given.strip() and len(path.name) <= LONGEST_NAME and os.path.isdir(path.parent)
    near = nearest(path.name, os.listdir(path.parent)) if meant else None
    return f"did you mean {clip(str(Path(given).parent / near))}?" if near else "mend the path, or remove the row"


def files_in(path: Path, role: str) -> list[Path]:
    """Return the images, or sounds, of a folder tree, sorted by name. Raises `DataError` where there are none."""
    with storage_errors(path):
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES[role] and file.is_file())
    if not found:
        raise DataError(
            f"the folder holds no {role}",
            where=str(path),
            expected=f"files named {', '.join(SUFFIXES[role])}",
            do="name another folder, or a file",
        )
    return found


def _role(file: Path) -> str | None:
    return next((role for role in MEDIA if file.suffix.lower() in SUFFIXES[role]), None)


def _files(folder: Path) -> list[Path]:
    """Return the files of one class folder. Raises `DataError` unless each is an image or a sound."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    kept = [entry for entry in entries if entry.name.lower() not in LEFT_BEHIND]
    inner = next((entry for entry in kept if entry.is_dir()), None)
    if inner is not None:
        raise DataError(
            "the class folder contains a folder",
            where=str(inner),
            expected=f"images or sounds in {folder.name!r}",
            do="name the folder whose folders are the classes, and move out of it what is none: runs, boards, a bank",
        )
    odd = next((file for file in kept if _role(file) is None), None)
    if odd is not None:
        raise DataError(
            "the file is neither an image nor a sound, by its suffix",
            where=str(odd),
            got=odd.suffix or "no suffix",
            expected=", ".join(suffix for suffixes in SUFFIXES.values() for suffix in suffixes),
            do="move it out of the class folders, or convert it: an image by "
            f"{conversion(odd, 'image')}, a sound by {conversion(odd, 'sound')}",
        )
    return kept


def _refuse_empty(path: Path, folders: Sequence[Path]) -> None:
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    media = sum(_role(file) is not None for file in files)
    others = [file.name for file in files if _role(file) is None]
    tables = [name for name in others if plain_name(Path(name)).endswith(TABLES) and "test" not in name.lower()]
    named = f"name the file to read, such as {path / tables[0]}" if tables else "name the file to read"
    got = f"{media} images and sounds, in no class folder" if media else ", ".join(others[:5]) or "an empty folder"
    raise DataError(
        "the class folders are empty" if folders else "this folder holds neither splits nor class folders",
        where=str(path),
        got=f"{len(folders)} folders without files" if folders else got,
        expected="train.csv and test.csv or the like, or a folder per class with its images or sounds in it",
        do="sort the files into folders named by their labels, or write a list with the columns image and label"
        if media and not tables
        else f"{named}; or call the files of the splits train, validation and test",
    )
