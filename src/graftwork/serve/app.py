"""The application: every route of the server."""

from __future__ import annotations

from functools import partial

from starlette.routing import Route, Router

from graftwork.serve import predicting, telling
from graftwork.serve.attention import Attending
from graftwork.serve.documents import document_routes
from graftwork.serve.gate import Gate
from graftwork.serve.pages import page_routes
from graftwork.serve.service import Service


def application(service: Service, token: str) -> Gate:
    """An ASGI application over `service`; clients show `token`."""
    answering = {
        ("POST", "/v1/predict"): predicting.predict,
        ("POST", "/v1/attention"): Attending().answer,
        ("GET", "/v1/tasks"): telling.tasks,
        ("GET", "/v1/tasks/{name}"): telling.task,
        ("GET", "/livez"): telling.alive,
        ("GET", "/readyz"): telling.ready,
        ("GET", "/metrics"): telling.metrics,
    }
    routes = [Route(path, partial(answer, service), methods=[method]) for (method, path), answer in answering.items()]
    routes += [*document_routes(), *page_routes()]
    return Gate(Router(routes, redirect_slashes=False), service, token, [route.path for route in routes])
