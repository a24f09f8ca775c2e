"""The description of the API, for programs (OpenAPI) and for people (/docs). Both come from the routes."""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator
from html import escape
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from sketchbandit._version import __version__
from sketchbandit_service.api.answer_models import ErrorAnswer
from sketchbandit_service.api.request_models import KeyedDecideRequest
from sketchbandit_service.api.routing import Route, Table
from sketchbandit_service.http.messages import JSON

_TITLE = "sketchbandit decision service"
_SUMMARY = "Chooses arms, takes rewards whenever they come, and never loses an acknowledged reward."
_SCHEMAS = "#/components/schemas/"
_PARAMETERS = {
    "name": "Name of the bandit.",
    "arm": "Id of a stored arm. An id with slashes can be sent to POST /arms/remove.",
    "candidate": "Name of the candidate.",
    "action": "Name of the action. A name with slashes can be sent to POST /actions/retire.",
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    ":root{color-scheme:light dark}"
    "code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.6rem;border:1px solid #8886}"
    "section{border-top:1px solid #8886;margin-top:2rem}table{border-collapse:collapse}"
    "td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}h2 code{font-size:1.1rem}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
DOCS_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


# -- for programs ---------------------------------------------------------------------------------------


def openapi(table: Table) -> dict[str, object]:
    """The description of all routes in OpenAPI 3.1."""
    paths: dict[str, dict[str, object]] = {}
    for route in table.routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "summary": _SUMMARY, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": _schemas(table),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _schemas(table: Table) -> dict[str, Any]:
    models: dict[type[BaseModel], JsonSchemaMode] = {
        KeyedDecideRequest: "validation",
        ErrorAnswer: "serialization",
    }
    for route in table.routes:
        if route.body is not None:
            models[route.body] = "validation"
        if not isinstance(route.answer, str):
            models[route.answer] = "serialization"
    found: dict[str, Any] = models_json_schema([*models.items()], ref_template=_SCHEMAS + "{model}")[1][
        "$defs"
    ]
    return dict(sorted(found.items()))


def _operation(route: Route) -> dict[str, object]:
    described: dict[str, object] = {
        "operationId": route.handle.__name__,
        "summary": (route.handle.__doc__ or "").strip(),
        "parameters": [*_in_path(route), *route.details.get("parameters", ())],
        "responses": {str(status): _response(model) for status, model in _answers(route)},
    }
    if route.body is not None:
        content = {JSON: {"schema": _ref(route.body)}, **route.details.get("content", {})}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _in_path(route: Route) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 128}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema, "description": _PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _answers(route: Route) -> Iterator[tuple[int, type[BaseModel] | str]]:
    """The answers of the route, by status."""
    yield 200, route.answer
    if "new" in route.details:
        yield 201, route.answer
    body = () if route.body is None else (413, 415)
    asked = () if route.scope is None else (401, 422, 429)
    for status in sorted({400, 403, 503, *route.statuses, *body, *asked}):
        yield status, ErrorAnswer


def _response(answer: type[BaseModel] | str) -> dict[str, object]:
    if isinstance(answer, str):
        return {"description": "Text", "content": {answer: {"schema": {"type": "string"}}}}
    told = (answer.__doc__ or "").partition("\n")[0]
    return {"description": told, "content": {JSON: {"schema": _ref(answer)}}}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"{_SCHEMAS}{model.__name__}"}


# -- for people -----------------------------------------------------------------------------------------


def docs(table: Table) -> bytes:
    """One page for people. It loads no other files."""
    schemas = _schemas(table)
    listed = "".join(
        f'<li><a href="#{_anchor(route)}"><code>{_named(route)}</code></a></li>' for route in table.routes
    )
    sections = "".join(_section(route, schemas) for route in table.routes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>API of the {_TITLE}</title><style>{_STYLE}</style></head><body><h1>API of the {_TITLE}</h1>"
        f"<p>Version {__version__}. {_SUMMARY} Bodies are JSON. Every answer that is not 2xx is "
        '<code>{"error": {"code": ..., "message": ...}}</code>. If the server uses tokens, send '
        '<code>Authorization: Bearer TOKEN</code>. For programs: <a href="/openapi.json">OpenAPI</a>. '
        f'<a href="/">The dashboard</a>.</p><ul>{listed}</ul>{sections}</body></html>'
    ).encode()


def _section(route: Route, schemas: dict[str, Any]) -> str:
    scope = "no token" if route.scope is None else f"scope {route.scope}"
    parts = [f'<section id="{_anchor(route)}"><h2><code>{_named(route)}</code></h2>']
    parts.append(f"<p>{escape((route.handle.__doc__ or '').strip())} <small>({scope})</small></p>")
    parameters = {one["name"]: one for one in (*_in_path(route), *route.details.get("parameters", ()))}
    parts.append(_fields("Parameters", parameters, ()))
    if route.body is not None:
        schema = schemas[route.body.__name__]
        parts.append(_fields("Body", schema["properties"], schema.get("required", ())))
        parts += [f"<pre>{escape(json.dumps(example))}</pre>" for example in schema.get("examples", ())]
    if not isinstance(route.answer, str):
        parts.append(_fields("Answer", schemas[route.answer.__name__]["properties"], ()))
    statuses = ", ".join(f"{status} {HTTPStatus(status).phrase}" for status, _ in _answers(route))
    parts.append(f"<p><small>{statuses}</small></p></section>")
    return "".join(parts)


def _fields(title: str, fields: dict[str, Any], required: Collection[str]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field))}"
        f"{', required' if name in required else ''}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in fields.items()
    )
    return f"<h3>{title}</h3><table>{rows}</table>" if rows else ""


def _kind(field: dict[str, Any]) -> str:
    """The type of a field in a word or two."""
    field = field.get("schema", field)
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(_kind, field["anyOf"])))
    if "$ref" in field:
        return str(field["$ref"]).removeprefix(_SCHEMAS)
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _named(route: Route) -> str:
    return escape(f"{route.method} {route.path}")


def _anchor(route: Route) -> str:
    return route.handle.__name__
