"""One call of SNS: its caller, what it asks for, its answer; every error in SNS's shape."""

from __future__ import annotations

from typing import Any

from cirrusmq.access.keys import Caller
from cirrusmq.access.signing_keys import UnknownKeyError, WrongSignatureError
from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects import aws_signature, reporting
from cirrusmq_dialects.aws_signature import Signed
from cirrusmq_dialects.calling import Answer, Call, give
from cirrusmq_dialects.signing import WINDOW_SECONDS, ExpiredError, authenticate
from cirrusmq_dialects.sns import calls, opened_calls, writing
from cirrusmq_dialects.sns.asking import Asked
from cirrusmq_dialects.sns.errors import SnsError, of_contract
from cirrusmq_dialects.sns.reading import Members, read

_SERVICE = "sns"


def serve(call: Call) -> dict[str, Any]:
    """Serves a call. Returns the answer, or the error as SNS writes it."""
    progress, code = reporting.Progress(), "Ok"
    try:
        answer = give(call, _answer(call, progress))
    except Exception as error:
        shown = _shown(call, progress.action, error)
        code = shown.code
        answer = give(call, writing.write_error(shown, call.id))
    if progress.action in calls.CHANGES or answer["statusCode"] == 403:
        reporting.note(call, "sns", progress, code)
    return answer


def _answer(call: Call, progress: reporting.Progress) -> Answer:
    is_signed = "authorization" in call.headers or aws_signature.IN_QUERY in call.query
    if not is_signed and call.method in ("GET", "POST"):
        action, members = read(call.query.encode())
        _begin(progress, action, members)
        return writing.write(action, opened_calls.answer(call.core, action, members), call.id)
    signed = aws_signature.read(call.headers, call.query)
    if signed is None or signed.service != _SERVICE:
        raise SnsError(
            "IncompleteSignature",
            "The Authorization header must be a complete AWS Signature Version 4 for sns, of"
            " headers that were sent, host and x-amz-date among them.",
        )
    progress.key_id = signed.key_id
    progress.caller = caller = _authenticate(call, signed)
    action, members = read(call.query.encode() if call.method == "GET" else call.body)
    _begin(progress, action, members)
    asked = Asked(call=call, caller=caller, region=signed.region, members=members)
    return writing.write(action, calls.function_of(action)(asked), call.id)


def _begin(progress: reporting.Progress, action: str, members: Members) -> None:
    """Notes what a call is about; raises what `calls.check` does."""
    calls.check(action)
    progress.action = action
    named = members.get("TopicArn") or members.get("SubscriptionArn") or members.get("ResourceArn")
    progress.resource = str(members.get("Name") or named or "")[:512]
    if named:
        progress.resource = ":".join(progress.resource.split(":")[5:])


def _authenticate(call: Call, signed: Signed) -> Caller:
    is_signed_with = aws_signature.check_of(signed, call)
    try:
        good_seconds = signed.good_seconds or WINDOW_SECONDS
        return authenticate(call, signed.key_id, is_signed_with, signed.seconds, good_seconds)
    except UnknownKeyError as error:
        told = "The security token included in the request is invalid."
        raise SnsError("InvalidClientTokenId", told) from error
    except WrongSignatureError as error:
        raise SnsError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check"
            " your key and signing method.",
        ) from error
    except ExpiredError as error:
        told = f"Signature expired: {signed.time} is not within 15 minutes of now."
        raise SnsError("SignatureDoesNotMatch", told) from error


def _shown(call: Call, action: str, error: Exception) -> SnsError:
    if isinstance(error, SnsError):
        return error
    told = reporting.told(call, f"sns {action}", error)
    if not isinstance(error, CirrusMQError):
        return SnsError("InternalError", told.detail)
    return of_contract(told, action)
