"""`/openapi.json` and `/docs`: the API as an OpenAPI schema and as a plain HTML page generated from it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from graftwork import __version__
from graftwork.serve.event_stream import MEDIA
from graftwork.serve.http_bodies import REF, ROWS, AnsweredRows, AttentionQuestion, ErrorBody, Feedback, ManyRows
from graftwork.serve.pages import fixed_route
from graftwork.serve.predict_route import to_json

MODELS = (*ROWS, ManyRows, AttentionQuestion, Feedback, AnsweredRows, ErrorBody)
SCHEMAS: dict[str, Any] = models_json_schema([(model, "validation") for model in MODELS], ref_template=REF + "{model}")[
    1
]["$defs"]
ERRORS = {
    "400": "No JSON in UTF-8.",
    "401": "The token is missing or wrong.",
    "404": "No such task, or no task that takes such inputs.",
    "406": "Events of more than one answer.",
    "408": "The request came too slowly.",
    "413": "Beyond a limit: bytes, rows, answers, characters, words or choices.",
    "415": "Not `application/json`.",
    "422": "JSON of another shape, or inputs that the task does not take.",
    "429": "The queue is full; `Retry-After` says when to come back.",
    "431": "The head is too long.",
    "500": "An internal error, which is in the server's log under the answer's `X-Request-ID`.",
    "503": "No answer in time, or a task or backbone that could not be opened; `Retry-After` says when to come back.",
    "507": "The feedback file is full.",
}


ANY = {"type": "object"}
EVENTS = (
    'Where `Accept` names it, of one answer: events `text` with `{"text"}`, what the text grew by; then one event, '
    "`answer` with an `AnsweredRow`, or `error` with an `ErrorBody`."
)


def _ref(*names: str) -> dict[str, Any]:
    refs = [{"$ref": REF + name} for name in names]
    return refs[0] if len(refs) == 1 else {"oneOf": refs}


SCHEMAS["Row"] = _ref(*(model.__name__ for model in ROWS)) | {"description": "A row: its inputs say which of these."}


def _told(
    name: str,
    summary: str,
    *errors: str,
    schema: dict[str, Any] = ANY,
    media: str = "application/json",
    unready: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return the description of a method of a path, with its answer, the same answer when `unready`, and its errors."""
    content = {media: {"schema": schema}}
    answers: dict[str, Any] = {"200": {"description": "Answered.", "content": content}}
    if unready:
        answers["503"] = {"description": unready, "content": content}
    for code in errors:
        answers[code] = {"description": ERRORS[code], "content": {"application/json": {"schema": _ref("ErrorBody")}}}
    return {"operationId": name, "summary": summary, "responses": answers} | more


def _body(schema: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document."""
    text, sample = {"type": "string"}, {"text": "my card is lost"}
    predict = _told(
        "predict",
        "Answer one row or many, for one task, several or all.",
        *(code for code in ERRORS if code != "507"),
        schema=_ref("AnsweredRows"),
        requestBody=_body(_ref("Row", "ManyRows"), {"task": "*"} | sample),
    )
    predict["responses"]["200"]["content"][MEDIA] = {"schema": text | {"description": EVENTS}}
    attention = _told(
        "attention",
        "Attention of one head, or of all heads of a block: the words of a text, and per word its weights over all.",
        *(code for code in ERRORS if code not in ("406", "507")),
        requestBody=_body(_ref("AttentionQuestion"), sample | {"block": 0, "head": 0}),
    )
    feedback = _told(
        "feedback",
        "Keep a text with its right label for training, where the server was started with --feedback.",
        *(code for code in ERRORS if code not in ("406", "429")),
        requestBody=_body(_ref("Feedback"), {"task": "mood"} | sample | {"label": "bad", "predicted": "good"}),
    )
    listed = _told("tasks", "The backbone, and every task with its scores and its price tag.", "401")
    task = _told("task", "A task with its card, its recipe and its leaderboard.", "401", "404", "503")
    name = {"name": "name", "in": "path", "required": True, "schema": text}
    lives = _told("alive", "Whether the server lives; no token needed.", unready="It does not answer.", security=[])
    ready = _told("ready", "Whether it wants requests; no token needed.", unready="It is ending.", security=[])
    metrics = _told("metrics", "For Prometheus.", "401", schema=text, media="text/plain")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Graftwork", "version": __version__, "description": "Many tasks on one frozen backbone."},
        "security": [{"token": []}],
        "paths": {
            "/v1/predict": {"post": predict},
            "/v1/attention": {"post": attention},
            "/v1/feedback": {"post": feedback},
            "/v1/tasks": {"get": listed},
            "/v1/tasks/{name}": {"get": task, "parameters": [name]},
            "/livez": {"get": lives},
            "/readyz": {"get": ready},
            "/metrics": {"get": metrics},
        },
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


STYLE = (
    "body{font:1rem/1.5 system-ui;max-width:50rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "pre{overflow:auto}"
)


def page() -> str:
    """Return the document as HTML without scripts or external resources."""
    parts = []
    document = openapi()
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if method not in ("get", "post"):
                continue
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(told['summary'])}</p>")
            if "requestBody" in told:
                content = told["requestBody"]["content"]["application/json"]
                parts.append(f"<pre>{escape(json.dumps(content['example']))}</pre>")
            rows = "".join(
                f"<li><b>{code}</b> {escape(answer['description'])}</li>" for code, answer in told["responses"].items()
            )
            parts.append(f"<ul>{rows}</ul>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"<h3>{name}</h3><pre>{escape(json.dumps(schema, indent=1, ensure_ascii=False))}</pre>")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Graftwork {__version__}</title><style>{STYLE}</style>"
        "<meta name=viewport content='width=device-width'><h1>Graftwork over HTTP</h1>"
        "<p>The same as a schema: <a href=openapi.json>openapi.json</a>. Send <code>Authorization: Bearer TOKEN</code>"
        f" and JSON in UTF-8.</p>{''.join(parts)}</html>"
    )


def document_routes() -> list[Route]:
    """Return the routes of `/openapi.json` and `/docs`, whose contents are built once."""
    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return [
        fixed_route("/openapi.json", to_json(openapi()), {"Content-Type": "application/json"}),
        fixed_route("/docs", page().encode(), policy | {"Content-Type": "text/html; charset=utf-8"}),
    ]
