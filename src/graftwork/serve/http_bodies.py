"""Bodies of requests and responses as pydantic models, which validate requests and give the schema of the API."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic_core import from_json

from graftwork.errors import clip
from graftwork.serve.http_errors import HttpRefusal

REF = "#/components/schemas/"
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


def _row(name: str, says: str, **inputs: Any) -> type[BaseModel]:
    fields: dict[str, Any] = {field: (kind, ...) for field, kind in ({"task": TaskNames} | inputs).items()}
    return create_model(name, __doc__=says, __config__=ConfigDict(extra="forbid", strict=True), **fields)


ROWS = (
    _row("Text", "A text; of a tagging task it is cut into words.", text=Given),
    _row("Pair", "Two texts.", text_a=Given, text_b=Given),
    _row("Words", "The words of a text, for tagging.", words=Annotated[list[Given], Field(min_length=1)]),
    _row("Question", "A question and the passage that answers it.", question=Given, context=Given),
    _row("Choices", "A text and its choices.", text=Given, choices=Annotated[list[Given], Field(min_length=2)]),
)
BY_INPUTS = {frozenset(model.model_fields) - {"task"}: model for model in ROWS}
INPUTS = "; ".join(" and ".join(sorted(names)) for names in BY_INPUTS)


Share = Annotated[float, Field(ge=0, le=1)]


class ManyRows(BaseModel, extra="forbid", strict=True):
    """Many rows, answered in their order."""

    abstain_below: Annotated[
        Share | None,
        Field(description="Withhold less probable answers: their prediction is null, with `best_guess` beside."),
    ] = None
    target_precision: Annotated[
        Share | None,
        Field(description="Withhold answers so that this share of the others is right, by validation rows."),
    ] = None
    rows: Annotated[list[Annotated[Any, WithJsonSchema({"$ref": f"{REF}Row"})]], Field(min_length=1)]


class AttentionQuestion(BaseModel, extra="forbid", strict=True):
    """A text, and the block and the head whose attention weights are asked for, both counted from 0.

    Without `head`, all heads of the block are meant; with `task`, the network of that task instead of the backbone.
    """

    text: Given
    block: Place = 0
    head: Place | None = 0
    task: Given | None = None


class Feedback(BaseModel, extra="forbid", strict=True):
    """A text or pair that a task predicted, the right label or value, and the prediction."""

    task: Given
    text: Given | None = None
    text_a: Given | None = None
    text_b: Given | None = None
    label: str | list[str] | float
    predicted: str | list[str] | float | None = None


class AnsweredRow(BaseModel):
    """The answers to a row."""

    answers: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By task: a label and probabilities, a value, tags, spans, a text, … by its kind."),
    ]
    cut: Annotated[bool, Field(description="Longer than the backbone reads: its end was not.")]


class AnsweredRows(BaseModel):
    """The answers to all rows, in order."""

    rows: list[AnsweredRow]


class ErrorParts(BaseModel):
    """The parts of an error: what is wrong and where, what was sent, what is expected, and what to do."""

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


def parsed_body(model: type[M], value: Any, at: str = "body") -> M:
    """Return the parsed value at the place `at` as a `model`. Raises `HttpRefusal`, 422, for the first fault in it."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    where = at + "".join(f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in first["loc"])
    where = "rows" if where == "body.rows" else where  # as in the place of a row, rows[0]
    got = "nothing" if first["type"] == "missing" else _kind(first["input"])
    expected = first["msg"].removeprefix("Input should be ")
    raise HttpRefusal(422, "the body does not match the schema", where=where, got=got, expected=expected)


def checked_row(row: Any, at: str) -> dict[str, Any]:
    """Return the tasks and the inputs of a row, by name. Raises `HttpRefusal`, 422."""
    model = BY_INPUTS.get(frozenset(row) - {"task"}) if isinstance(row, dict) else None
    if model is None:
        raise HttpRefusal(
            422, "no sort of task takes this combination of inputs", where=at, got=_kind(row), expected=INPUTS
        )
    return vars(parsed_body(model, row, at))


def _kind(given: Any) -> str:
    if isinstance(given, dict) and given:
        return f"an object of {', '.join(clip(name, 40) for name in list(given)[:10])}"
    told = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return "nothing" if given in ([], {}, "") else told.get(type(given), "a number")
