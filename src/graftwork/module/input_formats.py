"""The input formats, each an implementation of `Form`: texts, pairs, words, questions, choices, images and sounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftwork.core.example import Example, text_of
from graftwork.core.media import COLUMNS as MEDIA_COLUMNS
from graftwork.core.part_settings import split_words
from graftwork.core.task import Task
from graftwork.data.readers.choice_tables import choice_rows, find_choice_columns
from graftwork.data.readers.class_folder import files_in, media_of
from graftwork.data.readers.embedded_media import EmbeddedFile, text_cell
from graftwork.data.readers.rejects import Bad, DataRow, map_rows
from graftwork.data.readers.squad import questions
from graftwork.data.readers.table import Table, open_table
from graftwork.data.readers.word_cells import check_words
from graftwork.errors import ConfigError, DataError, clip, nearest
from graftwork.io.gzip_files import plain_name
from graftwork.module.input_format import (
    GivenInputs,
    Rows,
    check_named,
    columns_called,
    flag,
    require_text,
    require_texts,
    two_and_two,
)
from graftwork.pretrained.media_files import identify
from graftwork.targets.choices import check_choices
from graftwork.targets.passages import Passage, question_of
from graftwork.targets.words import example_of

ASKED = ("question", "context")  # columns and names of a question and its passage
WORD_COLUMNS = ("tokens", "words", "text", "sentence")


@dataclass(frozen=True)
class _Texts:
    """A text, or a pair of texts."""

    roles: tuple[str, ...]

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset(self.roles),)

    @property
    def sample(self) -> str:
        return " ".join(['"a text"', '"another"'][: len(self.roles)])

    def takes(self, given: str | Sequence[str]) -> bool:
        if len(self.roles) == 1 or isinstance(given, str):
            return len(self.roles) == 1 and isinstance(given, str)
        return isinstance(given, tuple) and len(given) == 2 and all(isinstance(text, str) for text in given)

    def example(self, number: int, given: GivenInputs) -> Example:
        if isinstance(given, str):
            given = (given,)
        if not isinstance(given, Mapping):
            if len(given) != len(self.roles):
                expected = f"{len(self.roles)} ({', '.join(self.roles)})"
                raise ConfigError("wrong number of texts", got=str(len(given)), expected=expected)
            given = dict(zip(self.roles, given, strict=True))
        if set(given) != set(self.roles):
            raise ConfigError("wrong inputs", got=", ".join(given), expected=", ".join(self.roles))
        require_texts(number, given.values())
        if not all(value.strip() for value in given.values()):
            raise ConfigError(f"text {number} is empty", do="write a text between the quotes")
        return Example(f"input/{number}", given)

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        if len(self.roles) == 1:
            return list(texts)
        return two_and_two(texts, "the first and the second text of every pair")

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read a column per text; `sentence` is accepted for `text`."""
        check_named(named, self.roles)
        table = open_table(source, spans=False)
        one_sentence = self.roles == ("text",) and "text" not in table.header and "sentence" in table.header
        columns = ["sentence"] if one_sentence and not named else columns_called(table, self.roles, named)

        def made(row: DataRow) -> Example:
            for cell in row.cells:
                require_text(cell, f"{table.path}:{row.line}")
            return Example(f"line/{row.line}", dict(zip(self.roles, row.cells, strict=True)))

        return lambda: map_rows(table.readings(columns), table.path, made)


class _Words:
    """The words of a text, or a text that is cut into words."""

    roles = ("words",)
    names = (frozenset({"words"}), frozenset({"text"}))
    sample = '"a text"'

    def takes(self, given: str | Sequence[str]) -> bool:
        return isinstance(given, str | list)

    def example(self, number: int, given: GivenInputs) -> Example:
        if isinstance(given, Mapping):
            if len(given) != 1 or not given.keys() <= {"text", "words"}:
                raise ConfigError("wrong inputs", got=", ".join(given), expected="words, or text")
            given = next(iter(given.values()))
        given = given if isinstance(given, str) else tuple(given if isinstance(given, Iterable) else [given])
        require_texts(number, given)
        example = example_of(f"input/{number}", given)
        words = example.inputs["words"]
        if not words or not all(word.strip() for word in words):
            raise ConfigError(
                f"text {number} {'has an empty word' if words else 'is empty'}", do="leave empty words out"
            )
        return example

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        return list(texts)

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read a column of lists of words, or of texts."""
        check_named(named, ("text",))
        table = open_table(source)
        column = _column_of_words(table, named.get("text"))
        words = column if table.holds_lists(column) else None

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            example = example_of(f"line/{row.line}", require_text(row.cells[0], where))
            check_words(example.inputs["words"], where)
            return example

        return lambda: map_rows(table.readings([column], words=words), table.path, made)


def _column_of_words(table: Table, named: str | None) -> str:
    for column in [named] if named is not None else WORD_COLUMNS:
        if column in table.header:
            return column
    raise DataError(
        f"no column {named!r}" if named is not None else "no column of words or texts",
        where=f"{table.path}:1",
        got=f"columns: {', '.join(table.header)}",
        expected="" if named is not None else f"one of {', '.join(WORD_COLUMNS)}",
        do=f"name it: {flag('text')} COLUMN",
    )


class _Questions:
    """A question and the words of the passage that holds its answer."""

    roles = ("question", "words")
    names = (frozenset(ASKED),)
    sample = '"a question" "its passage"'

    def takes(self, given: str | Sequence[str]) -> bool:
        return isinstance(given, tuple) and len(given) == 2 and all(isinstance(text, str) for text in given)

    def example(self, number: int, given: GivenInputs) -> Example:
        if isinstance(given, Mapping):
            if set(given) != set(ASKED):
                raise ConfigError("wrong inputs", got=", ".join(given), expected=", ".join(ASKED))
            given = tuple(given[name] for name in ASKED)
        if isinstance(given, str) or len(given) != 2:
            raise ConfigError(
                "a question and its passage are needed",
                got="one text" if isinstance(given, str) else f"{len(given)} texts",
                do='write predict([("the question?", "the passage")])',
            )
        require_texts(number, given)
        question, context = given
        if not (question.strip() and context.strip()):
            raise ConfigError(f"text {number} is empty", do="write: a question, then its passage")
        return question_of(f"input/{number}", question, Passage.of(context))

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        return two_and_two(texts, "every question and its passage")

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read SQuAD's JSON, or columns called question and context."""
        check_named(named, (), expected=f"columns called {' and '.join(ASKED)}")
        if Path(plain_name(source)).suffix == ".json":
            return lambda: (
                asked
                if isinstance(asked, Bad)
                else question_of(f"question/{number}", asked.question, Passage.of(asked.context))
                for number, asked in enumerate(questions(source, labelled=False), 1)
            )
        table = open_table(source, spans=False)
        for column in ASKED:
            if column not in table.header:
                near = nearest(column, table.header)
                raise DataError(
                    f"no column {column!r}",
                    where=f"{table.path}:1",
                    got=f"columns: {', '.join(table.header)}",
                    expected=f"columns called {' and '.join(ASKED)}",
                    do=f"rename the column {near!r}" if near else f"add a column called {column}",
                )

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            question, context = (text_of(require_text(cell, where)) for cell in row.cells)
            return question_of(f"line/{row.line}", question, Passage.of(context))

        return lambda: map_rows(table.readings(ASKED), table.path, made)


class _Choices:
    """A text and two or more choices."""

    roles = ("text", "choices")
    names = (frozenset({"text", "choices"}),)
    sample = '"a text" "a choice" "another"'

    def takes(self, given: str | Sequence[str]) -> bool:
        return len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], list | tuple)

    def example(self, number: int, given: GivenInputs) -> Example:
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

        return lambda: map_rows(choice_rows(table, found), table.path, made)


@dataclass(frozen=True)
class _File:
    """An image or a sound, a local file. An unnamed text is never interpreted as a path."""

    role: str

    @property
    def roles(self) -> tuple[str, ...]:
        return (self.role,)

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset({self.role}),)

    @property
    def sample(self) -> str:
        return f"{self.role}.{'jpg' if self.role == 'image' else 'wav'}"

    def takes(self, given: str | Sequence[str]) -> bool:
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
        usual = next((name for name in MEDIA_COLUMNS[self.role] if name in table.header), self.role)
        (column,) = columns_called(table, self.roles, named if usual == self.role else {self.role: usual, **named})

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            cell = row.cells[0]
            given = cell if isinstance(cell, EmbeddedFile) else text_of(require_text(cell, where))
            found = media_of(given, self.role, table.path, where)
            return Example(f"line/{row.line}", {self.role: found})

        return lambda: map_rows(table.readings([column]), table.path, made)


TEXT, PAIR = _Texts(("text",)), _Texts(("text_a", "text_b"))
WORDS, QUESTIONS, CHOICES = _Words(), _Questions(), _Choices()
IMAGE, SOUND = _File("image"), _File("sound")
