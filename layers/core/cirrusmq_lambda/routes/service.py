"""The service's health, its OpenAPI document, a page to try it, and the default route."""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from cirrusmq import __version__
from cirrusmq.base.errors import NotFound
from cirrusmq.base.formats import WRITTEN_FORMAT
from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda.answers.service import Endpoints, Health, InProcess
from cirrusmq_lambda.direct import refuse_path
from cirrusmq_lambda.http import Request, Route
from cirrusmq_lambda.replies import File, Ok, Reply, envelope

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API \u00b7 CirrusMQ</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="api/swagger-ui.css">
<style>
body { margin: 0; background: #fff; }
header { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; padding: 10px 20px;
  background: #f6f7f9; border-bottom: 1px solid #d9dde3; font: 15px system-ui, sans-serif; }
header a { color: #0b5cad; }
header a:first-child { font-weight: 700; text-decoration: none; }
@media (prefers-color-scheme: dark) {
  html { background: #14181e; }
  /* The page of the bundle has light colours alone: all are turned, and their hues turned back. */
  body { filter: invert(0.92) hue-rotate(180deg); }
}
</style>
</head>
<body>
<header>
<a href="../index.html">CirrusMQ</a>
<a href="index.html">Manual</a>
<a href="../console/index.html">Console</a>
<a href="../openapi.json">openapi.json</a>
</header>
<div id="page"></div>
<script src="api/swagger-ui-bundle.js"></script>
<script>
// The page knows 3.0 and refuses 3.1 by its number, but shows this document in full.
fetch("../openapi.json").then(answer => answer.json()).then(spec => SwaggerUIBundle({
  spec: {...spec, openapi: "3.0.3", servers: [{url: new URL("..", location).href.slice(0, -1)}]},
  dom_id: "#page", persistAuthorization: true
}));
</script>
</body>
</html>
"""
AssetType: TypeAlias = Literal["text/css", "text/javascript"]
ASSETS: dict[str, AssetType] = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
"""Files of the page, with their media types."""
_PAGE_FOLDERS = ("/console/", "/docs/")


def show_health(request: Request) -> Ok[Health]:
    """Returns the service's health and its time."""
    core = request.core
    time = format_time(core.now_ms())
    return Ok(Health(status="ok", version=__version__, time=time, time_scale=core.clock.scale))


def show_endpoints(request: Request) -> Ok[Endpoints]:
    """Returns the functions' own URLs, and the tables that clients may call themselves.

    Only with a key: the API's throttle is not for the URLs.
    """
    caller, core = request.caller, request.core
    told = os.environ.get("DIRECT_URLS", "")
    named = [entry.partition("=") for entry in told.split(",") if entry]
    urls: dict[str, Any] = {name: url.rstrip("/") for name, _, url in named}
    shown = Endpoints(**urls)
    if core.settings.offers_in_process:
        shown.in_process = InProcess(
            region=os.environ.get("AWS_REGION", ""),
            directory=core.tables.directory,
            messages=core.tables.messages,
            account=caller.account,
            format=WRITTEN_FORMAT,
        )
    return Ok(shown)


def show_openapi(request: Request) -> File[Literal["application/json"]]:
    """Returns the OpenAPI document."""
    return File("application/json", _document().encode())


def show_docs(request: Request) -> File[Literal["text/html"]]:
    """Returns a page to try the API; this service serves its scripts, too."""
    return File("text/html", _PAGE.encode(), {"Content-Type": "text/html; charset=utf-8"})


def show_asset(request: Request) -> File[AssetType]:
    """Returns a file of the page to try the API. Raises NotFound."""
    name = request.path("asset")
    if name not in ASSETS:
        raise NotFound
    content = (_asset_folder() / name).read_bytes()
    return File(ASSETS[name], content, {"Cache-Control": "max-age=86400"})


class PageAddress(Reply):
    """A redirect to a folder's page, whose address has no slash at its end, as all routes."""

    status = 308

    def envelope(self, *, gzip: bool = False) -> dict[str, Any]:
        return envelope(self.status, {"Location": "index.html"}, b"")


def serve_default(request: Request) -> PageAddress:
    """Handles a call that matches no route.

    Returns the address of a page if a browser asked for its folder. Raises NotFound or
    MethodNotAllowed otherwise.
    """
    given = request.event["requestContext"]["http"]["path"]
    if given in _PAGE_FOLDERS:
        return PageAddress()
    refuse_path(_route_keys(), given.split("/"))


@cache
def _route_keys() -> list[str]:
    """Returns the route keys of all functions, read once: the call needs no key."""
    paths: dict[str, dict[str, object]] = msgspec.json.decode(_document())["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def _document() -> str:
    return resources.files("cirrusmq_lambda").joinpath("openapi.json").read_text("utf-8")


def _asset_folder() -> Path:
    """Returns the folder of the installed page, without an import of its package."""
    files = metadata.files("swagger-ui-bundle") or []
    page = next(file for file in files if file.name in ASSETS)
    return Path(str(page.locate())).parent


ROUTES: dict[str, Route] = {
    "GET /health": show_health,
    "GET /endpoints": show_endpoints,
    "GET /openapi.json": show_openapi,
    "GET /docs/api": show_docs,
    "GET /docs/api/{asset}": show_asset,
    "$default": serve_default,
}
