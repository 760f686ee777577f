"""Each function may do what it does, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.infra.tools import of_type
from tests.service.kinds import KINDS

from cirrusmq.access import passing_keys
from cirrusmq_lambda import trial
from cirrusmq_local.cloud.template import Template

STARS_BY_DESIGN = {
    # A key's own policy says "this key" by a star; there is no other way to say it.
    ("Key", "AccountDecides"),
    ("Key", "LogsOfThisAccount"),
    # A table's streams are listed, whichever of them is the present one.
    ("Meter", "FindTheStream"),
    ("FanOut", "FindTheStream"),
    # Delivery of logs is the account's: these actions know no resource.
    ("RetryScheduleRole", "DeliverLogs"),
    ("ReportsRole", "DeliverLogs"),
    ("JobRole", "FindLogs"),
    # Alarms are encrypted; the key's policy means "this key", as above.
    ("Key", "AlarmsOfThisAccount"),
    ("Key", "JobsOfThisAccount"),
    # Deployment groups of this stack, whose names CloudFormation makes.
    ("PreTraffic", "Report"),
    # Exports and runs get their ids when they start.
    ("ReportsRole", "FollowExports"),
    ("ReportsRole", "FollowJobs"),
    # Objects below a folder, or of a bucket that is the service's own.
    ("Manage", "ShowReports"),
    ("ReportsRole", "WriteExports"),
    ("ReportsRole", "Record"),
    ("JobRole", "ReadCodeAndExports"),
    ("JobRole", "ReadAndReplaceReports"),
    ("ReadBodies", "ReadMessages"),
    ("WriteBodies", "WriteMessages"),
    # They forbid, on any resource.
    ("PipelineBucketPolicy", "EncryptedOnTheWay"),
    ("ReportsBucketPolicy", "EncryptedOnTheWay"),
    ("BodiesPolicy", "EncryptedOnTheWay"),
    ("JobRole", "ProposeOnly"),
    ("PublishReport", "ReadProposals"),
    ("PublishReport", "SwapAndCopy"),
}
PUSH = "arn:aws:lambda:local:000000000000:function:cirrusmq-push:live"
PUSH_SLOW = "arn:aws:lambda:local:000000000000:function:cirrusmq-push_slow:live"
CALL = "arn:aws:lambda:local:000000000000:function:cirrusmq-call:live"
REPLAY = "arn:aws:lambda:local:000000000000:function:cirrusmq-replay:live"
RETRY_SCHEDULE = "arn:aws:states:local:000000000000:stateMachine:cirrusmq-retry_schedule"
# Functions that write dead letters, and may make a queue for the first one of a subscription.
GIVERS_UP = {"Delete", "Push", "PushSlow", "Sweep"}

# Functions that answer over HTTP, and count the calls of each account.
CALLED = {"Send", "Receive", "Delete", "Publish", "Subscribe", "Manage", "Dialects"}

# Functions that read no table and no message.
OF_NO_TABLE = ("WebPages", "PublishReport")
# The policies of the bucket that a function may carry, beside its own.
OF_BODIES = (["ReadBodies"], ["WriteBodies"], ["ReadBodies", "WriteBodies"])

WRITES = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
READS = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
CHECKS = {"dynamodb:ConditionCheckItem"}
EXPORTS = {"dynamodb:ExportTableToPointInTime", "dynamodb:DescribeExport"}
STREAMS = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}


def policies(name: str, resource: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = resource.get("Properties", {})
    documents = [
        properties.get("PolicyDocument"),
        properties.get("KeyPolicy"),
        *(held.get("PolicyDocument", held) for held in inline(properties)),
    ]
    for document in documents:
        for statement in (document or {}).get("Statement", []):
            yield name, statement


def inline(properties: dict[str, Any]) -> list[dict[str, Any]]:
    return [held for held in properties.get("Policies", []) if isinstance(held, dict)]


def statements(resources: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Without the boundary's, which gives nothing."""
    given = {name: held for name, held in resources.items() if name != "OwnLogsAlone"}
    return [held for name, resource in given.items() for held in policies(name, resource)]


def as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def actions_on(resources: dict[str, Any], function: str, target: str) -> set[str]:
    """Everything that the function may do there, on some items at least."""
    return {
        action
        for name, statement in statements(resources)
        if name == function and target in as_list(statement["Resource"])
        for action in as_list(statement["Action"])
    }


def keys_of(resources: dict[str, Any], function: str, target: str) -> dict[str, list[str]]:
    """Action -> beginnings of the partition keys it is confined to; no others are in it."""
    found: dict[str, list[str]] = {}
    for name, statement in statements(resources):
        if name != function or target not in as_list(statement["Resource"]):
            continue
        for action in as_list(statement["Action"]) if "Condition" in statement else ():
            condition = statement["Condition"]["ForAllValues:StringLike"]
            found.setdefault(action, []).extend(condition["dynamodb:LeadingKeys"])
    return found


def targets_of(resources: dict[str, Any], action: str) -> set[tuple[str, str]]:
    """The functions that may do it, and the resources."""
    return {
        (name, resource)
        for name, statement in statements(resources)
        if action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }


def test_every_statement_tells_its_purpose(resources: dict[str, Any]) -> None:
    found = statements(resources)
    assert len(found) > 15
    assert all(statement.get("Sid") for _, statement in found)


def test_no_action_and_no_resource_is_a_wildcard(resources: dict[str, Any]) -> None:
    wild = {
        (name, statement["Sid"])
        for name, statement in statements(resources)
        for value in as_list(statement["Action"]) + as_list(statement["Resource"])
        if "*" in value
    }
    assert wild == STARS_BY_DESIGN


def test_functions_get_no_ready_made_policies(resources: dict[str, Any]) -> None:
    """SAM's own templates and AWS's managed policies allow more than one function needs."""
    chosen = (["UseOfKey"], *(["UseOfKey", *held] for held in OF_BODIES))
    for name, function in of_type(resources, "AWS::Serverless::Function").items():
        own = [held for held in function["Policies"] if isinstance(held, str)]
        assert own in (([],) if name in OF_NO_TABLE else chosen), name
        assert "Role" not in function


@pytest.mark.parametrize(
    ("table", "writers"),
    [
        ("Directory", {"Manage", "Replay", "Subscribe", "PreTraffic", "Dialects"} | GIVERS_UP),
        ("Usage", {"Meter", "Sweep", "Push", "PushSlow", "Call"} | CALLED),
    ],
)
def test_a_table_has_these_writers_alone(
    resources: dict[str, Any], table: str, writers: set[str]
) -> None:
    found = {name for name in resources if actions_on(resources, name, f"{table}.Arn") & WRITES}
    assert found == writers


@pytest.mark.parametrize("function", sorted(GIVERS_UP))
def test_dead_letter_functions_cannot_touch_access_keys(
    resources: dict[str, Any], function: str
) -> None:
    confined = keys_of(resources, function, "Directory.Arn")
    writes = {"dynamodb:PutItem", "dynamodb:UpdateItem", *CHECKS}
    sweeps = function == "Sweep"
    assert set(confined) - READS == writes | ({"dynamodb:DeleteItem"} if sweeps else set())
    if sweeps:  # the due marks of schedules
        assert confined["dynamodb:DeleteItem"] == ["D#*"]
    resources_keys = {"A#*", "I#*", "Q#*", "T#*"}
    puts = resources_keys | ({"D#*", "running", "deployment"} if sweeps else set())
    for action in writes:
        expected = puts if action == "dynamodb:PutItem" else resources_keys
        assert set(confined[action]) == expected
    assert actions_on(resources, function, "Directory.Arn") - set(confined) <= READS


OF_RESOURCES = ["A#*", "E#*", "I#*", "Q#*", "T#*", "running"]
# An SDK of EMQ gives and takes permissions.
OF_DIALECTS = ["A#*", "E#*", "G#*", "I#*", "Q#*", "T#*", "running"]
GET, QUERY, UPDATE = "dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"
OF_CALLED: dict[tuple[str, str], tuple[dict[str, list[str]], set[str]]] = {
    ("Subscribe", "Directory"): (dict.fromkeys({*WRITES, *CHECKS}, OF_RESOURCES), READS),
    ("Dialects", "Directory"): (dict.fromkeys({*WRITES, *CHECKS}, OF_DIALECTS), READS),
    ("Manage", "Messages"): ({"dynamodb:DeleteItem": ["S#*"]}, READS),
    ("Subscribe", "Messages"): ({action: ["S#*"] for action in WRITES}, READS),
    # They count their calls, and no usage.
    ("Send", "Usage"): ({UPDATE: ["C#*", "T#*"]}, {GET}),
    ("Receive", "Usage"): ({UPDATE: ["T#*"], GET: ["C#*"]}, {GET}),  # by priority
    ("Delete", "Usage"): ({UPDATE: ["T#*"]}, {GET}),
    ("Publish", "Usage"): ({UPDATE: ["T#*"]}, {GET}),
    ("Subscribe", "Usage"): ({UPDATE: ["T#*"]}, {GET}),
    ("Dialects", "Usage"): ({UPDATE: ["C#*", "T#*"]}, {GET}),
    # That there are schedules; and the days on which keys were used, for their listing.
    ("Manage", "Usage"): (
        {UPDATE: ["C#*", "T#*", "sweep"], QUERY: ["T#received#*"]},
        {GET, "dynamodb:BatchGetItem"},
    ),
}
"""What functions that are called over HTTP may do in a table: actions with the keys that they are
confined to, and what they may read of all others. None of the keys is one of the access keys."""


@pytest.mark.parametrize(("function", "table"), OF_CALLED)
def test_a_called_function_is_confined_to_its_keys(
    resources: dict[str, Any], function: str, table: str
) -> None:
    expected, reads = OF_CALLED[function, table]
    confined = keys_of(resources, function, f"{table}.Arn")
    assert confined == expected
    assert actions_on(resources, function, f"{table}.Arn") - set(confined) <= reads


def test_one_function_seals_signing_keys_another_opens_them_and_none_does_both(
    resources: dict[str, Any],
) -> None:
    """And neither with anything else: tables and buckets have no such context."""
    assert targets_of(resources, "kms:Encrypt") - {("Key", "*")} == {("Manage", "Key.Arn")}
    found = {
        (name, action)
        for name, statement in statements(resources)
        for action in as_list(statement["Action"])
        if "StringLike" in statement.get("Condition", {})
        if "kms:EncryptionContext:cirrusmq:signing-key" in statement["Condition"]["StringLike"]
    }
    assert found == {("Manage", "kms:Encrypt"), ("Dialects", "kms:Decrypt")}


@pytest.mark.parametrize(
    "function", ["Replay", "Push", "PushSlow", "Call", "Sweep", "FanOut", "Meter"]
)
def test_functions_without_callers_neither_see_nor_change_access_keys(
    resources: dict[str, Any], function: str
) -> None:
    """Those by which callers are known; what an account lists is beside its queues."""
    confined = keys_of(resources, function, "Directory.Arn")
    assert set(confined) == actions_on(resources, function, "Directory.Arn")
    assert not any(key.startswith(("K", "*")) for keys in confined.values() for key in keys)


def test_only_the_managing_function_may_write_access_keys(resources: dict[str, Any]) -> None:
    writers = {
        name
        for name, statement in statements(resources)
        if "Directory.Arn" in as_list(statement["Resource"])
        if WRITES & set(as_list(statement["Action"]))
        if "Condition" not in statement
    }
    assert writers == {"Manage"}


def test_the_trial_of_versions_changes_its_own_account_and_key_alone(
    resources: dict[str, Any],
) -> None:
    confined = keys_of(resources, "PreTraffic", "Directory.Arn")
    assert set(confined) == actions_on(resources, "PreTraffic", "Directory.Arn")
    own, key = {f"A#{trial.ACCOUNT}", "I#*", "Q#*"}, f"K#{passing_keys.BEGINNING}*"
    for action, keys in confined.items():
        puts = action in ("dynamodb:PutItem", "dynamodb:DeleteItem")
        assert set(keys) == (own | {key} if puts else own)
    assert not actions_on(resources, "PreTraffic", "Messages.Arn")
    assert not actions_on(resources, "PreTraffic", "Usage.Arn")


OTHERS_ITEMS = {
    "Send": "AFHPRSTY",
    "Receive": "FPSTX",
    "Delete": "FPSTX",
    "Publish": "AFHMPQRSXY",
    "FanOut": "FHRTXY",
    "Push": "FHPTXY",
    "PushSlow": "FHPTXY",
    "Call": "PSTXY",
    "Replay": "FTXY",
    "Sweep": "XY",
}
"""Beginnings of partition keys of Messages that a function neither reads nor writes: items of other
mechanisms (`cirrusmq.storage.models` lists them)."""


@pytest.mark.parametrize("function", OTHERS_ITEMS)
def test_a_function_reaches_the_items_of_its_own_mechanisms_alone(
    resources: dict[str, Any], function: str
) -> None:
    of_messages = {kind.pk[0] for kind in KINDS if kind.table == "messages"}
    confined = keys_of(resources, function, "Messages.Arn")
    reached = {key for keys in confined.values() for key in keys}
    assert confined.keys() == actions_on(resources, function, "Messages.Arn")
    assert reached == {f"{each}#*" for each in of_messages - set(OTHERS_ITEMS[function])}


def test_the_sweep_sees_the_workers_of_functions_and_changes_none(
    resources: dict[str, Any],
) -> None:
    confined = keys_of(resources, "Sweep", "Messages.Arn")
    assert {action for action, keys in confined.items() if "F#*" in keys} == {"dynamodb:GetItem"}


def test_sending_never_deletes_a_message(resources: dict[str, Any]) -> None:
    assert "dynamodb:DeleteItem" not in actions_on(resources, "Send", "Messages.Arn")


def test_publishing_writes_records_and_removes_marks_alone(resources: dict[str, Any]) -> None:
    confined = keys_of(resources, "Publish", "Messages.Arn")
    assert confined["dynamodb:Query"] == confined["dynamodb:DeleteItem"] == ["T#*"]
    # Its own parked shares, and nothing else.
    assert keys_of(resources, "FanOut", "Messages.Arn")["dynamodb:DeleteItem"] == ["P#*"]


def test_counting_never_sees_the_messages_table(resources: dict[str, Any]) -> None:
    assert actions_on(resources, "Meter", "Usage.Arn")
    assert not actions_on(resources, "Meter", "Messages.Arn")
    assert actions_on(resources, "Meter", "Directory.Arn") <= READS


@pytest.mark.parametrize("function", ["Push", "PushSlow", "Call"])
def test_deliverers_count_running_deliveries_and_no_usage(
    resources: dict[str, Any], function: str
) -> None:
    confined = keys_of(resources, function, "Usage.Arn")
    assert confined["dynamodb:UpdateItem"] == ["T#*"]
    assert actions_on(resources, function, "Usage.Arn") == set(confined)


def test_nobody_scans_or_drops_a_table(resources: dict[str, Any]) -> None:
    used = {
        action
        for _, statement in statements(resources)
        for action in as_list(statement["Action"])
        if action.startswith("dynamodb:")
    }
    assert used <= WRITES | READS | CHECKS | STREAMS | EXPORTS


def test_functions_invoke_only_needed_functions(resources: dict[str, Any]) -> None:
    assert targets_of(resources, "lambda:InvokeFunction") == {
        ("Manage", "Replay.Arn:live"),
        ("Receive", "Replay.Arn:live"),
        ("Call", REPLAY),
        ("Dialects", PUSH),
        ("Dialects", "Replay.Arn:live"),
        ("Sweep", "Replay.Arn:live"),
        ("Replay", REPLAY),
        ("Replay", "Push.Arn:live"),
        ("FanOut", "Push.Arn:live"),
        ("FanOut", "Replay.Arn:live"),
        ("Subscribe", PUSH),
        ("Subscribe", "Replay.Arn:live"),
        *((name, PUSH_SLOW) for name in ("Push", "PushSlow", "Subscribe", "Dialects")),
        ("Push", PUSH),
        ("PushSlow", PUSH),
        ("Sweep", "PushSlow.Arn:live"),
        ("RetryScheduleRole", "PushSlow.Arn:live"),
        ("Call", CALL),
        *((name, "Call.Arn:live") for name in ("Push", "PushSlow", "FanOut", "Sweep", "Replay")),
        ("Subscribe", "Call.Arn:live"),
        ("Sweep", "Push.Arn:live"),
        ("RetryScheduleRole", "Push.Arn:live"),
        # Of these the new versions alone: here a version is its function.
        ("PreTraffic", "cirrusmq-send"),
        ("PreTraffic", "cirrusmq-receive"),
        ("PreTraffic", "cirrusmq-delete"),
        ("ReportsRole", "PublishReport.Arn"),
    }


def test_retries_are_started_by_deliverers_and_by_the_sweep(resources: dict[str, Any]) -> None:
    starters = targets_of(resources, "states:StartExecution")
    assert starters == {
        ("Push", RETRY_SCHEDULE),
        ("PushSlow", RETRY_SCHEDULE),
        ("Call", RETRY_SCHEDULE),
        ("Sweep", "RetrySchedule.Arn"),
        ("ReportsEachNightRole", "Reports"),
    }


def test_the_spelled_out_names_match_the_resources(template: Template) -> None:
    assert RETRY_SCHEDULE in {machine.arn for machine in template.machines}
    arns = {f"{function.arn}:live" for function in template.functions}
    assert {PUSH, REPLAY} <= arns


def test_a_function_is_told_the_tables_it_may_use_and_no_others(
    template: Template, resources: dict[str, Any]
) -> None:
    for name, function in of_type(resources, "AWS::Serverless::Function").items():
        variables = function.get("Environment", {}).get("Variables", ())
        told = {variable for variable in variables if variable.endswith("_TABLE")}
        allowed = {
            f"{table.name.upper()}_TABLE"
            for table in template.tables
            if actions_on(resources, name, f"{table.name}.Arn")
        }
        assert told == allowed, name


def test_the_function_of_pages_may_do_nothing(
    resources: dict[str, Any], template: Template
) -> None:
    (pages,) = (each for each in template.functions if each.logical_id == "WebPages")
    assert resources["WebPages"]["Properties"]["Policies"] == []
    assert not pages.may("dynamodb:GetItem", "Directory")
    assert not pages.may("lambda:InvokeFunction", pages.arn)


def test_final_failures_can_be_told(resources: dict[str, Any]) -> None:
    for name in ("Meter", "FanOut", "Replay", "Push", "PushSlow", "Call"):
        assert actions_on(resources, name, "Unprocessed.Arn") == {"sqs:SendMessage"}
    reads = {"sqs:ReceiveMessage", "sqs:DeleteMessage"}
    assert actions_on(resources, "Sweep", "Unprocessed.Arn") == reads
