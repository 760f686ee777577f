"""Queues, receivers, consumers, grants, keys, operations, topics, rates, reports, own pages."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.access import keys
from cirrusmq.access.keys import KeyRights
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda import audit
from cirrusmq_lambda.answers.access import NewKey
from cirrusmq_lambda.http import Answer, Context, Event, serve
from cirrusmq_lambda.routes import (
    access,
    changes,
    consumers,
    operations,
    queues,
    rates,
    receivers,
    reports,
    schedules,
    service,
    topics,
)

ADMIN = KeyRights(admin=True, manages_keys=True)
MODULES = (
    *(queues, receivers, consumers, operations, access, changes),
    *(topics, rates, reports, schedules, service),
)
ROUTES = {key: route for module in MODULES for key, route in module.ROUTES.items()}


def create_admin_key(asked: dict[str, Any], request_id: str) -> dict[str, Any]:
    """Makes a deployment's first key, by a direct invocation of the function, not over HTTP."""
    core = bootstrap.service()
    key, secret = keys.create_key(core, asked["account"], ADMIN)
    told = {"route": "create_admin_key", "name": key.id, "code": "Ok", "account": key.account}
    audit.record(core, request_id=request_id, kept_by=[key.account], **told)
    shown: dict[str, Any] = msgspec.to_builtins(NewKey.of(key, None, secret=secret))
    return shown


def serve_custom_resource(event: Event, context: Context) -> dict[str, Any]:
    """Serves CloudFormation's request, an invocation, for a resource of a template."""
    # Imported here: it is rare, and calls over HTTP do not need it.
    from cirrusmq_lambda.custom_resources.serve import accounts_of, serve_request

    core = bootstrap.service()
    answer: dict[str, Any] = serve_request(core, event, context)
    route = f"{event.get('RequestType')} {event.get('ResourceType')}"
    told = {"route": route, "name": answer["LogicalResourceId"], "code": answer["Status"]}
    audit.record(core, request_id=context.aws_request_id, kept_by=accounts_of(answer), **told)
    return answer


def handler(event: Event, context: Context) -> Answer:
    if "create_admin_key" in event:
        return create_admin_key(event["create_admin_key"], context.aws_request_id)
    if "ResponseURL" in event:
        return serve_custom_resource(event, context)
    return serve(ROUTES, event, context)


finish_loading()
