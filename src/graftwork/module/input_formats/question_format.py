"""Input format: a question and the passage that holds its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graftwork.core.example import Example, text_of
from graftwork.core.task import Task
from graftwork.data.readers.rejects import Bad, DataRow, mapped
from graftwork.data.readers.squad import questions
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.io.gzip_files import plain_name
from graftwork.module.input_format import GivenInputs, Rows, check_named, require_text, require_texts, two_and_two
from graftwork.targets.passages import Passage, question_of

COLUMNS = ("question", "context")


class Questions:
    """The format of a question and the words of its passage."""

    roles = ("question", "words")
    names = (frozenset(COLUMNS),)
    sample = '"a question" "its passage"'

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return whether `given` is a tuple of two texts."""
        return isinstance(given, tuple) and len(given) == 2 and all(isinstance(text, str) for text in given)

    def example(self, number: int, given: GivenInputs) -> Example:
        """Build from a question and its passage, as a pair or by name."""
        if isinstance(given, Mapping):
            if set(given) != set(COLUMNS):
                raise ConfigError("wrong inputs", got=", ".join(given), expected=", ".join(COLUMNS))
            given = tuple(given[name] for name in COLUMNS)
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
        """Return pairs of two consecutive texts."""
        return two_and_two(texts, "every question and its passage")

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read SQuAD's JSON, or columns called question and context."""
        check_named(named, (), expected=f"columns called {' and '.join(COLUMNS)}")
        if Path(plain_name(source)).suffix == ".json":
            return lambda: (
                asked
                if isinstance(asked, Bad)
                else question_of(f"question/{number}", asked.question, Passage.of(asked.context))
                for number, asked in enumerate(questions(source, labelled=False), 1)
            )
        table = open_table(source, spans=False)
        for column in COLUMNS:
            if column not in table.header:
                near = nearest(column, table.header)
                raise DataError(
                    f"no column {column!r}",
                    where=f"{table.path}:1",
                    got=f"columns: {', '.join(table.header)}",
                    expected=f"columns called {' and '.join(COLUMNS)}",
                    do=f"rename the column {near!r}" if near else f"add a column called {column}",
                )

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            question, context = (text_of(require_text(cell, where)) for cell in row.cells)
            return question_of(f"line/{row.line}", question, Passage.of(context))

        return lambda: mapped(table.readings(COLUMNS), table.path, made)


QUESTIONS = Questions()
