"""Requests: the parameters of a form, wherever an SDK put it, and the values in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl

from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq_dialects.calling import Call
from cirrusmq_dialects.cmq.errors import CmqError, missing, out_of_range

Params: TypeAlias = Mapping[str, str]
_FIELDS = 200
"""Maximum fields of a form: a batch of 16 bodies with tags has fewer than 60."""
_REQUEST_BYTES = 1_048_576
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_QUEUE_NAME, _TOPIC_NAME = (1, 64), (3, 64)
"""Characters of CMQ's names; the topics' bounds are the subscriptions' too."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,3}", re.ASCII)


def read_form(call: Call) -> dict[str, str]:
    """The parameters of a call.

    An SDK that sends a GET again on a new connection has them in its body.
    """
    if call.method not in ("GET", "POST"):
        raise CmqError(
            4000, 10410, f"unexpected http {call.method[:20]} only GET or POST is supported"
        )
    in_query = call.method == "GET" and call.query
    written = call.query.encode("utf-8", "replace") if in_query else call.body
    try:
        if len(written) > _REQUEST_BYTES:
            raise ValueError
        pairs = parse_qsl(
            written.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"
        )
    except ValueError as error:
        raise CmqError(
            4000, 10420, "cannot parse request, or request size is more than 1MB"
        ) from error
    params: dict[str, str] = {}
    for name, value in pairs:
        if name in params:
            raise CmqError(4000, 10330, f"parameter {name[:80]} is NOT a repeatable parameter")
        params[name] = value
    return params


def needed(params: Params, name: str) -> str:
    """A parameter that the action needs; its value is not empty."""
    value = params.get(name)
    if not value:
        raise missing(name)
    return value


def integer(params: Params, name: str, bounds: tuple[int, int]) -> int | None:
    """Returns a number within bounds, or None if it is not given."""
    value = params.get(name)
    if value is None:
        return None
    if not _INTEGER.fullmatch(value):
        raise CmqError(4000, 10360, f"parameter {name} error type")
    number = int(value)
    if not bounds[0] <= number <= bounds[1]:
        raise out_of_range(name, f"{bounds[0]} to {bounds[1]}")
    return number


def needed_integer(params: Params, name: str, bounds: tuple[int, int]) -> int:
    """A number within bounds that the action needs."""
    number = integer(params, name, bounds)
    if number is None:
        raise missing(name)
    return number


def numbered(params: Params, name: str) -> list[str]:
    """Returns the values of `name.0`, `name.1` …, or from `name.1` on; at most 16."""
    found: dict[int, str] = {}
    for each, value in params.items():
        if not each.startswith(f"{name}."):
            continue
        number = each.removeprefix(f"{name}.")
        if not _NUMBER.fullmatch(number):
            raise CmqError(4000, 10310, f"error: parameter {each[:80]} key format error")
        found[int(number)] = value
    if len(found) > BATCH_MESSAGES:
        raise CmqError(4000, 10370, f"{name} parameter batch size is out of range")
    first = min(found, default=0)
    if first > 1 or max(found, default=-1) >= first + len(found):
        raise CmqError(4000, 10380, f"{name} parameter is not consequent")
    return [found[number] for number in sorted(found)]


def needed_numbered(params: Params, name: str) -> list[str]:
    """As `numbered`, of at least one."""
    found = numbered(params, name)
    if not found:
        raise missing(f"{name}.n")
    return found


def queue_name(params: Params) -> str:
    """The name in `queueName`."""
    return _named(params, "queueName", _QUEUE_NAME, 10020)


def topic_name(params: Params) -> str:
    """The name in `topicName`."""
    return _named(params, "topicName", _TOPIC_NAME, 10590)


def subscription_name(params: Params) -> str:
    """The name in `subscriptionName`."""
    return _named(params, "subscriptionName", _TOPIC_NAME, 10580)


def _named(params: Params, member: str, bounds: tuple[int, int], module: int) -> str:
    name = needed(params, member)
    if not bounds[0] <= len(name) <= bounds[1] or _NAME.fullmatch(name) is None:
        kind = member.removesuffix("Name")
        raise CmqError(4000, module, f"{kind} name format error")
    return name
