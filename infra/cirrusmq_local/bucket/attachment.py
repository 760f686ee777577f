"""The bucket in the place of the network: botocore's `before-call` event answers for S3.

As with the engine's attachment for DynamoDB, nothing is signed, retried by the SDK, or sent.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.model import OperationModel
from botocore.response import StreamingBody

from cirrusmq_local.bucket.errors import S3Error

_EVENT = "before-call.s3"
_COPIED = "x-amz-copy-source"


class Answering(Protocol):
    """Does operations: the bucket, or a guard in front of it."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Raises S3Error."""
        ...


def attach_bucket(bucket: Answering, target: Any) -> Callable[[], None]:
    """Lets the bucket answer every call of S3 of `target`. Returns a call that detaches it.

    `target` is a botocore client, or a session, for the clients that it makes from now on.
    """
    events = target.meta.events if hasattr(target, "meta") else target

    def handler(model: OperationModel, params: dict[str, Any], **_: Any) -> Any:
        return answer(bucket, model.name, params)

    events.register(_EVENT, handler)
    return lambda: events.unregister(_EVENT, handler)


def answer(
    bucket: Answering, operation: str, params: Mapping[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    """Returns the answer that botocore would have parsed from S3's response to this request."""
    try:
        parsed = bucket.execute(operation, _request(params))
    except S3Error as error:
        told = {"Code": error.code, "Message": error.message, **error.told}
        return _answer(error.status, {"Error": told})
    if "Body" in parsed:
        content = parsed["Body"]
        parsed["Body"] = StreamingBody(io.BytesIO(content), len(content))
    return _answer(206 if "ContentRange" in parsed else 200, parsed)


def _answer(status: int, parsed: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    told = {
        "RequestId": uuid.uuid4().hex[:16].upper(),
        "HTTPStatusCode": status,
        "HTTPHeaders": {},
        "RetryAttempts": 0,
    }
    return AWSResponse("", status, {}, None), {**parsed, "ResponseMetadata": told}


def _request(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the SDK's arguments, read back from its HTTP request."""
    url = urlsplit(params["url"])
    headers = params["headers"]
    # https://<bucket>.s3.<region>…/<key>, or https://s3.<region>…/<bucket>/<key>
    bucket, dot, _ = url.netloc.rpartition(".s3.")
    path = url.path.removeprefix("/")
    if not dot:
        bucket, _, path = path.partition("/")
    request: dict[str, Any] = {"Bucket": unquote(bucket), "Key": unquote(path)}
    request["Body"] = _content(params["body"])
    if "Range" in headers:
        request["Range"] = headers["Range"]
    if _COPIED in headers:
        copied_from, _, key = headers[_COPIED].removeprefix("/").partition("/")
        request["CopySource"] = {"Bucket": unquote(copied_from), "Key": unquote(key)}
        request["MetadataDirective"] = headers.get("x-amz-metadata-directive", "COPY")
    return request


def _content(body: Any) -> bytes:
    return body if isinstance(body, bytes) else bytes(body.read())
