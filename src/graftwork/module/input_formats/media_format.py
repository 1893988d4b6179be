"""Input format: an image or a sound, a local file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftwork.core.example import Example, text_of
from graftwork.core.media import COLUMNS
from graftwork.core.task import Task
from graftwork.data.readers.class_folder import files_in, media_of
from graftwork.data.readers.embedded_media import Embedded
from graftwork.data.readers.rejects import DataRow, mapped
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, clip
from graftwork.module.input_format import GivenInputs, Rows, check_named, columns_called, require_text
from graftwork.pretrained.media_files import identify


@dataclass(frozen=True)
class File:
    """The format of one file per example."""

    role: str

    @property
    def roles(self) -> tuple[str, ...]:
        """The single role."""
        return (self.role,)

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """The name of its role."""
        return (frozenset({self.role}),)

    @property
    def sample(self) -> str:
        """A file name."""
        return f"{self.role}.{'jpg' if self.role == 'image' else 'wav'}"

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return False: an unnamed text is never interpreted as a path."""
        return False

    def example(self, number: int, given: GivenInputs) -> Example:
        """Build from a path, by name or not. Also raises `DataError` or `StorageError` for a bad or missing file."""
        if not isinstance(given, str | Mapping) and len(given) == 1:
            given = given[0]
        if isinstance(given, Mapping) and set(given) == {self.role}:
            given = given[self.role]
        if not isinstance(given, str) or not given.strip():
            got = "nothing" if isinstance(given, str) else clip(str(given))
            raise ConfigError(
                f"wrong inputs: input {number} is not of type {self.role}", got=got, expected="the path of a file"
            )
        return Example(f"input/{number}", {self.role: identify(Path(given), self.role)})

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """Return the paths; for a folder those of its files."""
        listed = [
            [str(file) for file in files_in(Path(text), self.role)] if Path(text).is_dir() else [text] for text in texts
        ]
        return [file for files in listed for file in files]

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read a list of files, or a folder of them."""
        check_named(named, self.roles)
        table = open_table(source, spans=False)
        usual = next((name for name in COLUMNS[self.role] if name in table.header), self.role)
        (column,) = columns_called(table, self.roles, named if usual == self.role else {self.role: usual, **named})

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            cell = row.cells[0]
            given = cell if isinstance(cell, Embedded) else text_of(require_text(cell, where))
            found = media_of(given, self.role, table.path, where)
            return Example(f"line/{row.line}", {self.role: found})

        return lambda: mapped(table.readings([column]), table.path, made)


IMAGE, SOUND = File("image"), File("sound")
