"""Handles CloudFormation's events, and always answers in time.

    Create     makes the resource; refused if another stack made one of that name
    Update     changes it; another name is another resource, and the old one is deleted after it
    Delete     deletes only a resource that this stack made; one with contents only with
               DeleteWithContents

Every request may be repeated, and may stop anywhere:

    Create ── made ── stopped here ── again: its id shows that it is ours ── answers
"""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from typing import Any

from cirrusmq.access.keys import Caller
from cirrusmq.access.permissions import check_invoke
from cirrusmq.base.errors import AlreadyExists, CirrusMQError, InUse
from cirrusmq.base.shapes import read_values
from cirrusmq.runtime.core import Core
from cirrusmq_lambda.custom_resources import responses
from cirrusmq_lambda.custom_resources.identity import (
    Identity,
    id_of_request,
    read_identity,
)
from cirrusmq_lambda.custom_resources.requests import (
    CustomRequest,
    Properties,
    QueueProperties,
    SubscriptionProperties,
    read_properties,
)
from cirrusmq_lambda.custom_resources.resources import Resource, resource_at
from cirrusmq_lambda.http import Context, Event
from cirrusmq_lambda.observability import logger

Done = dict[str, Any]


def serve_request(core: Core, event: Event, context: Context) -> Done:
    """Handles an event and answers CloudFormation. Returns the answer.

    Raises if the answer cannot be sent: then Lambda retries the invocation.
    """
    request = read_values(event, CustomRequest, strict=False)
    responses.check_url(request.response_url)
    seconds = context.get_remaining_time_in_millis() / 1_000 - responses.ANSWER_SECONDS
    told = {
        "StackId": request.stack_id,
        "RequestId": request.request_id,
        "LogicalResourceId": request.logical_id,
        **_in_time(core, request, seconds),
    }
    logger.info("custom resource", extra={"custom_resource": told})
    responses.send(request.response_url, told)
    return told


def accounts_of(told: Done) -> list[str]:
    """Returns the account that a request changed, by its answer; none if the request failed."""
    identity = read_identity(told["PhysicalResourceId"])
    return [identity.place.account] if identity and told["Status"] == "SUCCESS" else []


def _in_time(core: Core, request: CustomRequest, seconds: float) -> Done:
    pool = ThreadPoolExecutor(1)
    try:
        # The thread gets this invocation's context: its permissions and its core.
        running = pool.submit(contextvars.copy_context().run, do_request, core, request)
        return running.result(timeout=seconds)
    except TookTooLong:
        reason = "This took too long. Deploy again: what was done is found."
        return _failed(request, reason)
    finally:
        pool.shutdown(wait=False)


def do_request(core: Core, request: CustomRequest) -> Done:
    """Does a request. Returns the answer's status, physical id, and reason or data."""
    try:
        if request.type == "Delete":
            return _done(_delete(core, request))
        properties = read_properties(request)
        _check_invoke(core, properties)
        act = _create if request.type == "Create" else _update
        return _done(str(act(core, request, properties)))
    except CirrusMQError as error:
        return _failed(request, error.detail)
    except Exception:
        logger.exception("unexpected", extra={"request_id": request.request_id})
        return _failed(request, "Something went wrong; the request is in the log.")


def _check_invoke(core: Core, properties: Properties) -> None:
    """Checks as for an admin key: a caller who may invoke this function could make one."""
    if isinstance(properties, QueueProperties | SubscriptionProperties):
        caller = Caller(account=properties.account, key_id="", admin=True)
        check_invoke(core, caller, properties.attributes.invoke)


def _create(core: Core, request: CustomRequest, properties: Properties) -> Identity:
    return _make(resource_at(core, properties.place), request, properties, ())


def _update(core: Core, request: CustomRequest, properties: Properties) -> Identity:
    place, before = properties.place, read_identity(request.physical_id)
    ids = before.ids if before else ()
    resource = resource_at(core, place)
    found = resource.find()
    renamed = before is None or before.place != place
    # With its present name it is the first id; back at an earlier name, one of the others.
    ours = ids[1:] if renamed else ids[:1]
    if found in ours:
        resource.change(properties.attributes)
        return Identity(place, ids[ids.index(found) :])
    return _make(resource, request, properties, ids)


def _make(
    resource: Resource, request: CustomRequest, properties: Properties, before: tuple[str, ...]
) -> Identity:
    own_id = id_of_request(request.stack_id, request.logical_id, request.request_id)
    made = resource.create(own_id, properties.attributes)
    if resource.has_own_id and made != own_id:
        raise AlreadyExists(f"{resource.place} exists, and this stack did not make it")
    return Identity(resource.place, (made, *before))


def _delete(core: Core, request: CustomRequest) -> str:
    identity = read_identity(request.physical_id)
    if identity is None:
        return request.physical_id  # never made
    resource = resource_at(core, identity.place)
    if resource.find() != identity.ids[0]:
        return request.physical_id  # gone, or of others
    contents = None if _with_contents(request) else resource.contents()
    if contents:
        raise InUse(
            f"{identity.place} has {contents}: set DeleteWithContents to true before, or"
            " DeletionPolicy to Retain"
        )
    resource.delete()
    return request.physical_id


def _with_contents(request: CustomRequest) -> bool:
    """Returns DeleteWithContents; other properties may be invalid, which does not matter."""
    return str(request.properties.get("DeleteWithContents", "")).lower() == "true"


def _done(physical_id: str) -> Done:
    answer: Done = {"Status": "SUCCESS", "PhysicalResourceId": physical_id}
    identity = read_identity(physical_id)
    if identity is not None:
        answer["Data"] = {"Name": identity.place.name, "Id": identity.ids[0]}
    return answer


def _failed(request: CustomRequest, reason: str) -> Done:
    """Returns a failure with the id of a Create's resource, for the rollback's Delete."""
    return {
        "Status": "FAILED",
        "PhysicalResourceId": request.physical_id or _physical_id(request),
        "Reason": reason[: responses.REASON_CHARACTERS],
    }


def _physical_id(request: CustomRequest) -> str:
    own_id = id_of_request(request.stack_id, request.logical_id, request.request_id)
    try:
        return str(Identity(read_properties(request).place, (own_id,)))
    except CirrusMQError:
        return own_id
