"""Calls of other services' SDKs, by a separate API"""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq_dialects.calling import Context
from cirrusmq_dialects.router import serve


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    return serve(event, context)


finish_loading()
