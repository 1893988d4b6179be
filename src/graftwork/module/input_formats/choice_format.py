"""Input format: a text and its choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graftwork.core.example import Example
from graftwork.core.part_settings import split_words
from graftwork.core.task import Task
from graftwork.data.readers.choice_tables import choice_rows, find_choice_columns
from graftwork.data.readers.embedded_media import text_cell
from graftwork.data.readers.rejects import DataRow, mapped
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, clip
from graftwork.module.input_format import GivenInputs, Rows, check_named, require_text
from graftwork.targets.choices import check_choices


class Choices:
    """The format of a text and two or more choices."""

    roles = ("text", "choices")
    names = (frozenset({"text", "choices"}),)
    sample = '"a text" "a choice" "another"'

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return whether `given` is a text and a list."""
        return len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], list | tuple)

    def example(self, number: int, given: GivenInputs) -> Example:
        """Build from a text and its choices, by name or as a pair."""
        inputs = dict(given) if isinstance(given, Mapping) else dict(zip(self.roles, given, strict=False))
        text, choices = inputs.get("text"), inputs.get("choices")
        if len(given) != 2 or not isinstance(text, str) or not isinstance(choices, list | tuple):
            expected = 'a text and its choices: {"text": "…", "choices": ["…", "…"]}'
            raise ConfigError("wrong inputs", got=clip(str(given)), expected=expected)
        if len(choices) < 2 or not all(isinstance(item, str) and item.strip() for item in (text, *choices)):
            what = "has an empty text or choice" if len(choices) > 1 else "has fewer than two choices"
            raise ConfigError(f"text {number} {what}", do="write: a text, then its choices")
        return Example(f"input/{number}", {"text": text, "choices": tuple(choices)})

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """Return one example from all texts: the text, then its choices."""
        return [{"text": texts[0], "choices": texts[1:]}]

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read tables as for training, without the labels."""
        check_named(named, self.roles)
        table = open_table(source, spans=False)
        choices = tuple(split_words(named.get("choices", "")))
        asked = task.resolved(text=named.get("text"), choices=choices)
        found = find_choice_columns(asked, table, labelled=False)

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            text, choices = require_text(row.cells[0], where), text_cell(row.cells[1], where)
            check_choices(tuple(choices), where)
            return Example(f"line/{row.line}", {"text": text, "choices": choices})

        return lambda: mapped(choice_rows(table, found), table.path, made)


CHOICES = Choices()
