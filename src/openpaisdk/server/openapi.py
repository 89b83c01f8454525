"""The OpenAPI description, worked out from the endpoints themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from openpaisdk.server.http import Endpoint
from openpaisdk.version import __version__

_REF = "#/components/schemas/"
_TITLES = {
    304: "Not changed since",
    400: "The request is not valid, or what it names does not exist",
    401: "No token, or one that is not valid",
    403: "Not allowed",
    404: "Not found",
    409: "The name is taken, or the state does not allow it",
    413: "The body is too large",
    416: "No such range",
    429: "Too many requests",
    501: "Not available on this server",
    503: "Cannot be done at the moment; try again",
}


class Failure(msgspec.Struct, omit_defaults=True):
    """Every error: a code for programs, a sentence for people, and what to do next."""

    message: str
    code: str | msgspec.UnsetType = msgspec.UNSET
    hint: str | msgspec.UnsetType = msgspec.UNSET


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """An OpenAPI 3.1 document; of an endpoint with several paths it shows the first."""
    endpoints = list(endpoints)
    kinds = [Failure]
    for found in endpoints:
        kinds += [kind for kind in (found.returns, found.query, found.body) if _has_schema(kind)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF + "{name}")
    by_kind = {id(kind): schema for kind, schema in zip(kinds, schemas)}
    paths: dict[str, Any] = {}
    for found in endpoints:
        path = re.sub(r":path\}", "}", found.paths[0])
        method = "get" if found.method == "*" else found.method.lower()
        paths.setdefault(path, {})[method] = _operation(found, path, by_kind, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "openpaisdk server", "version": __version__, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}, {"url": "/rest-server"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "user name and application token",
                },
            },
        },
    }


def _has_schema(kind: Any) -> bool:
    return kind not in (None, bytes, str)


def _operation(
    found: Endpoint, path: str, by_kind: dict[int, Any], components: dict[str, Any]
) -> dict[str, Any]:
    handler: Any = found.handler
    module = handler.__module__.rpartition(".")[2]
    described: dict[str, Any] = {
        "operationId": f"{module}.{handler.__name__}",
        "tags": [module],
        "summary": found.summary,
        "responses": _responses(found, path, by_kind),
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    if found.query is not None:
        parameters += _query_parameters(_resolve(by_kind[id(found.query)], components))
    parameters += [
        {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
        for name, text in found.headers.items()
    ]
    if parameters:
        described["parameters"] = parameters
    if found.body is not None:
        described["requestBody"] = _request_body(found, by_kind)
    if found.guard != "none":
        described["security"] = [{"bearer": []}] + ([{"basic": []}] if found.guard == "check" else [])
    return described


def _resolve(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    found: dict[str, Any] = components[reference[len(_REF) :]] if reference else schema
    return found


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": inner}
        for name, inner in schema.get("properties", {}).items()
    ]


def _request_body(found: Endpoint, by_kind: dict[int, Any]) -> dict[str, Any]:
    if found.body is bytes:
        content: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string"}}}
    elif found.body is str:
        content = {found.media: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": by_kind[id(found.body)]}}
    return {"required": True, "content": content}


def statuses(found: Endpoint) -> list[int]:
    """Every error status that an endpoint may answer with."""
    expected = {429, *found.errors}
    if found.guard != "none":
        expected.add(401)
    if found.guard in ("user", "admin", "check-admin"):
        expected.add(403)
    if "{" in found.paths[0]:
        expected.add(404)
    if found.query is not None:
        expected.add(400)
    if found.body is not None:
        expected |= {400, 413}
    if found.method in ("POST", "PUT", "DELETE"):
        expected.add(503)
    return sorted(expected)


def _responses(found: Endpoint, path: str, by_kind: dict[int, Any]) -> dict[str, Any]:
    schema = by_kind.get(id(found.returns), {"type": "string"} if found.returns is str else {})
    media = "application/json" if found.body is str else found.media
    answers: dict[str, Any] = {
        str(found.status): {"description": "Done", "content": {media: {"schema": schema}}}
    }
    if "Range" in found.headers:
        answers["206"] = {**answers[str(found.status)], "description": "The part that was asked for"}
    for status in statuses(found):
        media = "text/html" if status == 429 else "application/json"
        shown: dict[str, Any] = {"type": "string"} if status == 429 else {"$ref": _REF + "Failure"}
        if status == 404 and path.endswith("/job-attempts"):
            shown = {"anyOf": [shown, {"type": "null"}]}  # OpenPAI answers a bare null there
        answers.setdefault(
            str(status), {"description": _TITLES[status], "content": {media: {"schema": shown}}}
        )
    return answers
