"""Wrong values in the fields of every call, each with the parameter that the refusal names.

A row is a route with its query, a JSON body, and that parameter; in `TOLD` it has words of the
refusal too. `{id}` is the id of a message in the queue `orders`. The shop of `test_bad_input.py`
refuses them all. `tests/unit` has whole ranges of values; here each call looks at its fields.
"""

from __future__ import annotations

from typing import Any

from tests.service.topics import URL

from cirrusmq.base.reserved_attributes import RESERVED

Wrong = tuple[str, Any, str]
Told = tuple[str, Any, str, str]

Q, T = "/queues/orders", "/topics/news"
S = f"{T}/subscriptions"
R = ["receipt"]
UNKNOWN = "Msg-" + "0" * 27
IN_TIME = "01M7XTY8B8576QK31XPZWGYFVZ"
"""A good attempt, if it is this time in the shop."""
LONG_AGO = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
PULL: dict[str, Any] = {"protocol": "pull"}
WEB: dict[str, Any] = {"protocol": "http", "endpoint": URL}
BOX: dict[str, Any] = {"protocol": "queue", "endpoint": "other"}
LOG: dict[str, Any] = {"protocol": "pull", "mode": "broadcasting"}
DEAD: dict[str, Any] = {"queue": "dead", "max_receives": 1}
INVOKE: dict[str, Any] = {"function": "handler"}
RED = {"name": "color", "value": "red"}
MINUTE: dict[str, Any] = {"every_seconds": 60, "message": {"body": "tick"}}
SOON: dict[str, Any] = {**MINUTE, "queue": "orders"}


def one(**fields: Any) -> dict[str, Any]:
    """A call that sends or publishes one message."""
    return {"messages": [{"body": "x"} | fields]}


def each(routes: tuple[str, ...], attributes: dict[str, tuple[Any, ...]]) -> list[Wrong]:
    """Every value of every attribute, by itself, at each of the routes."""
    return [
        (route, {attribute: value}, attribute)
        for route in routes
        for attribute, values in attributes.items()
        for value in values
    ]


# ---- queues -------------------------------------------------------------------------------------

QUEUES: list[Wrong] = [
    *each(
        (f"PUT {Q}", f"PATCH {Q}"),
        {
            "message_retention_seconds": ("60", 60.0, True, None, [], 59),
            "visibility_timeout_seconds": ("1", 1.5, False, {}, 0, None),
            "receive_wait_seconds": ("0", True, None, -0.1, 30.1),
            "delay_seconds": ("0", 0.0, -1, 1_296_001, None),
            "max_message_bytes": ("x", 1_023, 4_194_305, None),
            "max_messages": (1, 1e6, None),
            "rewind_seconds": (-1, 1_296_001, "1", None),
            "dead_letter": ("dead", [], 1),
            "retry": ("unordered", [], 1, {"policy": "unordered"}),
            "ordered": ("true", 1, None),
            "partitions": (0, 256, 4.0, None),
            "description": (1, "d" * 257),
            "labels": ([], None, {f"{n}": "" for n in range(51)}),
            "sender": ("name",),
            "send_rate": (0, 10_001, "5", 1.5),
            "receive_rate": (0, 10_001, "5", 1.5),
            "rate": (5,),
            "max_in_flight": (8,),
            "ageing_seconds": (60,),
            "name": ("other",),
            "id": ("x",),
            "Delay_seconds": (1,),
        },
    ),
    *[
        (route, body, parameter)
        for route in ("PUT /queues/new", f"PATCH {Q}")
        for body, parameter in (
            ({"message_retention_seconds": 100, "delay_seconds": 100}, "delay_seconds"),
            ({"message_retention_seconds": 100, "rewind_seconds": 101}, "rewind_seconds"),
            (
                {
                    "message_retention_seconds": 300,
                    "dead_letter": {"queue": "dead", "max_age_seconds": 300},
                },
                "dead_letter.max_age_seconds",
            ),
            ({"retry": {"policy": "nonsense"}}, "retry.policy"),
        )
    ],
    *each(
        ("PATCH /queues/ranked",),
        {"priorities": (8, None), "partitions": (17,), "ageing_seconds": (9, 43_201, "60", 60.5)},
    ),
    *each(("PATCH /queues/fair",), {"fair": (False,), "rate": (0, 10_001, "5", 1.5)}),
    *each(("PATCH /queues/ordered",), {"ordered": (False,), "partitions": (5,)}),
    *each((f"PATCH {Q}",), {"ordered": (True,), "fair": (True,), "priorities": (8,)}),
    *each(("PATCH /queues/ordered", "PATCH /queues/ranked"), {"rate": (5,)}),
    *each(("PATCH /queues/ordered", "PATCH /queues/fair"), {"ageing_seconds": (60,)}),
    *each(("PUT /queues/new",), {"priorities": (1, 33)}),
    ("PUT /queues/new", {"fair": True, "ordered": True}, "fair"),
    ("PUT /queues/new", {"fair": True, "max_in_flight": 0}, "max_in_flight"),
    ("PUT /queues/new", {"fair": True, "max_in_flight": 257}, "max_in_flight"),
    ("PUT /queues/new", {"priorities": 4, "fair": True}, "priorities"),
    ("PUT /queues/new", {"priorities": 4, "ordered": True}, "priorities"),
    ("PUT /queues/new", {"priorities": 4, "partitions": 17}, "partitions"),
    (f"PUT {Q}", {"labels": {"a": 1}}, "labels[...]"),
    (f"PUT {Q}", {"labels": {"a": "x" * 257}}, "labels[...]"),
    (f"PUT {Q}", {"labels": {"x" * 257: "a"}}, "labels"),
    (f"PUT {Q}", {"dead_letter": {}}, "dead_letter.queue"),
    (f"PUT {Q}", {"dead_letter": {"queue": "d", "x": 1}}, "dead_letter.x"),
    (f"PUT {Q}", {"dead_letter": {"queue": 1, "max_receives": 1}}, "dead_letter.queue"),
    (f"PATCH {Q}", {"dead_letter": DEAD | {"max_receives": None}}, "dead_letter.max_receives"),
    (
        f"PATCH {Q}",
        {"dead_letter": DEAD | {"max_age_seconds": None}},
        "dead_letter.max_age_seconds",
    ),
    *[
        (f"PATCH {Q}", {"dead_letter": DEAD | {"queue": target}}, "dead_letter.queue")
        for target in ("orders", "Orders", "nested", "bob:dead", "", "ordered")
    ],
    ("PATCH /queues/dead", {"dead_letter": DEAD | {"queue": "other"}}, "dead_letter"),
    ("PATCH /queues/last", {"dead_letter": DEAD}, "dead_letter"),
    (f"PUT {Q}", {"retry": {"policy": "custom", "waits": [True]}}, "retry.waits[0]"),
    *[
        ("PUT /queues/new", {"invoke": INVOKE | {member: value}}, f"invoke.{member}")
        for member, values in (
            ("max_concurrency", (0, 1_001)),
            ("batch", (0, 17)),
            ("timeout_seconds", (0, 841)),
            ("function", ("",)),
            ("retries", (1,)),
        )
        for value in values
    ],
    (
        "PUT /queues/new",
        {"invoke": INVOKE | {"breaker": {"rate": 1}}},
        "invoke.breaker.rate",
    ),
    (f"POST {Q}/purge", {"x": 1}, "x"),
    (f"POST {Q}/rewind", {}, "to"),
    *each(
        (f"POST {Q}/rewind",),
        {
            "to": (
                *(True, None, -1, 1e300, 253402300800),
                *("", "now", "2026-11-18", "2026-11-18T11:06:40", "1795000000"),
            )
        },
    ),
    (f"POST {Q}/rewind", {"to": "2026-11-18T11:06:40Z", "x": 1}, "x"),
    *each(
        (f"POST {Q}/redrive",),
        {
            "to": (1, None, "a.b", "orders", "bob:orders"),
            "max_messages": (0, "1"),
            "most": (1,),
            "ids": ([], [UNKNOWN] * 101),
            "receipts": ([],),
        },
    ),
    (f"POST {Q}/redrive", {"ids": ["x"]}, "ids[0]"),
    (f"POST {Q}/redrive", {"receipts": R, "ids": [UNKNOWN]}, "receipts"),
    (f"POST {Q}/redrive", {"receipts": R, "max_messages": 1}, "receipts"),
    (f"POST {Q}/redrive", {"receipts": R, "dead_letter": {}}, "receipts"),
    (f"POST {Q}/redrive", {"dead_letter": {"reason": "x" * 257}}, "dead_letter.reason"),
    *each(
        (f"PUT {Q}/receivers/r",),
        {
            "start": (1, "soon", "2020-01-01T00:00:00Z"),
            "filter": ([], {"x": 1}),
            "x": (1,),
        },
    ),
    (
        "PATCH /queues/copied/receivers/audit",
        {"labels": {f"{n:02}": "x" * 120 for n in range(50)}},
        "labels",
    ),
    *[
        (f"PUT {Q}/receivers/{name}", {}, "receiver")
        for name in ("default", "Default", "1r", "r" * 65)
    ],
    (f"PUT {Q}/grants/bob", {}, "permission"),
    *each((f"PUT {Q}/grants/bob",), {"permission": ("everything", None)}),
    (f"PUT {Q}/grants/bob", {"permission": "send", "x": 1}, "x"),
    *[
        (f"PUT {holder}/grants/{account}", {"permission": "full"}, "account")
        for holder in (Q, T)
        for account in ("1bob", "b" * 65, "alice")
    ],
    *each(
        ("POST /keys",),
        {
            "account": (1, None, "1x", "a" * 65),
            "admin": ("yes", 1),
            "description": (1, "d" * 257),
            "secret": ("x",),
        },
    ),
    ("POST /keys", {"signing": True, "admin": True}, "signing"),
]

# ---- messages -----------------------------------------------------------------------------------

MESSAGE_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"body": ""}, "body"),
    ({"body": None}, "body"),
    ({"body": 1}, "body"),
    ({"body_base64": "eA=="}, "body"),
    ({"visibility_timeout_seconds": 0}, "visibility_timeout_seconds"),
    ({"group": 1}, "group"),
    ({"group": ""}, "group"),
    ({"group": "g" * 129}, "group"),
    ({"deduplication_id": None}, "deduplication_id"),
    ({"deduplication_id": ""}, "deduplication_id"),
    ({"deduplication_id": "d" * 129}, "deduplication_id"),
    ({"tags": "t"}, "tags"),
    ({"tags": [1]}, "tags[0]"),
    ({"tags": ["a\nb"]}, "tags[0]"),
    ({"tags": ["a", ""]}, "tags[1]"),
    ({"tags": ["a" * 17]}, "tags[0]"),
    ({"tags": list("abcdefghijk")}, "tags"),
    ({"attributes": []}, "attributes"),
    ({"attributes": {"a": 1}}, "attributes[...]"),
    ({"attributes": {"a": None}}, "attributes[...]"),
    ({"attributes": {"a": {"base64": "!"}}}, "attributes.a"),
    ({"attributes": {"a": "é" * 512 + "x"}}, "attributes.a"),
    ({"attributes": {"1a": "a"}}, "attributes.1a"),
    ({"attributes": {"TAGS": "a"}}, "attributes.TAGS"),
    *[({"attributes": {name: "eve"}}, f"attributes.{name}") for name in sorted(RESERVED)],
    ({"attributes": {f"a{n}": "" for n in range(11)}}, "attributes"),
    ({"routing_key": "a.b"}, "routing_key"),
    ({"id": "x"}, "id"),
]
"""What no message may have, neither one that is sent nor one that is published."""
CALLS: list[Wrong] = [
    *[
        (f"POST {holder}/messages", body, parameter)
        for holder in (Q, T)
        for body, parameter in (
            ({}, "messages"),
            ({"messages": []}, "messages"),
            ({"messages": {}}, "messages"),
            ({"messages": ["x"]}, "messages[0]"),
            ({"messages": [{}]}, "messages[0].body"),
            ({"messages": [{"body_base64": ""}]}, "messages[0].body_base64"),
            ({"messages": [{"body_base64": "YQ"}]}, "messages[0].body_base64"),
            ({"messages": [{"body_base64": "é"}]}, "messages[0].body_base64"),
            ({**one(), "atomic": "no"}, "atomic"),
            ({**one(), "atomic": None}, "atomic"),
            *[
                ({**one(), "attempt": attempt}, "attempt")
                for attempt in (
                    *(1, None, "", "x", "8" + "Z" * 25, "0" * 27, "U" * 26, "é" * 26, LONG_AGO),
                )
            ],
            ({**one(), "x": 1}, "x"),
            *[
                ({"messages": [{"body": "x"}, {"body": "x", **fields}]}, f"messages[1].{parameter}")
                for fields, parameter in MESSAGE_FIELDS
            ],
        )
    ],
    *[
        (f"POST {Q}/messages", one(**{member: value}), f"messages[0].{member}")
        for member, values in (
            ("delay_seconds", (-1, 1.0, 345_600, 10**30)),
            ("visibility_timeout_seconds", (43_201, True)),
            ("priority", (1,)),
            ("replace_within_seconds", (5,)),
        )
        for value in values
    ],
    *[
        ("POST /queues/ranked/messages", one(priority=value), "messages[0].priority")
        for value in (0, 17, 33, "5", 1.5)
    ],
    *[
        ("POST /queues/ordered/messages", body, parameter)
        for body, parameter in (
            ({"messages": [{"body": "x", "group": "g"}, {"body": "x"}]}, "messages[1].group"),
            (one(group="g", delay_seconds=0), "messages[0].delay_seconds"),
            (one(group="g", delay_seconds=10), "messages[0].delay_seconds"),
        )
    ],
    *[
        (f"POST {Q}/messages", {"messages": messages}, "messages")
        for message in ({"body": "x", "replace": "k"}, {"body": "x", "reply": {"seconds": 5}})
        for messages in ([message, {"body": "y"}], [{"body": "y"}, message])
    ],
    (f"POST {T}/messages", one(reply={}), "messages[0].reply"),
    *[
        (f"POST {T}/messages", one(**{member: value}), f"messages[0].{member}")
        for member, values in (
            ("delay_seconds", (-1, 1.5, "5", None)),
            ("deliver_at", (9e9, True, "tomorrow")),
            ("title", ("t",)),
        )
        for value in values
    ],
    *[
        (
            f"POST /topics/{topic}/messages",
            {"messages": [{"body": "x"}, {"body": "y", "routing_key": key}], "atomic": False},
            "messages[1].routing_key",
        )
        for topic, key in (("news", "r"), ("routes", "r" * 65))
    ],
    *[
        ("POST /topics/routes/messages", one(routing_key=key), "messages[0].routing_key")
        for key in ("k" * 65, "é" * 33, ".".join("a" * 17))
    ],
    *[
        (f"POST {T}/messages", {**one(), "transaction": {member: value}}, f"transaction.{member}")
        for member, values in (
            ("check_after_seconds", (0, 3_601)),
            ("max_checks", (0, 101)),
            ("group", ("1x",)),
            ("more", (1,)),
        )
        for value in values
    ],
    (f"POST {T}/messages", {**one(), "transaction": {}, "atomic": False}, "atomic"),
    (
        f"POST {T}/messages",
        {**one(delay_seconds=5), "transaction": {}},
        "messages[0].delay_seconds",
    ),
    (f"POST {T}/messages", {**one(routing_key="k"), "transaction": {}}, "messages[0].routing_key"),
    (f"POST {T}/match", {**one(routing_key="k"), "filter": None}, "messages[0].routing_key"),
    *each((f"POST {T}/half/receive",), {"max": (17,), "visibility_timeout_seconds": (0,)}),
    (f"POST {T}/match", {"messages": []}, "messages"),
    *each(
        (f"POST {Q}/messages/receive", f"POST {S}/group/messages/receive"),
        {
            "max": (0, 17, "1", 1.0, None),
            "wait_seconds": (-0.001, 30.001, "1", True, None),
            "visibility_timeout_seconds": (0, 43_201),
            "receiver": (1, "", "1x"),
            "attempt": ("x", None, LONG_AGO),
            "repeat": (1, True),
            "limit": (1,),
        },
    ),
    (f"POST {S}/group/messages/receive", {"receiver": "r"}, "receiver"),
    *each(("POST /queues/ordered/messages/receive",), {"group": ("", "x" * 129, 7)}),
    *each(("POST /queues/ordered/messages/receive",), {"where": (RED,)}),
    *each(("POST /queues/fair/messages/receive",), {"where": (RED,)}),
    *each(("POST /queues/ranked/messages/receive",), {"group": ("a",), "where": (RED,)}),
    *[
        (f"POST {Q}/messages/receive", {"where": where, **more}, parameter)
        for where, more, parameter in (
            (RED, {"wait_seconds": 1}, "wait_seconds"),
            (RED, {"attempt": IN_TIME}, "attempt"),
            (RED, {"after": "x"}, "after"),
            (RED | {"value": {"base64": "no"}}, {}, "where.value"),
        )
    ],
    *[
        (f"POST {holder}/messages/{verb}", body, parameter)
        for holder in (Q, f"{S}/group")
        for verb in ("delete", "give-back", "dead-letter")
        for body, parameter in (
            ({}, "receipts"),
            ({"receipts": []}, "receipts"),
            ({"receipts": "x"}, "receipts"),
            ({"receipts": [1]}, "receipts[0]"),
            ({"receipts": ["x", ""]}, "receipts[1]"),
            ({"receipts": ["x" * 2_049]}, "receipts[0]"),
            ({"receipts": R, "x": 1}, "x"),
        )
    ],
    *[
        (f"POST {holder}/messages/{verb}", {"receipts": R, member: value}, member)
        for holder in (Q, f"{S}/group")
        for verb, member, values in (
            ("give-back", "delay_seconds", (-1, 43_201, None)),
            ("dead-letter", "reason", (1, "é" * 257)),
        )
        for value in values
    ],
    *[
        (f"POST {holder}/messages/visibility", body, parameter)
        for holder in (Q, f"{S}/group")
        for body, parameter in (
            ({}, "entries"),
            ({"entries": []}, "entries"),
            ({"entries": [{}]}, "entries[0].receipt"),
            ({"entries": [{"receipt": "x"}]}, "entries[0].visibility_timeout_seconds"),
            (
                {"entries": [{"receipt": "", "visibility_timeout_seconds": 1}]},
                "entries[0].receipt",
            ),
            *[
                (
                    {"entries": [{"receipt": "x", "visibility_timeout_seconds": value}]},
                    "entries[0].visibility_timeout_seconds",
                )
                for value in (-1, 43_201, "1", 1.0, None)
            ],
        )
    ],
    *[
        (f"POST {S}/{name}/messages/{verb}", {}, "subscription")
        for name in ("web", "log")
        for verb in ("receive", "peek", "delete", "visibility", "give-back", "dead-letter")
    ],
    *each(
        (f"POST {Q}/messages/peek", f"POST {S}/group/messages/peek"),
        {"max": (0, 17, "1"), "cursor": ("x",), "wait_seconds": (1,)},
    ),
    *each((f"POST {Q}/messages/peek",), {"state": ("lost",)}),
    *[
        (f"POST {Q}/messages/peek", {"dead_letter": {member: value}}, f"dead_letter.{member}")
        for member, value in (("reason", ""), ("older_than_seconds", -1), ("other", "x"))
    ],
    (f"PATCH {Q}/messages/{{id}}", {}, "delay_seconds"),
    (f"PATCH {Q}/messages/{{id}}", {"delay_seconds": 1, "deliver_at": 1}, "delay_seconds"),
    *each(
        (f"PATCH {Q}/messages/{{id}}",),
        {
            "delay_seconds": (-1, 1_296_001, 0.5, None),
            "deliver_at": ("soon", -1),
            "body": ("y",),
            "tags": (["b"],),
        },
    ),
    (f"DELETE {Q}/messages/{{id}}?group=g", None, "group"),
    *[
        (f"GET {Q}/messages/{{id}}?{name}={value}", None, name)
        for name, value in (("body", "yes"), ("group", "g"), ("other", "1"))
    ],
    (f"GET {T}/messages/{{id}}?body=1", None, "body"),
    (f"GET {Q}/messages/Msg-0/reply?reply_by=2026-11-18T08:00:00.123Z", None, "id"),
    *[
        (f"GET {Q}/messages/{{id}}/reply{query}", None, "reply_by")
        for query in ("", "?reply_by=soon", "?reply_by=2030-11-20T08:00:00.123Z")
    ],
    *[
        (
            f"GET {Q}/messages/{{id}}/reply?reply_by=2026-11-18T08:00:00.123Z&wait_seconds={wait}",
            None,
            "wait_seconds",
        )
        for wait in ("31", "-1", "nan")
    ],
]

# ---- topics, subscriptions and schedules --------------------------------------------------------

TOPICS: list[Wrong] = [
    *each(
        ("PUT /topics/new", f"PATCH {T}"),
        {
            "max_message_bytes": (1_023, 4_194_305, 2_048.0, "2048", True, None),
            "partitions": (0, 256, 8.0, None),
            "filter": ("sql", "TAGS", None, {}),
            "description": ("x" * 257, 1),
            "delay_seconds": (1,),
            "title": ("t",),
            "name": ("news",),
        },
    ),
    *each((f"PATCH {T}",), {"partitions": (9,), "filter": ("routing_key",)}),
    *[
        (route, {**more, "labels": labels}, parameter)
        for route, more in (
            ("PUT /topics/new", {}),
            (f"PATCH {T}", {}),
            (f"PUT {S}/new", PULL),
            (f"PATCH {S}/group", {}),
        )
        for labels, parameter in (
            ({f"{n}": "" for n in range(51)}, "labels"),
            ({"a": "x" * 257}, "labels[...]"),
            ({"a": 1}, "labels[...]"),
            (None, "labels"),
        )
    ],
    (f"PUT {S}/new", None, "protocol"),
    (f"PUT {S}/new", {}, "protocol"),
    (f"PUT {S}/new", {"protocol": "email"}, "protocol"),
    *[
        (f"PUT {S}/new", {"protocol": protocol, "endpoint": endpoint}, "endpoint")
        for protocol, endpoint in (
            ("queue", "a b"),
            ("queue", "bob:inbox"),
            ("http", "ftp://example.com/"),
            ("http", "https://a b.com/"),
            ("http", "https://u:p@example.com/"),
            ("http", "https://e.com/" + "x" * 487),
            ("http", "https://10.0.0.7/hook"),
        )
    ],
    *[
        (f"PUT {S}/new", {**kind, member: value}, member)
        for kind, member, values in (
            (PULL, "mode", ("anycast",)),
            (PULL, "ordered", (1,)),
            (LOG, "ordered", (True,)),
            (PULL, "retry", ("backoff",)),
            (PULL, "dead_letter_queue", ("nested", "ordered")),
            (PULL, "color", ("red",)),
            (PULL, "tags", (["a"],)),
            (PULL, "filter", ("a", ["a"], {"color": "red"})),
            (PULL, "start", ("soon", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "")),
            (PULL, "rate", (16,)),
            (PULL, "max_in_flight", (16,)),
            (PULL, "keep_answers", (True,)),
            (WEB, "content_format", ("xml", None)),
            (WEB, "breaker", ("half",)),
            (WEB, "start", ("earliest",)),
            (WEB, "invoke", (INVOKE,)),
            (WEB, "keep_answers", (1,)),
            (BOX, "start", ("earliest",)),
            (BOX, "rate", (16,)),
            (BOX, "max_in_flight", (16,)),
            (BOX, "keep_answers", (True,)),
            (LOG, "start", ("earliest",)),
            (LOG, "invoke", (INVOKE,)),
        )
        for value in values
    ],
    (
        f"PUT {S}/new",
        {**PULL, "retry": {"policy": "custom", "waits": [1, 0.009]}},
        "retry.waits[1]",
    ),
    *[
        (f"PUT {S}/new", {**WEB, "breaker": {"share": share}}, "breaker.share")
        for share in (0.05, 1.1, "half")
    ],
    *[
        (f"PUT {S}/new", {**WEB, "breaker": {}, "retry": {"policy": policy}}, "breaker")
        for policy in ("exponential_decay", "backoff")
    ],
    *each(
        (f"PATCH {S}/group",),
        {
            "protocol": ("http", None),
            "endpoint": ("http://127.0.0.1:9/other", None),
            "mode": (None,),
            "ordered": (True, None),
            "content_format": ("simplified", None),
            "start": ("earliest",),
            "dead_letter_queue": ("nested",),
            "filter": ("a", ["a"], {"color": "red"}),
            "color": ("red",),
            "name": ("other",),
            "created_at": ("now",),
        },
    ),
    (f"PATCH {S}/group", {"retry": {"policy": "ordered"}}, "retry.policy"),
    *each((f"PATCH {S}/web",), {"max_in_flight": (0, 257, 1.5, "16", None, True)}),
    *[
        (f"POST {S}/{name}/{call}", body, "subscription")
        for call, body, names in (
            ("pause", {}, ("box", "log")),
            ("resume", {}, ("box", "log")),
            ("retry", {}, ("group",)),
            ("secret", {}, ("group", "box")),
            ("rewind", {"to": "2026-11-18T11:06:40Z"}, ("log",)),
            ("redeliver", {"ids": [UNKNOWN]}, ("box", "log")),
        )
        for name in names
    ],
    (f"GET {S}/group/messages", None, "subscription"),
    (f"GET {S}/web/consumers", None, "subscription"),
    (f"GET {S}/web/consumers?receiver=x", None, "receiver"),
    (f"POST {S}/group/rewind", {"to": 17}, "to"),
    *each((f"POST {S}/group/redeliver",), {"ids": ([], "Msg-", None, [UNKNOWN] * 101)}),
    (f"POST {S}/group/redeliver", {"ids": [UNKNOWN, UNKNOWN, "x"]}, "ids[2]"),
    (f"POST {S}/group/redeliver", {"ids": [3]}, "ids[0]"),
    *each((f"POST {S}/web/confirm",), {"token": (1, "", "x" * 257)}),
    *each((f"PUT {T}/grants/bob",), {"permission": ("send", "receive", "own", "", None)}),
    *[
        ("PUT /schedules/ticks", body, parameter)
        for body, parameter in (
            (MINUTE, "queue"),
            ({**SOON, "topic": "news"}, "queue"),
            ({**SOON, "queue": "bob:orders"}, "queue"),
            ({**SOON, "queue": "ordered"}, "queue"),
            ({**SOON, "queue": "short"}, "queue"),
            ({"queue": "orders", "message": {"body": "tick"}}, "cron"),
            ({**SOON, "cron": "* * * * *"}, "cron"),
            (
                {"queue": "orders", "cron": "0 * * * * *", "message": {"body": "tick"}},
                "cron",
            ),
            ({**SOON, "every_seconds": 59}, "every_seconds"),
            ({**SOON, "every_seconds": 90}, "every_seconds"),
            ({**SOON, "time_zone": "UTC"}, "time_zone"),
            ({**SOON, "missed": "some"}, "missed"),
            ({**SOON, "message": {"body": ""}}, "message.body"),
            ({**SOON, "message": {"body": "x", "routing_key": "a"}}, "message.routing_key"),
            ({**SOON, "message": {"body": "x", "priority": 2}}, "message.priority"),
            (
                {**MINUTE, "topic": "strict", "message": {"body": "x", "group": "g"}},
                "message.deliver_at",
            ),
        )
    ],
]

# ---- queries ------------------------------------------------------------------------------------

NUMBERS = ("0", "1001", "-1", "1.5", "x", "", "1e2", "99999999999999999999", "%C2%B2")
QUERIES: list[Wrong] = [
    (f"GET {path}?{name}={value}", None, name)
    for path, name, values in (
        ("/queues", "limit", NUMBERS),
        ("/topics", "limit", NUMBERS),
        ("/topics", "cursor", ("x",)),
        (f"{Q}/receivers", "limit", ("0",)),
        (f"{Q}/grants", "limit", ("0",)),
        ("/grants", "limit", ("0",)),
        (S, "limit", ("0",)),
        (f"{Q}/consumers", "limit", ("0", "1001")),
        (f"{Q}/consumers", "cursor", ("x",)),
        (f"{Q}/consumers", "since", ("now",)),
        (f"{T}/messages", "limit", ("0", "101", "x")),
        (f"{T}/messages", "after", ("yesterday", "", "2026-13-01T00:00:00Z")),
        (f"{T}/messages", "cursor", ("x",)),
        ("/operations", "state", ("done", "")),
        ("/operations", "kind", ("copy",)),
        ("/operations", "queue", ("a.b",)),
        ("/operations", "topic", ("a.b",)),
        ("/audit", "from", ("yesterday",)),
        ("/audit", "to", ("yesterday",)),
        ("/rates", "queues", ("", ",".join(["orders"] * 51))),
        ("/rates", "topics", (",,",)),
        ("/rates", "receivers", ("orders",)),
        ("/rates", "subscriptions", ("orders",)),
    )
    for value in values
] + [
    (f"GET /rates?queues=orders&hours={hours}", None, "hours")
    for hours in ("0", "169", "-1", "1.5", "x", "")
]

# ---- refusals that say what would do ------------------------------------------------------------

TOLD: list[Told] = [
    ("PUT /queues/new", {"invoke": {"function": "not-listed"}}, "invoke.function", "of handler"),
    *[
        (
            f"PATCH {Q}",
            {"invoke": INVOKE | {"breaker": {"share": share}}},
            "invoke.breaker.share",
            "0.1 to 1",
        )
        for share in (0.05, 1.1, "half")
    ],
    (f"PUT {S}/new", {**PULL, "breaker": {}}, "breaker", "invoke.breaker"),
    *[
        (f"PATCH {S}/web", {"rate": rate}, "rate", "1 to 1,000 messages a second")
        for rate in (0, 1_001, 1.5, "16", True)
    ],
    (
        f"POST {T}/messages",
        one(delay_seconds=86_400),
        "messages[0].delay_seconds",
        "an integer from 0 to 86,399 seconds",
    ),
    (
        f"POST {T}/messages",
        one(delay_seconds=5, deliver_at="2026-11-18T11:06:45Z"),
        "messages[0].delay_seconds",
        "cannot be given together",
    ),
    ("POST /queues/ordered/messages", {**one(group="g"), "attempt": IN_TIME}, "attempt", "ordered"),
    *[
        (f"POST /queues/{queue}/messages", one(**message), f"messages[0].{member}", words)
        for queue, message, member, words in (
            ("ordered", {"group": "g", "replace": "k"}, "replace", "ordered"),
            ("orders", {"replace": "k", "deduplication_id": "d"}, "replace", "deduplication_id"),
            ("orders", {"replace": ""}, "replace", "1 to 128"),
            ("orders", {"replace": "x" * 129}, "replace", "1 to 128"),
            ("orders", {"replace": 5}, "replace", "1 to 128"),
            ("copied", {"replace": "k"}, "replace", "receivers"),
            (
                "orders",
                {"replace": "k", "delay_seconds": 9, "replace_within_seconds": 8},
                "replace_within_seconds",
                "at least the delay",
            ),
            (
                "delayed",
                {"replace": "k", "replace_within_seconds": 8},
                "replace_within_seconds",
                "at least the delay",
            ),
            (
                "orders",
                {"replace": "k", "replace_within_seconds": 0},
                "replace_within_seconds",
                "1 to 1,296,000",
            ),
            ("orders", {"reply": {"seconds": 0}}, "reply.seconds", "1 to 43,200"),
            ("orders", {"reply": {"seconds": 43_201}}, "reply.seconds", "1 to 43,200"),
            ("orders", {"reply": {}}, "reply.seconds", "seconds"),
            ("orders", {"reply": 5}, "reply", "object"),
            ("short", {"reply": {"seconds": 300}}, "reply.seconds", "299 seconds"),
            (
                "orders",
                {"delay_seconds": 9, "reply": {"seconds": 9}},
                "reply.seconds",
                "9 seconds",
            ),
            ("orders", {"replace": "k", "reply": {"seconds": 5}}, "reply", "replace"),
            ("copied", {"reply": {"seconds": 5}}, "reply", "receivers"),
        )
    ],
    (
        f"POST {Q}/messages/receive",
        {"group": "a"},
        "group",
        "group: is allowed only in an ordered or a fair queue",
    ),
    (f"POST {Q}/messages/give-back", {"receipts": R, "tried": "no"}, "tried", "a boolean"),
    ("DELETE /queues/ordered/messages/{id}", None, "queue", "ordered"),
    ("PATCH /queues/ordered/messages/{id}", {"delay_seconds": 1}, "queue", "ordered"),
]

# ---- refusals with other codes ------------------------------------------------------------------

LONG = 3_000
FILTERS: list[tuple[str, list[dict[str, Any]]]] = [
    ("news", [{"binding_keys": ["a"]}, {"tags": ["t" * 17]}, {"sql": "a = "}, {}]),
    ("routes", [{"tags": ["a"]}, {"binding_keys": []}]),
]
RECEIVER_FILTERS: list[dict[str, Any]] = [
    *({"sql": "kind ="}, {"sql": ""}, {"binding_keys": ["a.#"]}, {"policy": {}}, {}),
]
OTHERS: list[tuple[str, Any, int, str]] = [
    (f"GET {Q}/receivers/none", None, 404, "ReceiverNotFound"),
    (f"DELETE {Q}/receivers/none", None, 404, "ReceiverNotFound"),
    (f"PATCH {Q}/receivers/none", {"paused": True}, 404, "ReceiverNotFound"),
    (f"GET {Q}/consumers?receiver=x", None, 404, "ReceiverNotFound"),
    ("GET /rates?queues=orders,nobody", None, 404, "QueueNotFound"),
    ("GET /rates?receivers=orders/nobody", None, 404, "ReceiverNotFound"),
    ("GET /rates?topics=nobody", None, 404, "TopicNotFound"),
    ("GET /rates?subscriptions=news/nobody", None, 404, "SubscriptionNotFound"),
    (f"POST {Q}/messages/receive", {"receiver": "none"}, 404, "ReceiverNotFound"),
    (f"GET {Q}/grants/nobody", None, 404, "GrantNotFound"),
    (f"DELETE {Q}/grants/nobody", None, 404, "GrantNotFound"),
    ("GET /operations/none", None, 404, "OperationNotFound"),
    (f"GET /operations/{'x' * LONG}", None, 404, "OperationNotFound"),
    ("GET /operations/%23%00", None, 404, "OperationNotFound"),
    ("DELETE /keys/none", None, 404, "KeyNotFound"),
    (f"DELETE /keys/{'x' * LONG}", None, 404, "KeyNotFound"),
    ("GET /nothing", None, 404, "NotFound"),
    ("GET /queues/a/b/c/d", None, 404, "NotFound"),
    *[
        (f"{method} /topics/none", body, 404, "TopicNotFound")
        for method, body in (
            ("GET", None),
            ("PATCH", {}),
            ("DELETE", None),
        )
    ],
    ("POST /topics/none/messages", one(), 404, "TopicNotFound"),
    ("POST /topics/none/match", one(), 404, "TopicNotFound"),
    ("GET /queues/none/consumers", None, 404, "QueueNotFound"),
    ("PATCH /queues/none", {"delay_seconds": 5}, 404, "QueueNotFound"),
    (f"POST {Q}/redrive", {"to": "nowhere"}, 404, "QueueNotFound"),
    (f"PATCH {Q}", {"dead_letter": DEAD | {"queue": "nowhere"}}, 404, "QueueNotFound"),
    (f"PATCH {Q}", {"dead_letter": DEAD | {"queue": "DEAD"}}, 404, "QueueNotFound"),
    (f"PUT {S}/new", {**BOX, "endpoint": "nowhere"}, 404, "QueueNotFound"),
    (f"PUT {S}/new", {**PULL, "dead_letter_queue": "nowhere"}, 404, "QueueNotFound"),
    ("PUT /schedules/ticks", {**MINUTE, "queue": "none"}, 404, "QueueNotFound"),
    ("PUT /schedules/ticks", {**MINUTE, "topic": "none"}, 404, "TopicNotFound"),
    ("PUT /schedules/ticks", {**SOON, "message": {"body": "x" * 4_097}}, 413, "MessageTooLarge"),
    *[
        (f"POST {holder}/messages", {"messages": messages, "atomic": atomic}, 413, "BatchTooLarge")
        for holder in (Q, T)
        for messages in ([{"body": "x"}] * 17, [{"body": "x" * 4_194_305}])
        for atomic in (True, False)
    ],
    *[
        (f"POST {T}/{call}", {**one(body="x" * 65_537), **more}, 413, "MessageTooLarge")
        for call, more in (
            ("messages", {"transaction": {}}),
            ("match", {}),
            ("match", {"filter": None}),
        )
    ],
    (
        f"POST {T}/messages",
        {"messages": [{"body": "x"}] * 17, "transaction": {}},
        413,
        "BatchTooLarge",
    ),
    *[
        (f"{method} {S}/{name}{call}", body, 404, "SubscriptionNotFound")
        for name in ("none", "Group")
        for method, call, body in (
            ("GET", "", None),
            ("GET", "/consumers", None),
            ("PATCH", "", {}),
            ("DELETE", "", None),
            ("POST", "/confirm", {}),
            ("POST", "/pause", {}),
            ("POST", "/rewind", {"to": "2026-11-18T11:06:40Z"}),
            ("POST", "/messages/receive", {}),
        )
    ],
    *[
        (f"{method} {holder}/messages/{name}", body, 404, "MessageNotFound")
        for method, holder, body in (("GET", Q, None), ("DELETE", Q, None))
        for name in ("x", "Msg-", "Msg-" + "Z" * 27)
    ],
    *[
        (f"PUT {Q}/receivers/r", {"filter": filter}, 400, "InvalidFilter")
        for filter in RECEIVER_FILTERS
    ],
    *[
        (route, {**more, "filter": filter}, 400, "InvalidFilter")
        for topic, filters in FILTERS
        for filter in filters
        for route, more in (
            (f"PUT /topics/{topic}/subscriptions/new", PULL),
            (f"PATCH /topics/{topic}/subscriptions/group", {}),
        )
    ],
]
"""A route with its query, a JSON body, and the status and the code of its refusal."""
