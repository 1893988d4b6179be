"""Bodies of requests and answers as pydantic models, which check what is sent and from which the schema is made."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, RootModel, Tag, ValidationError
from pydantic_core import from_json

from graftwork.errors import clip
from graftwork.serve.http_errors import HttpRefusal

SAMPLE = '{"task": …, "text": …}'
Given = Annotated[str, Field(min_length=1)]
TaskNames = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(
        lambda asked: [asked] if isinstance(asked, str) else asked,
        json_schema_input_type=str | Annotated[list[str], Field(min_length=1)],
    ),
    Field(description='A task, a list of tasks, or "*": every task that takes such inputs.'),
]
Place = Annotated[int, Field(ge=0)]


class TextRow(BaseModel, extra="forbid", strict=True):
    """A text; of a tagging task it is cut into words."""

    task: TaskNames
    text: Given


class PairRow(BaseModel, extra="forbid", strict=True):
    """Two texts."""

    task: TaskNames
    text_a: Given
    text_b: Given


class WordsRow(BaseModel, extra="forbid", strict=True):
    """The words of a text, for tagging."""

    task: TaskNames
    words: Annotated[list[Given], Field(min_length=1)]


class QuestionRow(BaseModel, extra="forbid", strict=True):
    """A question and the passage that answers it."""

    task: TaskNames
    question: Given
    context: Given


class ChoicesRow(BaseModel, extra="forbid", strict=True):
    """A text and its choices."""

    task: TaskNames
    text: Given
    choices: Annotated[list[Given], Field(min_length=2)]


ROWS = (TextRow, PairRow, WordsRow, QuestionRow, ChoicesRow)
BY_INPUTS = {frozenset(model.model_fields) - {"task"}: model.__name__ for model in ROWS}
INPUTS = "; ".join(" and ".join(sorted(names)) for names in BY_INPUTS)


def _of_inputs(row: Any) -> str | None:
    return BY_INPUTS.get(frozenset(row) - {"task"}) if isinstance(row, dict) else None


class Row(RootModel[Any]):
    """A row: the inputs say which of these."""

    root: Annotated[
        Annotated[TextRow, Tag("TextRow")]
        | Annotated[PairRow, Tag("PairRow")]
        | Annotated[WordsRow, Tag("WordsRow")]
        | Annotated[QuestionRow, Tag("QuestionRow")]
        | Annotated[ChoicesRow, Tag("ChoicesRow")],
        Discriminator(_of_inputs, custom_error_type="inputs", custom_error_message=f"Input should be {INPUTS}"),
    ]


class ManyRows(BaseModel, extra="forbid", strict=True):
    """Many rows, answered in their order."""

    rows: Annotated[list[Row], Field(min_length=1)]


class AttentionQuestion(BaseModel, extra="forbid", strict=True):
    """A text, and the block and the head whose attention weights are asked for, both counted from 0."""

    text: Given
    block: Place = 0
    head: Place = 0


class AnsweredRow(BaseModel):
    """The answers to a row."""

    answers: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By task: a label and probabilities, a value, tags, spans, … by its kind."),
    ]
    cut: Annotated[bool, Field(description="Longer than the backbone reads: its end was not.")]


class AnsweredRows(BaseModel):
    """The answers to all rows, in order."""

    rows: list[AnsweredRow]


class ErrorParts(BaseModel):
    """What is wrong and where, what was sent and is expected, and what to do."""

    what: str
    where: str = ""
    got: str = ""
    expected: str = ""
    do: str = ""


class ErrorBody(BaseModel):
    """A refused request."""

    error: ErrorParts


M = TypeVar("M", bound=BaseModel)


def read_json(body: bytes) -> Any:
    """Parse a body. Raises `HttpRefusal`, 400, unless it is JSON in UTF-8."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        what = "the body is not JSON in UTF-8"
        raise HttpRefusal(400, what, where="body", got=str(error), do=f"send JSON: {SAMPLE}") from None


def checked(model: type[M], value: Any) -> M:
    """Return the parsed body `value` as a `model`. Raises `HttpRefusal`, 422, for the first thing that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    place = [part for part in first["loc"] if part not in BY_INPUTS.values()]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in place)
    raise HttpRefusal(
        422,
        "the body has another shape",
        where=where[1:] if where.startswith(".rows") else f"body{where}",
        got="nothing" if first["type"] == "missing" else _kind(first["input"]),
        expected=first["msg"].removeprefix("Input should be "),
    )


def _kind(given: Any) -> str:
    if isinstance(given, dict) and given:
        return f"an object of {', '.join(clip(name, 40) for name in list(given)[:10])}"
    told = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return "nothing" if given in ([], {}, "") else told.get(type(given), "a number")
