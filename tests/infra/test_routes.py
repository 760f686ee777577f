"""The template has the contract's routes, each of them in one function."""

from __future__ import annotations

import sys
from pathlib import Path

from cirrusmq_local.cloud.cloudformation import read
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.template import Template, load

MESSAGES = "/queues/{queue}/messages"
QUEUE = "/queues/{queue}"

TOPIC = "/topics/{topic}"
SUBSCRIPTION = f"{TOPIC}/subscriptions/{{subscription}}"
HOLDERS = (QUEUE, SUBSCRIPTION)

EXPECTED = {
    "send": [f"POST {MESSAGES}"],
    "publish": [
        f"POST {TOPIC}/messages",
        f"POST {TOPIC}/match",
        *(f"POST {TOPIC}/half/{call}" for call in ("commit", "rollback", "receive")),
    ],
    "receive": [
        *(f"{method} {MESSAGES}/{{id}}" for method in ("GET", "DELETE", "PATCH")),
        f"GET {MESSAGES}/{{id}}/reply",
        *(f"POST {holder}/messages/{call}" for holder in HOLDERS for call in ("receive", "peek")),
    ],
    "delete": [
        f"POST {MESSAGES}/{{id}}/reply",
        *(
            f"POST {holder}/messages/{call}"
            for holder in HOLDERS
            for call in ("delete", "visibility", "give-back", "dead-letter")
        ),
    ],
    "subscribe": [
        *(f"{method} {SUBSCRIPTION}" for method in ("PUT", "PATCH", "GET", "DELETE")),
        f"GET {TOPIC}/subscriptions",
        *(
            f"POST {SUBSCRIPTION}/{work}"
            for work in ("confirm", "secret", "pause", "resume", "retry", "rewind", "redeliver")
        ),
    ],
    "manage": ["$default", "GET /docs/api", "GET /docs/api/{asset}"],
    "pages": [
        "GET /",
        *(f"GET /{site}{below}" for site in ("console", "docs") for below in ("", "/{file+}")),
        "GET /llms.txt",
    ],
}
"""The routes of the API, by function."""
MANAGED = [
    "GET /queues",
    *(f"{method} {QUEUE}" for method in ("PUT", "PATCH", "GET", "DELETE")),
    *(f"POST {QUEUE}/{work}" for work in ("purge", "rewind", "redrive")),
    "GET /topics",
    *(f"{method} {TOPIC}" for method in ("PUT", "PATCH", "GET", "DELETE")),
    f"GET {TOPIC}/messages",
    f"GET {TOPIC}/messages/{{id}}",
    f"GET {SUBSCRIPTION}/messages",
    "GET /operations",
    "GET /operations/{id}",
    f"GET {QUEUE}/receivers",
    *(f"{method} {QUEUE}/receivers/{{receiver}}" for method in ("PUT", "PATCH", "GET", "DELETE")),
    *(f"GET {holder}/consumers" for holder in (QUEUE, SUBSCRIPTION)),
    f"GET {QUEUE}/grants",
    *(f"{method} {QUEUE}/grants/{{account}}" for method in ("PUT", "GET", "DELETE")),
    f"GET {TOPIC}/grants",
    *(f"{method} {TOPIC}/grants/{{account}}" for method in ("PUT", "GET", "DELETE")),
    "GET /grants",
    "GET /schedules",
    *(f"{method} /schedules/{{schedule}}" for method in ("PUT", "GET", "DELETE")),
    "POST /keys",
    "GET /keys",
    "DELETE /keys/{id}",
    "POST /keys/{id}/rotate",
    "GET /audit",
    "GET /reports/billing",
    "GET /reports/backlog",
    "GET /rates",
    "GET /endpoints",
    "GET /health",
    "GET /openapi.json",
]
"""What `manage` answers behind `$default`."""


def test_every_route_of_the_contract_is_in_its_function(template: Template) -> None:
    folders = {function.name: function.folder.name for function in template.functions}
    found: dict[str, list[str]] = {}
    for route in template.routes:
        found.setdefault(folders[route.function], []).append(route.key)
    assert {name: sorted(keys) for name, keys in found.items()} == {
        name: sorted(keys) for name, keys in EXPECTED.items()
    }


def test_manage_finds_every_other_route_of_the_contract(template: Template) -> None:
    (manage,) = (each for each in template.functions if each.folder.name == "manage")
    module = sys.modules[load_handler(manage).__module__]
    assert set(module.ROUTES) == {*MANAGED, *EXPECTED["manage"]}
    assert not set(MANAGED) & {route.key for route in template.routes}


def test_a_deployment_may_do_without_pages(transformed: list[Path], root: Path) -> None:
    served = {route.path for route in load(root / "template.yaml", {"Pages": "off"}).routes}
    assert not served & {"/", "/console", "/docs", "/console/{file+}", "/docs/{file+}"}
    made = read(transformed[0])["Resources"]
    own = {
        name: held.get("Condition") for name, held in made.items() if name.startswith("WebPages")
    }
    assert {"WebPages", "WebPagesRole", "WebPagesDeploymentGroup"} <= own.keys()
    assert set(own.values()) == {"HasPages", "PagesGoBack"}
