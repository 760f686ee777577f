"""One call of CMQ: its caller, what it asks for, its answer; every error in CMQ's shape."""

from __future__ import annotations

import re
from typing import Any

from cirrusmq.access.keys import Caller
from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError
from cirrusmq_dialects import reporting
from cirrusmq_dialects.calling import Answer, Call, give
from cirrusmq_dialects.cmq import calls, writing
from cirrusmq_dialects.cmq.asking import Asked
from cirrusmq_dialects.cmq.errors import REFUSED, REFUSED_KEY, CmqError, of_contract
from cirrusmq_dialects.cmq.reading import Params, needed, needed_integer, read_form
from cirrusmq_dialects.cmq.signature import SIGNATURE, is_signed_with
from cirrusmq_dialects.signing import ExpiredError, authenticate

_SECONDS, _NONCES = (0, 2**53), (1, 2**63 - 1)
_ECHO = "clientRequestId"
_ACTION = re.compile(r"[A-Za-z]{1,80}", re.ASCII)


def serve(call: Call) -> dict[str, Any]:
    """Serves a call. Returns the answer, or the error as CMQ writes it."""
    progress = reporting.Progress()
    params: dict[str, str] = {}
    code = "Ok"
    try:
        params.update(read_form(call))
        answer = give(call, _answer(call, params, progress))
    except Exception as error:
        shown = _shown(call, progress.action, error)
        code = f"{shown.code}/{shown.module}"
        answer = give(call, writing.write_error(shown, call.id, _echoed(params)))
    if progress.action in calls.CHANGES or code.startswith(f"{REFUSED_KEY}/"):
        reporting.note(call, "cmq", progress, code)
    return answer


def _answer(call: Call, params: Params, progress: reporting.Progress) -> Answer:
    progress.key_id = needed(params, "SecretId")
    progress.caller = caller = _authenticate(call, params, progress.key_id)
    action = needed(params, "Action")
    if action not in calls.ACTIONS:
        named = action if _ACTION.fullmatch(action) else "given"
        raise CmqError(4000, 10430, f"action name {named} is not existed")
    progress.action = action
    progress.resource = str(params.get("queueName") or params.get("topicName") or "")[:80]
    asked = Asked(call=call, caller=caller, params=params)
    return writing.write(calls.function_of(action)(asked), call.id, _echoed(params))


def _authenticate(call: Call, params: Params, key_id: str) -> Caller:
    signed_at = needed_integer(params, "Timestamp", _SECONDS)
    needed_integer(params, "Nonce", _NONCES)
    needed(params, SIGNATURE)
    host = call.headers.get("host", "")
    try:
        return authenticate(
            call,
            key_id,
            lambda secret: is_signed_with(secret, call.method, host, params),
            signed_at,
        )
    except UnknownKeyError as error:
        raise CmqError(REFUSED_KEY, 10270, "secret id is not existed") from error
    except WrongSignatureError as error:
        raise CmqError(*REFUSED) from error
    except ExpiredError as error:
        text = "authentication failed: Timestamp is not within 15 minutes of now"
        raise CmqError(REFUSED_KEY, 10030, text) from error


def _echoed(params: Params) -> dict[str, str]:
    """Returns the parameter that the answer repeats, if it is given."""
    return {_ECHO: params[_ECHO]} if _ECHO in params else {}


def _shown(call: Call, action: str, error: Exception) -> CmqError:
    if isinstance(error, CmqError):
        return error
    return of_contract(reporting.told(call, f"cmq {action}", error), action)
