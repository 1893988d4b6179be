"""`POST /v1/feedback`: a text with the label that a person gave it, kept as a line that `graft train` reads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from graftwork.bank.task_version import TaskEntry
from graftwork.core.task import Task
from graftwork.errors import DataError, StorageError
from graftwork.registry import kinds
from graftwork.serve.http_bodies import Feedback, parsed_body, read_json
from graftwork.serve.http_errors import HttpRefusal
from graftwork.serve.predict_route import read_body, to_json
from graftwork.serve.request_parsing import read_row
from graftwork.serve.service import Service, without_places

LABELLED = ("classification", "multilabel", "regression")  # kinds whose target is in a column `label`


def takes_feedback(service: Service, task: TaskEntry) -> bool:
    """Return whether labels of this task are kept."""
    return service.feedback is not None and task.description["task"]["kind"] in LABELLED


async def feedback(service: Service, request: Request) -> Response:
    """Keep a labelled text. Raises `HttpRefusal`: 404 without a file or for an unknown task, 422, 503, 507."""
    asked = parsed_body(Feedback, read_json(await read_body(service, request)))
    if service.feedback is None:
        raise HttpRefusal(404, "this server keeps no feedback", do="start it with graft serve --feedback FILE")
    task = service.catalogue.named(asked.task, "task")
    row = kept_row(service, task, asked)
    try:
        await run_in_threadpool(service.feedback.add, row)
    except StorageError as error:
        raise HttpRefusal(503, without_places(error.message), where="feedback", retry_after=60) from None
    return Response(to_json({"kept": row}), media_type="application/json")


def kept_row(service: Service, task: TaskEntry, asked: Feedback) -> dict[str, Any]:
    """Return the line of a labelled text. Raises `HttpRefusal`, 422, for another label than the task's."""
    kind = task.description["task"]["kind"]
    if kind not in LABELLED:
        raise HttpRefusal(422, "no feedback is kept of this task", where="task", got=kind, expected=", ".join(LABELLED))
    given = {"text": asked.text, "text_a": asked.text_a, "text_b": asked.text_b}
    inputs = {name: text for name, text in given.items() if text is not None}
    read_row({"task": task.name} | inputs, "body", 1, service.catalogue, service.limits)
    question = Task.from_question(task.name, task.description["task"])
    label = tuple(asked.label) if isinstance(asked.label, list) else str(asked.label)
    try:
        parsed = kinds.get(kind).parse(label, question, "")
    except DataError as error:
        raise HttpRefusal(422, error.what, where="body.label", got=error.got, expected=error.expected) from None
    said = {"task": task.name.partition("@")[0], "version": task.version} | inputs
    return said | {
        "label": parsed,
        "predicted": asked.predicted,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
