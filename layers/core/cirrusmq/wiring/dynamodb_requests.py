"""Requests to DynamoDB whose fixed part is made once: botocore makes all of it at each call.

    first call of an operation    botocore resolves the endpoint, and makes URL and headers
    further ones                  the same URL and headers; the body by one JSON encoder

A DynamoDB request is a POST of JSON whose binary values are base64, which `msgspec` writes by
itself. An endpoint depends on the region and the credentials' account, and these stay with a
client. Events, signing, sending, repeats, and the reading of answers and errors stay botocore's.
"""

from __future__ import annotations

from typing import Any

import botocore.session
import msgspec
from botocore.client import BaseClient

_CREATING = "creating-client-class.dynamodb"
_PER_CALL = frozenset({"body", "context"})


class PreparedRequests(BaseClient):  # type: ignore[misc]
    """A client of botocore for one DynamoDB endpoint. The shapes of requests are not checked."""

    _endpoint_found: tuple[Any, dict[str, Any]] | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        self._fixed_parts: dict[str, dict[str, Any]] = {}
        super().__init__(*args, **named)

    def _emit_api_params(self, api_params: Any, operation_model: Any, context: Any) -> Any:
        """Returns the parameters. botocore's own handlers add tokens to transactions alone."""
        if operation_model.name in self._fixed_parts and not operation_model.idempotent_members:
            return api_params
        return super()._emit_api_params(api_params, operation_model, context)

    def _resolve_endpoint_ruleset(
        self, operation_model: Any, params: Any, request_context: dict[str, Any], *more: Any
    ) -> Any:
        """Returns what botocore found at the first call; its notes for the signer are repeated."""
        if self._endpoint_found is None:
            before = dict(request_context)
            found = super()._resolve_endpoint_ruleset(
                operation_model, params, request_context, *more
            )
            notes = {
                name: value
                for name, value in request_context.items()
                if name not in before or before[name] is not value
            }
            self._endpoint_found = found, notes
        else:
            found, notes = self._endpoint_found
            request_context.update(notes)
        return found

    def _convert_to_request_dict(
        self, api_params: Any, operation_model: Any, *args: Any, **named: Any
    ) -> Any:
        """Returns the request as botocore would make it, but for how strings are escaped."""
        fixed = self._fixed_parts.get(operation_model.name)
        if fixed is None or "context" not in named:  # another botocore may not name it
            made = super()._convert_to_request_dict(api_params, operation_model, *args, **named)
            fixed = {name: value for name, value in made.items() if name not in _PER_CALL}
            self._fixed_parts[operation_model.name] = {**fixed, "headers": dict(fixed["headers"])}
            return made
        return {
            **fixed,
            "headers": dict(fixed["headers"]),
            "body": msgspec.json.encode(api_params),
            "context": named["context"],
        }


def create_dynamodb(session: botocore.session.Session, **named: Any) -> Any:
    """Returns a client of DynamoDB whose requests are prepared; `named`: as of `create_client`."""

    def add(base_classes: list[type], **_: Any) -> None:
        base_classes.insert(0, PreparedRequests)

    session.register(_CREATING, add)
    try:
        return session.create_client("dynamodb", **named)
    finally:
        session.unregister(_CREATING, add)
