"""Any account: exported, emptied, made again from its file, it is the same account."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.service.library import LibraryClient

from cirrusmq_local.declarations import account, document, yaml_text
from cirrusmq_local.declarations.applying import apply_step
from cirrusmq_local.declarations.plan import make_plan
from cirrusmq_local.testing import World

NAMES = st.sampled_from(["alpha", "Beta", "gamma-1", "delta_2", "no", "NULL", "e4"])
DEAD = ("dead", "dead-ordered")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# A failing account is small enough as it is: to make it smaller takes minutes.
FAST = (Phase.explicit, Phase.generate)
TAGS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


POLICIES = st.one_of(
    st.just({"policy": "exponential_decay"}),
    st.just({"policy": "unordered", "max_retries": 4}),
    st.fixed_dictionaries(
        {
            "policy": st.just("custom"),
            "waits": st.lists(st.sampled_from([1, 0.5, 30]), min_size=1, max_size=3),
        },
        optional={"jitter": st.sampled_from([0, 0.25, 1])},
    ),
)
SQL = {"sql": "region = 'eu' AND size > 3"}
FILTERS = st.one_of(
    TAGS.map(lambda tags: {"tags": tags}),
    st.just(SQL),
    TAGS.map(lambda tags: {**SQL, "tags": tags}),
)
RECEIVERS = st.dictionaries(
    NAMES, optional(start=st.sampled_from(["latest", "earliest"]), filter=FILTERS), max_size=2
)
GRANTS = st.dictionaries(
    st.sampled_from(["bob", "carol", "on"]),
    st.sampled_from(["send", "receive", "send_receive", "info", "admin", "full"]),
    max_size=2,
)
TOPIC_GRANTS = st.dictionaries(
    st.sampled_from(["bob", "carol", "on"]),
    st.sampled_from(["publish", "subscribe", "publish_subscribe", "info", "admin", "full"]),
    max_size=2,
)
DEAD_LETTERS = st.fixed_dictionaries(
    {"queue": st.just("dead"), "max_receives": st.integers(1, 1_000)},
    optional={"max_age_seconds": st.integers(300, 3_000)},
)
QUEUES = st.dictionaries(
    NAMES,
    st.one_of(
        optional(ordered=st.booleans()),
        st.fixed_dictionaries(
            {"dead_letter": DEAD_LETTERS}, optional={"retry": POLICIES, "partitions": st.just(9)}
        ),
    ).flatmap(
        lambda chosen: optional(
            delay_seconds=st.integers(0, 900),
            receive_wait_seconds=st.sampled_from([0, 0.2, 1.5, 30]),
            visibility_timeout_seconds=st.integers(1, 43_200),
            max_messages=st.integers(1_000_000, 1_000_000_000),
            rewind_seconds=st.integers(0, 3_600),
            description=TEXTS,
            labels=st.dictionaries(TEXTS, TEXTS, max_size=2),
            receivers=RECEIVERS,
            grants=GRANTS,
        ).map(lambda plain: plain | chosen)
    ),
    max_size=4,
)
SUBSCRIPTIONS = st.dictionaries(
    NAMES.filter(lambda name: len(name) > 2),
    st.one_of(
        st.fixed_dictionaries(
            {"protocol": st.just("pull")},
            optional={
                "filter": FILTERS,
                "retry": POLICIES,
                "dead_letter_queue": st.just("dead"),
            },
        ),
        st.just({"protocol": "pull", "mode": "broadcasting"}),
        st.just({"protocol": "pull", "ordered": True, "dead_letter_queue": "dead-ordered"}),
        st.fixed_dictionaries(
            {"protocol": st.just("queue"), "endpoint": st.sampled_from(DEAD)},
            optional={"filter": FILTERS},
        ),
        st.fixed_dictionaries(
            {"protocol": st.just("http"), "endpoint": st.just("https://example.com/é?a=b")},
            optional={
                "retry": POLICIES,
                "ordered": st.booleans(),
                "max_in_flight": st.integers(1, 256),
                "content_format": st.sampled_from(["json", "simplified"]),
            },
        ),
    ),
    max_size=3,
)
TOPICS = st.dictionaries(
    NAMES.filter(lambda name: len(name) > 2),
    optional(
        max_message_bytes=st.integers(1_024, 65_536),
        partitions=st.integers(1, 255),
        description=TEXTS,
        subscriptions=SUBSCRIPTIONS,
        grants=TOPIC_GRANTS,
    ),
    max_size=3,
)


def apply(client: LibraryClient, text: str, *, delete: bool = False, force: bool = False) -> int:
    """Do what a file says; answers the number of steps."""
    found = account.read_account(client)
    plan = make_plan(document.parse(text), found, delete=delete, force=force)
    assert not plan.conflicts, plan.conflicts
    for step in plan.steps:
        apply_step(client, step, force=True)
    return len(plan.steps)


def export(client: LibraryClient) -> str:
    return document.write(account.exported(account.read_account(client)))


@settings(derandomize=True, max_examples=15, phases=FAST, deadline=None)
@given(queues=QUEUES, topics=TOPICS)
def test_an_export_makes_the_account_again(queues: dict[str, Any], topics: dict[str, Any]) -> None:
    dead = {"dead": {}, "dead-ordered": {"ordered": True}}
    given_text = yaml_text.dump({"version": 1, "queues": queues | dead, "topics": topics})
    client = LibraryClient(World(), "acme")
    steps = apply(client, given_text)
    exported = export(client)
    assert apply(client, given_text, delete=True) == 0
    assert apply(client, exported, delete=True) == 0
    apply(client, "version: 1", delete=True, force=True)
    assert export(client) == "version: 1\nqueues: {}\ntopics: {}\n"
    assert apply(client, exported) == steps
    assert export(client) == exported


def without_fixed(queues: dict[str, Any]) -> dict[str, Any]:
    fixed = ("ordered", "partitions", "receivers")
    return {
        name: {key: held for key, held in attributes.items() if key not in fixed}
        for name, attributes in queues.items()
    }


@settings(derandomize=True, max_examples=15, phases=FAST, deadline=None)
@given(before=QUEUES, after=QUEUES, stops=st.integers(0, 8))
def test_an_account_follows_another_file_also_after_a_stop(
    before: dict[str, Any], after: dict[str, Any], stops: int
) -> None:
    old, new = (
        yaml_text.dump({"version": 1, "queues": without_fixed(queues) | {"dead": {}}})
        for queues in (before, after)
    )
    client = LibraryClient(World(), "acme")
    apply(client, old)
    plan = make_plan(document.parse(new), account.read_account(client), delete=True)
    assert plan.conflicts == ()
    for step in plan.steps[:stops]:
        apply_step(client, step, force=True)
    assert apply(client, new, delete=True) == max(0, len(plan.steps) - stops)
    assert apply(client, new, delete=True) == 0
    expected = {place: each.attributes for place, each in document.parse(new).items()}
    assert export(client) == document.write(expected)
