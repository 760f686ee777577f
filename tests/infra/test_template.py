"""A platform team's demands on a template before it deploys it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.infra.tools import TEMPLATES, deployment, of_type, run_tool

from cirrusmq.base import limits
from cirrusmq.invoking import slots
from cirrusmq.invoking.function_batch import LEASE_MARGIN_SECONDS
from cirrusmq_local.cloud.template import ALL_DIALECTS, Template, load
from pins import pinned, pins, requirements

SECRET = re.compile(r"secret|password|passwd|token|credential|private|api_?key|access_?key", re.I)


# One process for all templates: half of what `sam validate` takes is its start.
VALIDATE = """
import json, sys
from click.testing import CliRunner
from samcli.cli.main import cli
told = {}
for template in sys.argv[1:]:
    ended = CliRunner().invoke(cli, ["validate", "--lint", "--template", template])
    told[template] = [ended.exit_code, ended.output]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def validated() -> dict[str, tuple[int, str]]:
    """Template -> exit code and output of `sam validate --lint`."""
    run = run_tool(".venv-sam/bin/python", "-c", VALIDATE, *TEMPLATES)
    assert run.returncode == 0, run.stderr
    told: dict[str, tuple[int, str]] = json.loads(run.stdout)
    return told


# `test_scans.py` has the linter's findings on what SAM makes of them.
@pytest.mark.long
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_sam_and_its_linter_have_no_finding(
    template: Path, validated: dict[str, tuple[int, str]]
) -> None:
    code, output = validated[str(template)]
    assert code == 0, output
    assert "is a valid SAM Template" in output
    assert not re.search(r"^[EWI]\d{4}", output, re.M), output


def test_every_function_is_on_arm_with_the_layer_and_json_logs(document: dict[str, Any]) -> None:
    shared = document["Globals"]["Function"]
    assert shared["Architectures"] == ["arm64"]
    assert shared["Runtime"] == "python3.13"
    assert shared["Handler"] == "app.handler"
    assert shared["Layers"] == ["CoreLayer"]
    assert shared["LoggingConfig"]["LogFormat"] == "JSON"
    own = [
        set(function) & {"Architectures", "Runtime", "Handler", "Layers", "LoggingConfig"}
        for function in of_type(document["Resources"], "AWS::Serverless::Function").values()
    ]
    assert own
    assert not any(own)


def test_the_layer_is_built_from_the_core(root: Path, resources: dict[str, Any]) -> None:
    assert resources["CoreLayer"]["Metadata"]["BuildMethod"] == "makefile"
    assert re.search(r"^RUNTIME \?= 3\.13$", (root / "layers/core/Makefile").read_text(), re.M)
    # With the package under python/, the build nests it once more and importing fails.
    assert (root / "layers/core/cirrusmq/__init__.py").is_file()
    assert not (root / "layers/core/python").exists()


def test_the_tested_packages_are_deployed(root: Path) -> None:
    """`python -m infra.pins` writes the lists anew, with the hashes of the lock."""
    locked = pins((root / "infra/requirements.lock").read_text())
    lists = requirements(root)
    assert root / "layers/core/requirements.txt" in lists
    for path in lists:
        listed = path.read_text()
        assert pins(listed), path
        assert listed == pinned(listed, locked), path
        assert "://" not in listed, path


def test_each_pin_has_its_hashes(root: Path) -> None:
    for path in requirements(root):
        for name, pin in pins(path.read_text()).items():
            version, *hashes = (part.strip() for part in pin.split("\\\n"))
            assert version.partition(";")[0].strip().startswith(f"{name}==")
            assert hashes
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)


def test_the_layer_keeps_botocores_data_of_the_called_services(root: Path) -> None:
    sources = [*root.glob("functions/*/app.py"), *root.glob("layers/core/**/*.py")]
    called = {
        name
        for path in sources
        for name in re.findall(r'(?:create_client\(\s*| _service = )"([\w-]+)"', path.read_text())
    }
    kept = re.search(r"^SERVICES := (.*)$", (root / "layers/core/Makefile").read_text(), re.M)
    assert kept
    # PynamoDB makes the client of DynamoDB.
    assert set(kept[1].split()) == called | {"dynamodb"}


SET: list[tuple[str, str, Any]] = [
    ("CoreLayer", "ContentUri", "layers/core"),
    ("CoreLayer", "CompatibleRuntimes", ["python3.13"]),
    ("Key", "EnableKeyRotation", True),
    # No published message is given up for the number of tries.
    ("FanOutLogRecords", "MaximumRetryAttempts", -1),
    *(
        (table, name, value)
        for table in ("Directory", "Messages", "Usage")
        for name, value in {
            "DeletionProtectionEnabled": True,
            "PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": True,
            "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
            "SSESpecification.KMSMasterKeyId": "Key.Arn",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": None,
            "LocalSecondaryIndexes": None,
        }.items()
    ),
]


@pytest.mark.parametrize(("resource", "name", "value"), SET)
def test_a_property_is_set(resources: dict[str, Any], resource: str, name: str, value: Any) -> None:
    held = resources[resource]["Properties"]
    for part in name.split("."):
        held = held.get(part)
    assert held == value


def test_only_the_messages_have_a_stream(template: Template) -> None:
    assert [table.name for table in template.tables if table.stream] == ["Messages"]


def test_no_reader_of_the_stream_can_be_blocked_for_good(resources: dict[str, Any]) -> None:
    mappings = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    assert mappings
    for mapping in mappings:
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["BisectBatchOnFunctionError"] is True
        assert 0 < mapping["MaximumRecordAgeInSeconds"] < 86_400
        assert mapping["DestinationConfig"]["OnFailure"]["Destination"] == "Unprocessed.Arn"
        assert mapping["FilterCriteria"]["Filters"]
        assert "TumblingWindowInSeconds" not in mapping
    assert 0 < resources["CountParcels"]["Properties"]["MaximumRetryAttempts"] <= 100


def test_counting_gathers_a_minute_and_fanning_out_does_not_wait(template: Template) -> None:
    folders = {function.name: function.folder.name for function in template.functions}
    windows = [(folders[each.function], each.window_seconds) for each in template.streams]
    assert sorted(windows) == [("fan_out", 0), ("meter", 60)]  # a stream bears two readers


def test_a_call_is_over_before_the_api_gives_up(template: Template) -> None:
    behind_the_api = {route.function for route in template.routes}
    timeouts = {f.timeout_seconds for f in template.functions if f.name in behind_the_api}
    assert max(timeouts) < 30


def test_calling_has_time_for_the_slowest_function_and_little_memory(template: Template) -> None:
    (call,) = (each for each in template.functions if each.folder.name == "call")
    assert (call.timeout_seconds, call.memory_mb) == (900, 256)
    # A worker holds its slot, and its messages, for longer than a call of the function may take.
    assert limits.INVOKE_SECONDS[1] + slots.MARGIN_SECONDS < call.timeout_seconds
    assert LEASE_MARGIN_SECONDS + slots.FRESH_SECONDS < slots.MARGIN_SECONDS


def test_only_the_call_function_calls_the_listed_functions(
    root: Path,
) -> None:
    def called(each: Template) -> set[tuple[str, str]]:
        return {
            (one.folder.name, name)
            for one in each.functions
            for name, held in one.permissions.items()
            if "lambda:InvokeFunction" in held
        }

    theirs = "arn:aws:lambda:eu-central-1:000000000000:function:shop"
    given = {"InvokeFunctions": theirs, "InvokeFunctionsBy": "managers", "Dialects": "sns"}
    listed = load(root / "template.yaml", given)
    without = load(root / "template.yaml", given | {"InvokeFunctions": ""})
    assert called(listed) - called(without) == {("call", theirs)}
    variables = {each.folder.name: each.environment for each in listed.functions}
    for name in ("manage", "subscribe", "dialects", "call"):
        assert variables[name]["INVOKE_FUNCTIONS"] == theirs
    for name in ("manage", "subscribe", "dialects"):
        assert variables[name]["INVOKE_FUNCTIONS_BY"] == "managers"


def test_sends_and_waiting_receives_cost_half_of_other_calls(template: Template) -> None:
    memory = {each.folder.name: each.memory_mb for each in template.functions}
    assert (memory["send"], memory["receive"], memory["manage"]) == (256, 256, 512)


def test_functions_behind_the_api_have_own_room_and_receives_a_bound_if_asked(
    root: Path, template: Template
) -> None:
    reserved = {each.folder.name: each.reserved for each in template.functions}
    behind = {"fan_out": 40, "meter": 40, "push": 50, "push_slow": 40, "call": 40, "sweep": 1}
    assert {name: held for name, held in reserved.items() if held is not None} == behind

    none = {"StreamConcurrency": 0, "PushConcurrency": 0}
    chosen = load(root / "template.yaml", {"ReceiveConcurrency": 300, **none})
    reserved = {each.folder.name: each.reserved for each in chosen.functions}
    assert {name: held for name, held in reserved.items() if held is not None} == {
        "receive": 300,
        "sweep": 1,
    }


def test_self_invoking_functions_may_loop(template: Template) -> None:
    """And nothing else: Lambda stops a loop that was not meant after 16 links."""
    loops = {
        function.folder.name
        for function in template.functions
        if function.may("lambda:InvokeFunction", f"{function.arn}:live")
    }
    assert loops == {each.folder.name for each in template.functions if each.may_loop}
    assert loops == {"push", "push_slow", "call", "replay"}


def test_a_retry_schedule_outlives_its_calls(template: Template) -> None:
    (machine,) = (each for each in template.machines if each.logical_id == "RetrySchedule")
    states = json.loads(machine.definition)["States"]
    tasks = [state for state in states.values() if state["Type"] == "Task"]
    assert [task["Parameters"]["FunctionName"] for task in tasks] == ["cirrusmq-push_slow:live"]
    for task in tasks:
        # Only Lambda's errors are retried here; push's own are left to the sweep.
        assert all(
            name.startswith("Lambda.") for rule in task["Retry"] for name in rule["ErrorEquals"]
        )
        assert task["Catch"][-1]["ErrorEquals"] == ["States.ALL"]
        assert states[task["Catch"][-1]["Next"]]["Type"] == "Succeed"
        assert task["TimeoutSeconds"] > 120


def test_endpoints_are_https_and_confirmed_unless_a_deployment_decides_otherwise(
    template: Template,
) -> None:
    environment = template.environment()
    assert environment["CONFIRM_ENDPOINTS"] == "true"
    assert environment["HTTP_ENDPOINTS"] == "false"
    assert environment["ALLOWED_NETWORKS"] == ""


def test_every_log_ends_some_day_and_is_encrypted(resources: dict[str, Any]) -> None:
    groups = of_type(resources, "AWS::Logs::LogGroup")
    assert len(groups) == 5
    for group in groups.values():
        assert group["RetentionInDays"] > 0
        assert group["KmsKeyId"] == "Key.Arn"


def test_the_api_is_throttled_and_logs_callers_but_no_secret(
    resources: dict[str, Any],
) -> None:
    api = resources["Api"]["Properties"]
    assert api["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    assert api["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0
    logged = api["AccessLogSettings"]["Format"]
    assert "$context.requestId" in logged
    assert "header" not in logged.lower()
    assert "authorization" not in logged.lower()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ("false", "WARN")),
        ({"DetailedRouteMetrics": "true", "PlatformLogLevel": "INFO"}, ("true", "INFO")),
    ],
)
def test_metrics_of_routes_and_a_log_line_for_each_call_are_off_by_default(
    given: dict[str, str], told: tuple[str, str]
) -> None:
    """They cost as much as the functions themselves."""
    stack = deployment(**given)
    held = stack.resolve(stack.document)
    api = held["Resources"]["Api"]["Properties"]["DefaultRouteSettings"]
    logs = held["Globals"]["Function"]["LoggingConfig"]
    assert (api["DetailedMetricsEnabled"], logs["SystemLogLevel"]) == told


def test_no_environment_variable_holds_a_secret(template: Template) -> None:
    names = {name for function in template.functions for name in function.environment}
    # An ARN, which is no secret.
    assert [name for name in names if SECRET.search(name)] == ["SECRET_ARN"]


def test_every_folder_is_deployed_and_every_function_has_one(root: Path) -> None:
    template = load(root / "template.yaml", {"Dialects": ALL_DIALECTS})
    folders = {path.parent for path in (root / "functions").glob("*/app.py")}
    assert folders == {function.folder.resolve() for function in template.functions}
