"""Reader of tables of texts with candidates: a list per row, a column per choice, or a row per candidate.

A label is the right choice's column name, text, letter or number; where the file marks every candidate, 0 or 1.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from string import ascii_lowercase
from typing import Any

from graftwork.core.example import Input
from graftwork.core.task import Split, Task
from graftwork.data.readers.choice_labels import OF_LETTER, marks_of
from graftwork.data.readers.columns import column_of, columns_told
from graftwork.data.readers.embedded_media import text_cell
from graftwork.data.readers.rejects import Bad, Cell, DataRow, map_rows
from graftwork.data.readers.table import Table
from graftwork.errors import ConfigError, DataError, clip
from graftwork.io.gzip_files import plain_name
from graftwork.targets.choices import check_choices, parse_marks

TEXTS = ("text", "premise", "query", "context", "question", "sentence")
OTHER_TEXTS = ("question.stem", "ctx", "startphrase", "goal", "prompt")  # where there is none of TEXTS
LISTS = ("choices", "candidates")  # columns with a list in every row
OTHER_LISTS = ("question.choices", "options", "endings")  # where there is none of LISTS
SINGLE = ("candidate", "document", "passage", "answer")  # columns with one candidate in every row
LABELS = ("label", "labels", "relevance")
ANSWERS = ("answerKey", "answer_key", "answer_idx", "answer", "correct", "cop")  # where there is none of LABELS
ASKING = ("premise", "context")  # columns to which a `question` is appended as part of the text
ASKED_ABOUT = ("article", "passage")  # columns that are part of the text only together with a `question`
JOINED = "+"  # separator of columns that make up one text: premise+question
ASKED = {"cause": "What was the CAUSE of this?", "effect": "What happened as a RESULT?"}  # the questions of COPA

_LIST = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)
_NUMBERED = re.compile(
    r"(choice|ending|option|opt|op|answer|ans|alternative|hypothesis|candidate|sol)[_ ]?([0-9]{1,2})"
)


def find_choice_columns(task: Task, table: Table, labelled: bool = True) -> Task:
    """Return `task` with `text`, `choices` and, if `labelled`, `label` set to columns.

    Raises `DataError` for a column that is not there, `ConfigError` for settings that contradict.
    """
    if task.text_a is not None or task.text_b is not None:
        raise ConfigError(f"the kind {task.kind!r} reads one text with its choices", do="set --text and --choices")
    choices = task.settings.choices or _found_choices(table)
    text = task.text or _found_text(table, choices)
    for name in choices:
        column_of(table, "choices", name, None)
    for name in _parts(text, table):
        column_of(table, "text", name, None, ", ".join(TEXTS) if name == TEXTS[0] else name)
    if not labelled:
        return task.resolved(text=text, choices=choices)
    usual = (*LABELS, *(name for name in ANSWERS if name not in choices))
    label = task.label or next((name for name in usual if name in table.header), LABELS[0])
    column_of(table, "label", label, None)
    twice = [name for name, count in Counter([*_parts(text, table), *choices, label]).items() if count > 1]
    if twice:
        raise ConfigError(
            f"the column {twice[0]!r} is used twice",
            where=str(table.path),
            do="name another column for one of its uses",
        )
    return task.resolved(text=text, choices=choices, label=label)


def _parts(text: str, table: Table) -> tuple[str, ...]:
    """Return the columns that `text` names."""
    return (text,) if text in table.header else tuple(text.split(JOINED))


def _found_text(table: Table, choices: Sequence[str]) -> str:
    found = [name for name in TEXTS if name in table.header and name not in choices]
    if len(found) == 2 and found[0] in ASKING and found[1] == "question":
        return JOINED.join(found)
    if found == ["question"]:
        about = [name for name in ASKED_ABOUT if name in table.header and name not in choices][:1]
        return JOINED.join([*about, *found])
    if len(found) > 1:
        raise DataError(
            "more than one column could be the text",
            where=f"{table.path}:1",
            got=columns_told(table),
            do=f"say which: --text COLUMN, or --text {JOINED.join(found[:2])} for both",
        )
    others = [name for name in OTHER_TEXTS if name in table.header and name not in choices]
    return next(iter([*found, *others]), TEXTS[0])


def _found_choices(table: Table) -> tuple[str, ...]:
    """Return the column of lists, the numbered or lettered columns of choices in order, or the column of candidates."""
    numbered: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in table.header:
        if match := _NUMBERED.fullmatch(name):
            numbered[match[1]].append((int(match[2]), name))
    found: list[tuple[str, ...]] = [(name,) for name in LISTS if name in table.header]
    found += [tuple(name for _, name in sorted(names)) for names in numbered.values() if len(names) > 1]
    lettered = _lettered(table.header)
    found = found or [(name,) for name in OTHER_LISTS if name in table.header]
    found = found or [family for family in lettered if len(family[0]) > 1] or lettered
    found = found or [(name,) for name in SINGLE if name in table.header and not _is_json(table)]
    found = found or [("answers",)] if "answers" in table.header else found
    if len(found) != 1:
        raise DataError(
            "more than one column could be the choices" if found else "no column of choices",
            where=f"{table.path}:1",
            got=columns_told(table),
            expected=f"{' or '.join(LISTS[:2])} with lists (JSONL), choice1, choice2, … or option_a, option_b, …, or "
            f"{SINGLE[0]}, one in each row",
            do="say which: --choices COLUMN, or --choices FIRST,SECOND,… for a column each",
        )
    return found[0]


def _lettered(header: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the families of columns whose names end in a, b, and so on: `opt_a`, `opt_b`, or `A`, `B`."""
    families: defaultdict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    for name in header:
        if match := OF_LETTER.fullmatch(name):
            families[match["stem"], match["letter"].isupper()][match["letter"].lower()] = name
    whole = [family for family in families.values() if len(family) > 1 and "".join(sorted(family)) in ascii_lowercase]
    return [tuple(family[letter] for letter in sorted(family)) for family in whole if "a" in family]


def _is_json(table: Table) -> bool:
    return plain_name(table.path).endswith((".jsonl", ".json"))


def choice_rows(table: Table, task: Task) -> Iterator[DataRow | Bad]:
    """Yield every example's text, candidates and, if `task.label` is set, a tuple of "0" and "1", one per candidate;
    or the bad row."""
    assert task.text is not None
    texts = _parts(task.text, table)
    columns = [*texts, *task.settings.choices, *([task.label] if task.label else [])]
    single = len(task.settings.choices) == 1
    of_lists = single and (_is_json(table) or table.holds_lists(task.settings.choices[0]))
    listed = task.settings.choices[0] if of_lists else None
    found = table.readings(columns, label=task.label, words=listed, family=_family(task.settings.choices))
    rows = map_rows(found, table.path, lambda row: _joined(row, texts, task.settings.choices, of_lists, table))
    if single and not of_lists:
        return _grouped(rows, table)
    columns = [] if of_lists else list(task.settings.choices)
    return map_rows(rows, table.path, lambda row: _marked(row, columns, task, f"{table.path}:{row.line}"))


def _family(choices: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern that matches the names of the choices' numbered or lettered columns; None for other names."""
    if len(choices) > 1 and (numbered := _NUMBERED.fullmatch(choices[-1])):
        return re.compile(f"{numbered[1]}[_ ]?[0-9]{{1,2}}")
    if len(choices) > 1 and (lettered := OF_LETTER.fullmatch(choices[-1])):
        return re.compile(re.escape(lettered["stem"]) + ("[A-H]" if lettered["letter"].isupper() else "[a-h]"))
    return None


def _marked(row: DataRow, columns: Sequence[str], task: Task, where: str) -> DataRow:
    """Replace the label by a mark for each choice."""
    text, choices, *labels = row.cells
    assert isinstance(choices, tuple)
    check_choices(choices, where)
    named = columns[: len(choices)]
    given = (text_cell(label, where) for label in labels)
    marks = (marks_of(label, choices, named, task, where) for label in given)
    return replace(row, cells=(text, tuple(choices), *marks))


def _joined(row: DataRow, texts: Sequence[str], choices: Sequence[str], of_lists: bool, table: Table) -> DataRow:
    """Return the row as one text, a tuple of candidates, and the label. Raises `DataError` for a list in place of a
    text, or the reverse."""
    end = len(texts) + len(choices)
    cells = row.cells[:end]
    for name, cell in zip((*texts, *choices), cells, strict=True):
        where = f"{table.path}:{row.line}"
        given = text_cell(cell, where)
        if isinstance(given, tuple) is not (of_lists and name in choices):
            raise _odd(name, given, where)
    words = map(str, cells)
    parts = [ASKED.get(text, text) if name == "question" else text for name, text in zip(texts, words, strict=False)]
    listed = cells[-1] if of_lists else tuple(map(str, cells[len(texts) :]))
    assert isinstance(listed, tuple)
    while not of_lists and len(listed) > 2 and not listed[-1].strip():
        listed = listed[:-1]  # a row with fewer choices than others
    return replace(row, cells=(" ".join(filter(None, parts)), listed, *row.cells[end:]))


def _odd(column: str, cell: Input, where: str) -> DataError:
    is_list = isinstance(cell, tuple)
    return DataError(
        f"the value of {column!r} is {'a list' if is_list else 'not a list'}",
        where=where,
        got=clip(" | ".join(cell) if is_list else str(cell)),
        expected=f"a {'text' if is_list else 'list of texts'}, as in the other rows",
        do="mend the row or remove it",
    )


def _grouped(rows: Iterator[DataRow | Bad], table: Table) -> Iterator[DataRow | Bad]:
    """Merge rows of one candidate each by their text. A text that recurs later is an error.

    A text next to a bad row is bad as a whole: the row may hold one of its candidates.
    """
    begun: dict[str, int] = {}  # text -> line
    for found in _stretches(rows):
        if isinstance(found, Bad):
            yield found
            continue
        group, wrong = found
        try:
            if wrong is not None:
                raise wrong
            whole = _of_group(group, begun, table)
        except DataError as error:
            yield Bad(table.path, group[0].line, error, group[-1].last)
        else:
            yield whole


def _stretches(rows: Iterator[DataRow | Bad]) -> Iterator[tuple[list[DataRow], DataError | None] | Bad]:
    """Yield consecutive rows of the same text, with the error of a bad row between or beside them."""
    group: list[DataRow] = []
    wrong: DataError | None = None
    before: DataError | None = None  # error of the preceding row
    for row in chain(rows, [None]):
        if isinstance(row, Bad):
            yield row
            wrong, before = wrong or row.error, row.error
            continue
        if group and (row is None or row.cells[0] != group[0].cells[0]):
            yield group, wrong
            group, wrong = [], before
        if row is not None:
            group.append(row)
        before = None


def _of_group(group: Sequence[DataRow], begun: dict[str, int], table: Table) -> DataRow:
    """Merge a group into one row: a text with all its candidates."""
    text, line = str(group[0].cells[0]), group[0].line
    if text in begun:
        raise DataError(
            "the candidates of a text are not together",
            where=f"{table.path}:{line}",
            got=f"{clip(text)} again, first in line {begun[text]}",
            expected="all rows of a text, one after another",
            do="sort the file by its texts",
        )
    begun[text] = line
    candidates = group[0].cells[1]
    assert isinstance(candidates, tuple)
    if len(group) == 1 and _LIST.fullmatch(candidates[0]):
        raise DataError(
            "the choices are a list written as text",
            where=f"{table.path}:{line}",
            got=clip(candidates[0]),
            expected="a list of texts, in JSONL, or a column for each choice",
            do="write JSONL; pandas does: df.to_json('FILE.jsonl', orient='records', lines=True)",
        )
    marks = [(str(label), row.line) for row in group for label in row.cells[2:]]
    for mark, place in marks:
        parse_marks(mark, f"{table.path}:{place}")
    cells: list[Cell] = [text, tuple(choice for row in group for choice in text_cell(row.cells[1], ""))]
    cells += [tuple(mark for mark, _ in marks)] if marks else []
    return DataRow(line, tuple(cells), 0, group[-1].last)


def choice_report(splits: Mapping[str, Split]) -> dict[str, Any]:
    """Report the numbers of candidates and of right ones, and the position most often right; as JSON."""
    found: dict[str, Any] = {}
    for name, split in splits.items():
        marks = [example.target for example in split.examples]
        counts, places = (
            sorted(map(len, marks)),
            Counter(place for row in marks for place, mark in enumerate(row) if mark),
        )
        place, most = max(places.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        found[name] = {
            "choices": {"least": counts[0], "median": counts[len(counts) // 2], "most": counts[-1]},
            "right": sum(places.values()),
            "without_right": sum(not any(row) for row in marks),
            "most_frequent_place": place + 1,
            "share_of_that_place": most / len(marks),
        }
    return found


def choice_warnings(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings to read before trusting a score, as sentences."""
    without = {name: counts["without_right"] for name, counts in found.items() if counts["without_right"]}
    if without:
        listed = ", ".join(f"{count:,} of {name}" for name, count in without.items())
        yield f"Rows without a relevant candidate: {listed}; they teach nothing and are left out of the scores."
