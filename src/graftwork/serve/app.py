"""The ASGI application with all routes of the server."""

from __future__ import annotations

from functools import partial

from starlette.routing import Route, Router

from graftwork.serve import info_routes, predict_route
from graftwork.serve.attention_route import Attending
from graftwork.serve.feedback_route import feedback
from graftwork.serve.middleware import Gate
from graftwork.serve.openapi import document_routes
from graftwork.serve.pages import page_routes
from graftwork.serve.service import Service


def application(service: Service, token: str) -> Gate:
    """Build the ASGI application of `service`, whose clients must send `token`."""
    answering = {
        ("POST", "/v1/predict"): predict_route.predict,
        ("POST", "/v1/attention"): Attending().answer,
        ("POST", "/v1/feedback"): feedback,
        ("GET", "/v1/tasks"): info_routes.tasks,
        ("GET", "/v1/tasks/{name}"): info_routes.task,
        ("GET", "/livez"): info_routes.alive,
        ("GET", "/readyz"): info_routes.ready,
        ("GET", "/metrics"): info_routes.metrics,
    }
    routes = [Route(path, partial(answer, service), methods=[method]) for (method, path), answer in answering.items()]
    routes += [*document_routes(), *page_routes()]
    return Gate(Router(routes, redirect_slashes=False), service, token, [route.path for route in routes])
