"""One call: its caller, what it asks for, its answer; every error in the service's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq.access.keys import Caller
from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError
from cirrusmq_dialects import reporting
from cirrusmq_dialects.aliyun import calls, signature, writing
from cirrusmq_dialects.aliyun.calls import Asked
from cirrusmq_dialects.aliyun.errors import HandleErrors, MqError, invalid, of_contract
from cirrusmq_dialects.aliyun.reading import check_digest, read_query
from cirrusmq_dialects.calling import Answer, Call, give
from cirrusmq_dialects.signing import ExpiredError, authenticate

_CALLS: dict[str, tuple[str, Callable[[Asked], Answer]]] = {
    "DELETE": ("AckMessage", calls.acknowledge),
    "GET": ("ConsumeMessage", calls.consume_message),
    "POST": ("PublishMessage", calls.publish_message),
}


def serve(call: Call) -> dict[str, Any]:
    """Serves a call. Returns the answer, or the error as the service writes it."""
    progress = reporting.Progress()
    code = "Ok"
    try:
        answer = give(call, _answer(call, progress))
    except HandleErrors as error:
        answer = give(call, writing.handle_errors(error, call.id))
    except Exception as error:
        shown = _shown(call, progress.action, error)
        code = shown.code
        host = call.headers.get("host", "")
        answer = give(call, writing.write_error(shown, host, call.id))
    if progress.action == calls.MAKE_GROUP and code == "MessageNotExist":
        code = "Ok"  # it is made, and there is nothing in it yet
    if progress.action == calls.MAKE_GROUP or answer["statusCode"] == 403:
        reporting.note(call, "aliyun", progress, code)
    return answer


def _answer(call: Call, progress: reporting.Progress) -> Answer:
    progress.key_id, given = signature.read(call.headers)
    progress.caller = caller = _authenticate(call, progress.key_id, given)
    if call.method not in _CALLS:
        raise invalid("The method must be POST, GET or DELETE.")
    check_digest(call)
    progress.action, act = _CALLS[call.method]
    progress.resource = name = call.path.split("/")[2]
    return act(
        Asked(
            call=call,
            caller=caller,
            name=name,
            params=read_query(call.query),
            progress=progress,
        )
    )


def _authenticate(call: Call, key_id: str, given: str) -> Caller:
    signed_at = signature.read_date(call.headers)
    try:
        return authenticate(
            call, key_id, lambda secret: signature.is_signed_with(secret, given, call), signed_at
        )
    except UnknownKeyError as error:
        raise MqError("InvalidAccessKeyId") from error
    except WrongSignatureError as error:
        raise MqError("SignatureDoesNotMatch") from error
    except ExpiredError as error:
        raise MqError("TimeExpired") from error


def _shown(call: Call, action: str, error: Exception) -> MqError:
    if isinstance(error, MqError):
        return error
    return of_contract(reporting.told(call, f"aliyun {action}", error))
