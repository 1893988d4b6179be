"""`/openapi.json` and `/docs`: the API as an OpenAPI schema and as a plain HTML page generated from it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graftwork import __version__
from graftwork.serve.predict_route import to_json

REF = "#/components/schemas/"
TASKS = {
    "description": 'A task, a list of tasks, or "*": every task that takes such inputs.',
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
}
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}


def _row(says: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": says,
        "properties": {"task": TASKS} | inputs,
        "required": ["task", *inputs],
        "additionalProperties": False,
    }


ROWS = {
    "Text": _row("A text; of a tagging task it is cut into words.", {"text": TEXT}),
    "Pair": _row("Two texts.", {"text_a": TEXT, "text_b": TEXT}),
    "Words": _row("The words of a text, for tagging.", {"words": TEXTS}),
    "Question": _row("A question and the passage that answers it.", {"question": TEXT, "context": TEXT}),
    "Choices": _row("A text and its choices.", {"text": TEXT, "choices": {**TEXTS, "minItems": 2}}),
}
SCHEMAS: dict[str, Any] = ROWS | {
    "Row": {"oneOf": [{"$ref": REF + name} for name in ROWS]},
    "Rows": {
        "type": "object",
        "description": "Many rows, answered in their order.",
        "properties": {"rows": {"type": "array", "items": {"$ref": REF + "Row"}, "minItems": 1}},
        "required": ["rows"],
        "additionalProperties": False,
    },
    "Answers": {
        "type": "object",
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "answers": {
                            "type": "object",
                            "description": "By task: a label and probabilities, a value, tags, spans, … by its kind.",
                            "additionalProperties": {"type": "object"},
                        },
                        "cut": {"type": "boolean", "description": "Longer than the backbone reads: its end was not."},
                    },
                    "required": ["answers", "cut"],
                },
            }
        },
        "required": ["rows"],
    },
    "Error": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {part: {"type": "string"} for part in ("what", "where", "got", "expected", "do")},
                "required": ["what"],
            }
        },
        "required": ["error"],
    },
}
ERRORS = {
    "400": "No JSON in UTF-8.",
    "401": "The token is missing or wrong.",
    "404": "No such task, or no task that takes such inputs.",
    "408": "The request came too slowly.",
    "413": "Beyond a limit: bytes, rows, answers, characters, words or choices.",
    "415": "Not `application/json`.",
    "422": "JSON of another shape, or inputs that the task does not take.",
    "429": "The queue is full; `Retry-After` says when to come back.",
    "503": "No answer in time, or a task or backbone that could not be opened; `Retry-After` says when to come back.",
}


def _json(says: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _get(
    summary: str, *errors: str, schema: dict[str, Any] | None = None, media: str = "application/json"
) -> dict[str, Any]:
    answered = {"200": {"description": "Answered.", "content": {media: {"schema": schema or {"type": "object"}}}}}
    refused = {code: _json(ERRORS[code], {"$ref": REF + "Error"}) for code in errors}
    return {"get": {"summary": summary, "responses": answered | refused}}


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document."""
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    predict = {
        "summary": "Answer one row or many, for one task, several or all.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [{"$ref": REF + "Row"}, {"$ref": REF + "Rows"}]},
                    "example": {"task": "*", "text": "my card is lost"},
                }
            },
        },
        "responses": {"200": _json("Answered.", {"$ref": REF + "Answers"})}
        | {code: _json(says, {"$ref": REF + "Error"}) for code, says in ERRORS.items()},
    }
    text, place = {"type": "string"}, {"type": "integer", "minimum": 0, "default": 0}
    shape = {"type": "object", "properties": {"text": TEXT, "block": place, "head": place}, "required": ["text"]}
    attention = {
        "summary": "What a head of the backbone attends to in a text: words, and per word its shares of all words.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": shape | {"additionalProperties": False},
                    "example": {"text": "my card is lost", "block": 0, "head": 0},
                }
            },
        },
        "responses": {"200": _json("Answered.", {"type": "object"})}
        | {
            code: _json(ERRORS[code], {"$ref": REF + "Error"})
            for code in ("400", "401", "408", "413", "415", "422", "429", "503")
        },
    }
    paths: dict[str, Any] = {
        "/v1/predict": {"post": predict},
        "/v1/attention": {"post": attention},
        "/v1/tasks": _get("The backbone, and every task with its scores and its price tag.", "401"),
        "/v1/tasks/{name}": _get("A task with its card, its recipe and its leaderboard.", "401", "404", "503")
        | {"parameters": [name]},
        "/livez": _get("Whether the server lives; no token needed."),
        "/readyz": _get("Whether it wants requests (503: not any more); no token needed."),
        "/metrics": _get("For Prometheus.", "401", schema=text, media="text/plain"),
    }
    for path in ("/livez", "/readyz"):
        paths[path]["get"]["security"] = []
    return {
        "openapi": "3.1.0",
        "info": {"title": "Graftwork", "version": __version__, "description": "Many tasks on one frozen backbone."},
        "security": [{"token": []}],
        "paths": paths,
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
    """Return the routes of both, whose contents are built once."""
    schema, html = to_json(openapi()), page()

    async def as_schema(request: Request) -> Response:
        return Response(schema, media_type="application/json")

    async def as_page(request: Request) -> Response:
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(html, media_type="text/html", headers=policy)

    return [Route("/openapi.json", as_schema, methods=["GET"]), Route("/docs", as_page, methods=["GET"])]
