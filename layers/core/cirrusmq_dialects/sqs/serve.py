"""One call of SQS: its caller, what it asks for, its answer; every error in SQS's shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from cirrusmq.access.keys import Caller
from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError
from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects import aws_signature, reporting
from cirrusmq_dialects.aws_signature import Signed
from cirrusmq_dialects.calling import Answer, Call, give
from cirrusmq_dialects.signing import WINDOW_SECONDS, ExpiredError, authenticate
from cirrusmq_dialects.sqs import calls, writing
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.errors import UNKNOWN_OPERATION, SqsError, no_action, of_contract
from cirrusmq_dialects.sqs.reading import Members, read_json
from cirrusmq_lambda import audit

_TARGET = "AmazonSQS."
_SERVICE = "sqs"
_JSON = "application/x-amz-json"
_XML_SHARE = 5
"""`&` is one byte of JSON, and five of XML."""
Written: TypeAlias = tuple[str, Members]


class Protocol(NamedTuple):
    """How requests and answers are written."""

    read: Callable[[Call], Written]
    """The action and its members."""
    write: Callable[[str, dict[str, Any], str], Answer]
    write_error: Callable[[SqsError, str], Answer]
    is_call: Callable[[Call], bool]
    """Returns True if a call names an action at all."""
    answer_share: int
    """An answer's bytes for each of the core's, at most."""


def _read_json(call: Call) -> Written:
    return call.headers.get("x-amz-target", "").removeprefix(_TARGET), read_json(call.body)


JSON = Protocol(
    read=_read_json,
    write=lambda action, result, request_id: writing.write(result, request_id),
    write_error=writing.write_error,
    is_call=lambda call: call.headers.get("x-amz-target", "").startswith(_TARGET),
    answer_share=1,
)


def _protocol(call: Call) -> Protocol:
    """Returns the protocol of JSON, or of forms for older clients and for other programs.

    Forms are answered in XML, or in JSON for programs that want it.
    """
    if "x-amz-target" in call.headers or call.headers.get("content-type", "").startswith(_JSON):
        return JSON
    # Few clients are: the others' cold starts do without.
    from cirrusmq_dialects.sqs import query

    protocol = Protocol(
        read=query.read_call,
        write=query.write,
        write_error=query.write_error,
        is_call=query.has_action,
        answer_share=_XML_SHARE,
    )
    if call.headers.get("accept", "").strip().lower() != "application/json":
        return protocol
    from cirrusmq_dialects.sqs import query_json

    return protocol._replace(write=query_json.write, write_error=query_json.write_error)


def serve(call: Call) -> dict[str, Any]:
    """Serves a call. Returns the answer, or the error as SQS writes it."""
    protocol, progress = _protocol(call), reporting.Progress()
    code = "Ok"
    try:
        answer = give(call, _answer(call, protocol, progress))
    except Exception as error:
        shown = _shown(call, progress.action, error)
        code = shown.shape
        answer = give(call, protocol.write_error(shown, call.id))
    if progress.action in calls.CHANGES or answer["statusCode"] == 403:
        reporting.note(call, "sqs", progress, code)
    return answer


def _answer(call: Call, protocol: Protocol, progress: reporting.Progress) -> Answer:
    signed = _signed(call, protocol)
    progress.key_id = signed.key_id
    progress.caller = caller = _authenticate(call, signed)
    action, members = protocol.read(call)
    do = calls.ACTIONS.get(action)
    if do is None:
        raise no_action(action)
    progress.action = action
    named = members.get("QueueName") or members.get("QueueUrl") or members.get("SourceArn")
    progress.resource = str(named or "").rpartition("/")[2]
    asked = Asked(
        call=call,
        caller=caller,
        region=signed.region,
        members=members,
        answer_share=protocol.answer_share,
    )
    result = do(asked)
    if action in calls.CHANGES and "QueueUrl" in members:
        progress.owner = audit.owner_of(asked.queue_ref())
    return protocol.write(action, result, call.id)


def _signed(call: Call, protocol: Protocol) -> Signed:
    if "authorization" not in call.headers and aws_signature.IN_QUERY not in call.query:
        if not protocol.is_call(call):
            raise SqsError(UNKNOWN_OPERATION, "There is nothing here: a call has an Action.")
        address = f"{call.base_url}{call.path}"
        raise SqsError("AccessDenied", f"Access to the resource {address[:200]} is denied.")
    signed = aws_signature.read(call.headers, call.query)
    if signed is None:
        raise SqsError(
            "IncompleteSignature",
            "The Authorization header must be a complete AWS Signature Version 4 for sqs, of"
            " headers that were sent, host and x-amz-date among them.",
        )
    if signed.service != _SERVICE:
        service = f"this endpoint has no {signed.service}: it has {_SERVICE}"
        raise SqsError("InvalidAction", service)
    return signed


def _authenticate(call: Call, signed: Signed) -> Caller:
    is_signed_with = aws_signature.check_of(signed, call)
    try:
        good_seconds = signed.good_seconds or WINDOW_SECONDS
        return authenticate(call, signed.key_id, is_signed_with, signed.seconds, good_seconds)
    except UnknownKeyError as error:
        raise SqsError(
            "InvalidClientTokenId", "The security token included in the request is invalid."
        ) from error
    except WrongSignatureError as error:
        raise SqsError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check"
            " your key and signing method.",
        ) from error
    except ExpiredError as error:
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(call.core.real_seconds()))
        raise SqsError(
            "SignatureDoesNotMatch",
            f"Signature expired: {signed.time} is not within {_window(signed)} of {now}",
        ) from error


def _window(signed: Signed) -> str:
    """How long the signature is good, in words."""
    return "15 minutes" if signed.good_seconds is None else f"{signed.good_seconds} seconds"


def _shown(call: Call, action: str, error: Exception) -> SqsError:
    if isinstance(error, SqsError):
        return error
    told = reporting.told(call, f"sqs {action}", error)
    if not isinstance(error, CirrusMQError):
        return SqsError("InternalFailure", told.detail)
    return of_contract(told, attributes=action in calls.ATTRIBUTES)
