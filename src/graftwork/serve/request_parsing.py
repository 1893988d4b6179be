"""Parsing and validation of request bodies, so that no invalid row enters a batch with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graftwork.bank.task_version import TaskEntry
from graftwork.core.example import Example
from graftwork.errors import ConfigError
from graftwork.module.abstaining import Abstaining, Threshold
from graftwork.module.inputs import TAKEN_BY, example_of_given
from graftwork.serve.catalogue import Catalogue, inputs_of, longest
from graftwork.serve.http_bodies import ManyRows, checked_row, parsed_body, read_json
from graftwork.serve.http_errors import HttpRefusal
from graftwork.serve.server_limits import ServerLimits

EVERY = "*"  # stands for every task that takes such inputs
CHARACTERS_A_TOKEN = 4
LETTERS_A_BYTE = 6  # at most: U+FDFA, three bytes, is normalised to 18 characters
SPECIAL_TOKENS = 6  # at most: four, and a start token for each of two texts


@dataclass(frozen=True)
class Piece:
    """One row for one task: the unit of the queue."""

    task: str
    example: Example
    tokens: int  # estimate
    threshold: Threshold | None = None  # below which its prediction is withheld


@dataclass(frozen=True)
class RequestRow:
    """One input of a request, with a piece for each of its tasks."""

    given: Mapping[str, Any]
    pieces: Sequence[Piece]
    doubtful: Sequence[str]  # tasks that may truncate it, one per set of roles


def read_request(body: bytes, catalogue: Catalogue, limits: ServerLimits) -> list[RequestRow]:
    """Parse the rows of `POST /v1/predict`. Raises `HttpRefusal`: 400, 404, 413, 422, or 503 for an unopened task."""
    value = read_json(body)
    if not (isinstance(value, dict) and "rows" in value):
        return [read_row(value, "body", 1, catalogue, limits)]
    if isinstance(value["rows"], list) and len(value["rows"]) > limits.rows:
        raise _too_much("rows", len(value["rows"]), limits.rows, "rows", "split the request")
    read: list[RequestRow] = []
    answers, many = 0, parsed_body(ManyRows, value)
    known: dict[str, Threshold | None] = {}
    for i, row in enumerate(many.rows):
        read.append(_abstaining(read_row(row, f"rows[{i}]", i + 1, catalogue, limits), many, known, catalogue))
        answers += len(read[-1].pieces)
        if answers > limits.answers:
            raise _too_much("answers (rows times tasks)", answers, limits.answers, "rows", "split the request")
    return read


def _abstaining(
    row: RequestRow, many: ManyRows, known: dict[str, Threshold | None], catalogue: Catalogue
) -> RequestRow:
    """Return the row with the thresholds of its tasks, each chosen once. Raises `HttpRefusal`, 422."""
    if many.abstain_below is None and many.target_precision is None:
        return row
    try:
        for piece in row.pieces:
            if piece.task not in known:
                asked = Abstaining(many.abstain_below, many.target_precision)
                known[piece.task] = asked.threshold(catalogue.named(piece.task, "task").description)
    except ConfigError as error:
        raise HttpRefusal.of(error, 422, "body") from None
    return replace(row, pieces=[replace(piece, threshold=known[piece.task]) for piece in row.pieces])


def read_row(row: Any, where: str, number: int, catalogue: Catalogue, limits: ServerLimits) -> RequestRow:
    """Return the `number`th row of a request, which is at `where`. Raises as `read_request`."""
    given = dict(checked_row(row, where))
    asked = given.pop("task")
    _check_sizes(given, where, limits)
    tasks = _tasks(asked, frozenset(given), where, catalogue)
    examples: dict[tuple[str, ...], Example] = {}  # one per set of roles: their tasks share its computation
    tokens: dict[int | None, int] = {}
    pieces, doubtful, most = [], {}, _most_tokens(given)
    for task in tasks:
        limit = longest(task)
        if task.roles not in examples:
            examples[task.roles] = _example(task, number, given, where)
        if limit not in tokens:
            tokens[limit] = tokens_of(given, limit)
        if limit is not None and most > limit:
            doubtful[task.roles] = task.name
        pieces.append(Piece(task.name, examples[task.roles], tokens[limit]))
    return RequestRow(given, pieces, tuple(doubtful.values()))


def _tasks(asked: Sequence[str], names: frozenset[str], where: str, catalogue: Catalogue) -> list[TaskEntry]:
    """Return the tasks of a row without duplicates."""
    if list(asked) != [EVERY]:
        return [_fitting(name, names, where, catalogue) for name in dict.fromkeys(asked)]
    found = catalogue.taking[names]
    if not found:
        raise HttpRefusal(404, f"no task takes {' and '.join(sorted(names))}", where=where, do="see GET /v1/tasks")
    return [catalogue.tasks[name] for name in found]


def _fitting(name: str, names: frozenset[str], where: str, catalogue: Catalogue) -> TaskEntry:
    task = catalogue.named(name, f"{where}.task")
    if task.roles not in TAKEN_BY[names]:
        expected = " or ".join(" and ".join(inputs) for inputs in inputs_of(task))
        if not expected:
            raise HttpRefusal(
                422,
                f"the task {name!r} reads files, which cannot be sent over HTTP",
                where=where,
                do="use graft predict on the machine that has the files",
            )
        got = " and ".join(sorted(names))
        raise HttpRefusal(422, f"the task {name!r} takes other inputs", where=where, got=got, expected=expected)
    return task


def _check_sizes(given: Mapping[str, Any], where: str, limits: ServerLimits) -> None:
    sizes = {
        "characters": (_characters(given), limits.characters),
        "words": (len(given.get("words", ())), limits.words),
        "choices": (len(given.get("choices", ())), limits.choices),
    }
    for noun, (size, most) in sizes.items():
        if size > most:
            raise _too_much(noun, size, most, where, "shorten the row")


def _example(task: TaskEntry, number: int, given: Mapping[str, Any], where: str) -> Example:
    try:
        return example_of_given(task.roles, number, given)
    except ConfigError as error:
        raise HttpRefusal.of(error, 422, where) from None


def tokens_of(given: Mapping[str, Any], longest: int | None) -> int:
    """Estimate the tokens of a row for a backbone that reads up to `longest` per sequence; 1 without a backbone."""
    if longest is None:
        return 1
    if "choices" in given:
        text = len(given["text"])
        return sum(min(longest, _tokens(text + len(choice))) for choice in given["choices"])
    whole = _tokens(_characters(given))
    return min(longest, whole) if given.keys() <= {"text", "text_a", "text_b"} else whole


def _characters(given: Mapping[str, Any]) -> int:
    return sum(len(value) if isinstance(value, str) else sum(map(len, value)) for value in given.values())


def _most_tokens(given: Mapping[str, Any]) -> int:
    """Return an upper bound of the tokens of these inputs: an ASCII character makes at most one token. Any other may be
    split into its bytes or normalised to several characters, at worst 18 for 3 bytes."""
    texts = [text for value in given.values() for text in ([value] if isinstance(value, str) else value)]
    return SPECIAL_TOKENS + sum(
        len(text) if text.isascii() else LETTERS_A_BYTE * len(text.encode("utf-8", "surrogatepass")) for text in texts
    )


def _tokens(characters: int) -> int:
    return characters // CHARACTERS_A_TOKEN + 3  # two of them special tokens


def _too_much(noun: str, size: int, most: int, where: str, do: str) -> HttpRefusal:
    return HttpRefusal(413, f"too many {noun}", where=where, got=f"{size:,}", expected=f"at most {most:,}", do=do)
