"""Schemas of `retry` and `filter`, made of the model's own tables, bounds and grammar."""

from __future__ import annotations

import textwrap
from typing import Any

from cirrusmq.filters.policies.policy_limits import POLICY_BYTES, POLICY_COMBINATIONS, POLICY_NAMES
from cirrusmq.filters.routing import BINDING_KEYS_PER_FILTER, KEY_BYTES, KEY_DOTS
from cirrusmq.filters.selection import ALL_MEMBERS
from cirrusmq.filters.sql import parser
from cirrusmq.filters.sql.tokens import SQL_BYTES, SQL_TOKENS
from cirrusmq.filters.tags import TAG_CHARACTERS, TAGS_PER_FILTER
from cirrusmq.model.retry import (
    DEFAULTS,
    INTERVAL_SECONDS_RANGE,
    JITTER_RANGE,
    MAX_RETRIES_RANGE,
    SECOND_MS,
    WAIT_COUNT_RANGE,
    WAIT_SECONDS_RANGE,
    PolicyDefaults,
)

_ENDINGS = {
    "expiry": "then kept until it expires, out of the way",
    "dropped": "then dropped for this subscription",
    "dead_letter": "then moved to the dead-letter queue",
}
_BLOCKING = {
    "in_order": "Later messages wait meanwhile.",
    "probe": "Meanwhile the oldest is tried alone.",
    "none": "",
}
_RETRY = """\
How long a message waits after each delivery that failed: for URLs from the attempt's start,
elsewhere from the end of the lease. n retries are n + 1 deliveries."""
_FILTER = """\
Which messages are let pass. One of `tags`, `tag_expression`, `binding_keys`, `policy` and
`body_policy`, or `sql`, or both, which must hold then. Topics of kind `tags` take `tags`,
`tag_expression`, `policy`, `body_policy` and `sql`; of kind `routing_key` `binding_keys`, `policy`,
`body_policy` and `sql`; receivers of a queue `tags` and `sql`."""
_POLICY = f"""\
As an SNS filter policy: for each attribute a list of conditions, of which one must hold. A
condition is a text, a number, or an object with `prefix`, `suffix`, `equals-ignore-case`,
`anything-but`, `numeric`, `cidr` or `exists`; `$or` has policies of which one must hold. At most
{POLICY_BYTES:,} bytes, {POLICY_NAMES} names and {POLICY_COMBINATIONS} combinations."""
_BODY_POLICY = f"""\
As an SNS filter policy with the scope `MessageBody`, over a body that is a JSON object: a name has
conditions as in `policy`, also true, false and null, or an object with names of its own. At most
{POLICY_BYTES:,} bytes, {POLICY_NAMES} names and {POLICY_COMBINATIONS} combinations, in which
conditions count by the depth of their name."""
_SQL = f"""\
Over attributes by name, at most {SQL_BYTES:,} bytes and {SQL_TOKENS:,} tokens. It lets pass what it
is TRUE for; an attribute that is absent is NULL. `TAGS = 'a'` is true where `a` is one of the
message's tags."""


def retry_schema() -> dict[str, Any]:
    """Any policy, each with the members that it takes."""
    return {
        "title": "RetryPolicy",
        "description": one_line(_RETRY),
        "oneOf": [_policy(name, defaults) for name, defaults in DEFAULTS.items()],
    }


def filter_schema() -> dict[str, Any]:
    """A filter's members; of those that choose by tags or keys, one."""
    tag = {"type": "string", "minLength": 1, "maxLength": TAG_CHARACTERS}
    key = {
        "type": "string",
        "maxLength": KEY_BYTES,
        "description": f"at most {KEY_BYTES} bytes and {KEY_DOTS} dots; `*` stands for a word, `#`"
        " for any number of them",
    }
    members: dict[str, Any] = {
        "tags": {
            "description": "messages with one of these; none of them lets all pass",
            "type": "array",
            "items": tag,
            "maxItems": TAGS_PER_FILTER,
        },
        "tag_expression": {
            "description": f"`*`, or at most {TAGS_PER_FILTER} tags between `||`",
            "type": "string",
            "examples": ["created || paid"],
        },
        "binding_keys": {
            "type": "array",
            "items": key,
            "minItems": 1,
            "maxItems": BINDING_KEYS_PER_FILTER,
            "examples": [["orders.*.paid", "orders.#"]],
        },
        "policy": {
            "description": one_line(_POLICY),
            "type": "object",
            "additionalProperties": {"type": "array", "minItems": 1},
            "examples": [
                {"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100]}]}
            ],
        },
        "body_policy": {
            "description": one_line(_BODY_POLICY),
            "type": "object",
            "additionalProperties": {"type": ["array", "object"]},
            "examples": [{"kind": ["sold"], "item": {"price": [{"numeric": [">=", 100]}]}}],
        },
        "sql": {
            "description": f"{one_line(_SQL)}\n\n```\n{_grammar()}\n```",
            "type": "string",
            "examples": ["amount >= 100 AND region IN ('eu', 'us')"],
        },
    }
    assert set(members) == ALL_MEMBERS
    return {
        "title": "Filter",
        "description": one_line(_FILTER),
        "type": "object",
        "properties": members,
        "additionalProperties": False,
        "oneOf": [
            {"required": ["tags"]},
            {"required": ["tag_expression"]},
            {"required": ["binding_keys"]},
            {"required": ["policy"]},
            {"required": ["body_policy"]},
            {
                "required": ["sql"],
                "properties": dict.fromkeys(sorted(ALL_MEMBERS - {"sql"}), False),
            },
        ],
    }


def _policy(name: str, defaults: PolicyDefaults) -> dict[str, Any]:
    members = {member: _member(member, defaults) for member in sorted(defaults.takes)}
    return {
        "title": name,
        "description": _series(defaults),
        "type": "object",
        "properties": {"policy": {"const": name}, **members},
        "required": ["policy", *(["waits"] if "waits" in members else [])],
        "additionalProperties": False,
    }


def _member(name: str, defaults: PolicyDefaults) -> dict[str, Any]:
    match name:
        case "max_retries" if defaults.retries is None:
            return {"type": "integer", **_bounds(MAX_RETRIES_RANGE)}
        case "max_retries":
            return {"type": "integer", **_bounds(MAX_RETRIES_RANGE), "default": defaults.retries}
        case "interval_seconds":
            default = defaults.waits_ms[0] / SECOND_MS
            return {"type": "number", **_bounds(INTERVAL_SECONDS_RANGE), "default": default}
        case "waits":
            return {
                "description": "in seconds; as many retries as there are waits",
                "type": "array",
                "items": {"type": "number", **_bounds(WAIT_SECONDS_RANGE)},
                "minItems": WAIT_COUNT_RANGE[0],
                "maxItems": WAIT_COUNT_RANGE[1],
            }
        case "jitter":
            return {
                "description": "the share of each wait that is drawn at random",
                "type": "number",
                **_bounds(JITTER_RANGE),
                "default": defaults.jitter,
            }
    raise KeyError(name)


def _bounds(bounds: tuple[float, float]) -> dict[str, float]:
    return {"minimum": bounds[0], "maximum": bounds[1]}


def _series(defaults: PolicyDefaults) -> str:
    """The policy's waits and its end: `Waits 10, 30 s, the last one repeats. 16 retries, ...`."""
    seconds = ", ".join(f"{wait_ms / SECOND_MS:g}" for wait_ms in defaults.waits_ms)
    repeated = "the last one repeats" if len(defaults.waits_ms) > 1 else "each time"
    drawn = f", of which up to {defaults.jitter:.0%} is drawn off" if defaults.jitter else ""
    waits = f"Waits {seconds} s, {repeated}{drawn}." if seconds else "Waits as `waits` says."
    ending = _ENDINGS[defaults.ending]
    if defaults.retries is None:
        end = f"Without end, or `max_retries`, {ending}."
    else:
        end = f"{defaults.retries} retries, {ending}." if seconds else f"After the last {ending}."
    needs = "Of ordered queues and subscriptions alone." if defaults.needs_ordered_source else ""
    return " ".join(filter(None, [waits, end, _BLOCKING[defaults.blocking], needs]))


def _grammar() -> str:
    """The grammar as the parser documents it."""
    lines = (parser.__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())
