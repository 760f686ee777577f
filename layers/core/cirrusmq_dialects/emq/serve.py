"""One call of EMQ: its caller, what it asks for, its answer. Every answer has status 200."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError
from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq_dialects import reporting
from cirrusmq_dialects.calling import Call, function_of
from cirrusmq_dialects.emq import protocol, signature
from cirrusmq_dialects.emq.asking import Asked
from cirrusmq_dialects.emq.contract import METHODS, Method, result_of
from cirrusmq_dialects.emq.errors import PERMISSION_DENIED, EmqError, invalid, of_contract, shown
from cirrusmq_dialects.emq.protocol import Head, MalformedError, Reader
from cirrusmq_dialects.signing import ExpiredError, authenticate

_TYPE = "application/x-thrift-binary"
_MAX_BYTES = 1_048_576
_REFUSALS: dict[type[Exception], str] = {
    UnknownKeyError: "the access key is not known",
    WrongSignatureError: "the signature does not match the call",
    ExpiredError: "x-xiaomi-timestamp is not within 15 minutes of now",
}


def serve(call: Call) -> dict[str, Any]:
    """Serves a call. Returns its result, its refusal, or what no method declares."""
    head = Head()
    try:
        if call.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
            text = f"this endpoint reads {_TYPE} alone"
            raise MalformedError(text, MalformedError.INVALID_PROTOCOL)
        reader = Reader(call.body)
        head = reader.head()
        service = call.path.rpartition("/")[2].capitalize() + "Service"
        method = METHODS[service].get(head.method)
        if method is None:
            is_plain = head.method.isascii() and head.method.isalpha()
            named = head.method if is_plain else "that is given"
            text = f"the method {named} is not known here"
            raise MalformedError(text, MalformedError.UNKNOWN_METHOD)
        message = _answer(call, reader, head, method)
    except MalformedError as error:
        message = protocol.exception(head, error)
    return {
        "statusCode": 200,
        "headers": {"Content-Type": _TYPE},
        "body": base64.b64encode(message).decode(),
        "isBase64Encoded": True,  # the bytes are no text
    }


def _answer(call: Call, reader: Reader, head: Head, method: Method) -> bytes:
    """Returns the message with a method's result, or its refusal. Raises MalformedError."""
    progress = reporting.Progress()
    progress.action = head.method
    result = result_of(method.result)()
    code = "Ok"
    try:
        progress.key_id, signed, at = signature.read(call.headers)
        fits = partial(signature.is_signed_with, call, signed)
        progress.caller = caller = authenticate(call, progress.key_id, fits, at)
        if len(call.body) > _MAX_BYTES:
            raise invalid("the request", f"has at most {_MAX_BYTES:,} bytes")
        request = reader.argument(method.argument)
        progress.resource = str(getattr(request, "queueName", None) or "")[:150]
        asked = Asked(call=call, caller=caller, request=request, progress=progress)
        result.success = function_of("emq", method.function)(asked)
        written = protocol.reply(head, result)
        if len(written) > ANSWER_BYTES:
            raise invalid("the answer", f"has at most {ANSWER_BYTES:,} bytes")
    except MalformedError:
        raise
    except Exception as error:
        refusal = _refusal(call, head, error)
        code = str(refusal.code)
        result.success, result.e = None, shown(refusal, call.id)
        written = protocol.reply(head, result)
    if method.changes or code == str(PERMISSION_DENIED):
        reporting.note(call, "emq", progress, code)
    return written


def _refusal(call: Call, head: Head, error: Exception) -> EmqError:
    if isinstance(error, EmqError):
        return error
    if type(error) in _REFUSALS:
        return EmqError(PERMISSION_DENIED, _REFUSALS[type(error)])
    return of_contract(reporting.told(call, f"emq {head.method}", error))
