"""Values of messages, as several dialects give them to the core and show them."""

from __future__ import annotations

import base64

from cirrusmq.model.message import Message


def in_request(value: str | bytes) -> str | dict[str, str]:
    """Returns an attribute's value as a request of the core has it."""
    return value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}


def shown_body(message: Message) -> str:
    """Returns a body as text: bytes, which only the core's own senders send, in base64."""
    if isinstance(message.body, str):
        return message.body
    return base64.b64encode(message.body).decode()
