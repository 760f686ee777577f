"""Queues, receivers, grants, keys, operations, topics, reports, and the service's own pages."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.access import keys
from cirrusmq.access.keys import KeyRights
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda.answers.access import NewKey
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes import access, queues, receivers, reports, service, topics

ADMIN = KeyRights(admin=True, manages_keys=True)
MODULES = (queues, receivers, access, topics, reports, service)
ROUTES = {key: route for module in MODULES for key, route in module.ROUTES.items()}


def create_admin_key(asked: dict[str, Any]) -> dict[str, Any]:
    """The first key of a deployment: by a direct invocation of the function, not over HTTP."""
    key, secret = keys.create_key(bootstrap.service(), asked["account"], ADMIN)
    shown: dict[str, Any] = msgspec.to_builtins(NewKey.of(key, None, secret=secret))
    return shown


def serve_custom_resource(event: Event, context: Context) -> dict[str, Any]:
    """A resource of a CloudFormation template, which CloudFormation asks for by an invocation."""
    # Rare, and calls over HTTP need none of it.
    from cirrusmq_lambda.custom_resources.serve import serve_request

    return serve_request(bootstrap.service(), event, context)


def handler(event: Event, context: Context) -> Answer:
    if "create_admin_key" in event:
        return create_admin_key(event["create_admin_key"])
    if "ResponseURL" in event:
        return serve_custom_resource(event, context)
    return serve(ROUTES, event, context)


finish_loading()
