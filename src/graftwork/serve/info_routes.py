"""Routes for the state of the server and of its tasks."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from graftwork.bank.task_version import BOARD, TaskEntry
from graftwork.compare.advice import advice
from graftwork.compare.sentences import Board, search_line, verdicts, warnings
from graftwork.errors import GraftworkError
from graftwork.module.module_files import read_self_test
from graftwork.module.predict_file import inputs_as_json
from graftwork.module.task_module import stored_examples
from graftwork.serve.catalogue import inputs_of, told_of
from graftwork.serve.feedback_route import takes_feedback
from graftwork.serve.predict_route import to_json
from graftwork.serve.service import Service

EXAMPLES = 4  # inputs of the self-test that the page offers to try


async def alive(service: Service, request: Request) -> Response:
    """`GET /livez`: 200 if the event loop and the batch thread run, else 503."""
    lives = service.batcher.alive
    return json_response({"alive": lives}, 200 if lives else 503)


async def ready(service: Service, request: Request) -> Response:
    """`GET /readyz`: 503 once the server is shutting down. Before the tasks are open no connection is accepted.

    A task that could not be opened, or an unreadable folder, is reported but does not make the server unready.
    """
    content: dict[str, Any] = {
        "ready": service.ready,
        "draining": service.draining,
        "tasks": len(service.catalogue.tasks),
        "failed": sorted(service.catalogue.failed),
    }
    if service.trouble:
        content["trouble"] = "the bank's folder cannot be read; tasks that are open already are still served"
    return json_response(content, 200 if service.ready else 503)


def metrics(service: Service, request: Request) -> Response:
    """`GET /metrics`, for Prometheus."""
    return Response(service.measures.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def tasks(service: Service, request: Request) -> Response:
    """`GET /v1/tasks`: the backbone, and every task with its scores and its price tag."""
    catalogue = service.catalogue
    if service.listing is None or service.listing[0] is not catalogue:  # long for many tasks: built once
        failed = [{"name": name, "failed": why} for name, why in sorted(catalogue.failed.items())]
        listed = [told_of(task) | {"feedback": takes_feedback(service, task)} for task in catalogue.tasks.values()]
        service.listing = catalogue, to_json({"bank": _bank(service), "tasks": listed + failed})
    return Response(service.listing[1], media_type="application/json")


def task(service: Service, request: Request) -> Response:
    """`GET /v1/tasks/{name}`: a task with its card, recipe, other versions and the leaderboard of its comparison."""
    found = service.catalogue.named(request.path_params["name"], "path")
    read = _read(found.folder / BOARD) if found.has_board else None
    board = None
    with suppress(ValueError, RecursionError):  # damaged: the task is shown without it
        board = None if read is None else json.loads(read)
    more = {
        "feedback": takes_feedback(service, found),
        "examples": examples_of(found),
        "recipe": found.description.get("recipe"),
        "run": found.description.get("run"),
        "versions": [told_of(other) for other in service.catalogue.others(found)],
        "card": _read(found.folder / "README.md"),
        "board": board,
        "board_in_words": None if board is None else in_words(board),
    }
    return json_response(told_of(found) | more)


def examples_of(task: TaskEntry) -> list[dict[str, Any]]:
    """Return the inputs of the task's self-test as a client may send them; none if they are files or can't be read."""
    try:
        stored = stored_examples(read_self_test(task.folder), task.folder)[:EXAMPLES]
    except (GraftworkError, OSError, KeyError, TypeError, ValueError):
        return []
    found = [inputs_as_json(example) for example in stored]
    taken = [set(names) for names in inputs_of(task)]
    return [given for given in found if set(given) in taken]


def in_words(board: Board) -> dict[str, Any]:
    """Return a board's advice, verdicts, data warnings and price of the search, as text.

    Empty for a foreign or damaged board, whose rows are still shown.
    """
    try:
        return {
            "answer": " ".join(advice(board)),
            "verdicts": verdicts(board),
            "warnings": warnings(board),
            "search": search_line(board),
        }
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration):
        return {}


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(to_json(content), status, media_type="application/json")


def _bank(service: Service) -> dict[str, Any]:
    card = service.bank.card
    return {
        "backbone": None if card is None else {"id": card.id, "revision": card.revision, "blocks": card.blocks},
        "precision": service.bank.precision,
        "tasks": len(service.catalogue.tasks),
    }


def _read(path: Path) -> str | None:
    """Read a text file of the bank; None if it is missing or unreadable."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return None
