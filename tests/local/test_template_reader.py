from __future__ import annotations

from pathlib import Path

import pytest

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.template import Route, Schedule, Template, load

SAMPLE = """
Parameters:
  Level: {Type: String, Default: INFO}
Conditions:
  IsLoud: !Not [!Equals [!Ref Level, INFO]]
Globals:
  Function:
    Handler: app.handler
    Timeout: 20
    Environment:
      Variables: {LEVEL: !Ref Level}
Resources:
  First:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub "${AWS::StackName}-first"
      CodeUri: functions/first
      Timeout: 60
      Policies:
        - !Ref Managed
        - Statement:
            - {Action: "a:Read", Resource: !GetAtt Items.Arn}
            - Action: ["a:Read", "a:Write"]
              Resource: !GetAtt Items.Arn
              Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["A#*"]}}
      Environment:
        Variables:
          TABLE: !Ref Items
          NEXT: !Sub ["${Name}-${!literal}", {Name: !Ref Second}]
          ARN: !GetAtt Items.Arn
          JOINED: !Join ["/", [a, !Ref AWS::Region]]
          ROLLED: !Ref ServerlessDeploymentApplication
          CHOSEN: !If [IsLoud, loud, !Ref Level]
      Events:
        Read: {Type: HttpApi, Properties: {Method: get, Path: "/a/{b}"}}
        Rest: {Type: HttpApi, Properties: {}}
        Often: {Type: Schedule, Properties: {Schedule: rate(5 minutes)}}
  Managed:
    Type: AWS::IAM::ManagedPolicy
  Second:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/second}
  Changes:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref First
      EventSourceArn: !GetAtt Items.StreamArn
      FilterCriteria:
        Filters:
          - Pattern: '{"eventName": ["INSERT"]}'
  Again:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Sub "${AWS::StackName}-again"
      DefinitionUri: again.json
      DefinitionSubstitutions: {Function: !Ref First}
  Items:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema:
        - {AttributeName: a, KeyType: HASH}
        - {AttributeName: b, KeyType: RANGE}
      TimeToLiveSpecification: {AttributeName: gone_at, Enabled: true}
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
"""


def load_text(folder: Path, text: str) -> Template:
    (folder / "again.json").write_text('{"Call": "${Function}"}', encoding="utf-8")
    path = folder / "template.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


@pytest.fixture
def sample(tmp_path: Path) -> Template:
    return load_text(tmp_path, SAMPLE)


def test_functions_take_shared_settings_and_their_own(sample: Template, tmp_path: Path) -> None:
    first, second = sample.functions
    assert (first.name, second.name) == ("cirrusmq-first", "Second")
    assert (first.timeout_seconds, second.timeout_seconds) == (60, 20)
    assert first.folder == tmp_path / "functions/first"
    assert second.handler == "app.handler"


def test_policies_tell_a_functions_permissions(sample: Template) -> None:
    first, second = sample.functions
    assert first.may("a:Read", "Items.Arn", partition="B#1")
    assert first.may("a:Write", "Items.Arn", partition="A#1")
    assert first.may("a:Write", "Nothing.Arn", "Items.Arn", partition="A#1")
    assert not first.may("a:Write", "Items.Arn", partition="B#1")
    assert not first.may("a:Write", "Items.Arn")
    assert not first.may("a:Read", "Others.Arn")
    assert not second.may("a:Write", "Items.Arn")  # without policies it may do nothing


def test_references_are_resolved(sample: Template) -> None:
    assert sample.functions[0].environment == {
        "LEVEL": "INFO",
        "TABLE": "Items",
        "NEXT": "Second-${literal}",
        "ARN": "Items.Arn",
        "JOINED": "a/local",
        "ROLLED": "ServerlessDeploymentApplication",
        "CHOSEN": "INFO",
    }


def test_routes_schedules_streams_machines_and_tables_are_found(sample: Template) -> None:
    assert sample.routes == [
        Route(function="cirrusmq-first", method="GET", path="/a/{b}"),
        Route(function="cirrusmq-first", method="", path=""),
    ]
    assert [route.key for route in sample.routes] == ["GET /a/{b}", "$default"]
    assert sample.schedules == [Schedule(function="cirrusmq-first", seconds=300)]
    (stream,) = sample.streams
    assert (stream.table, stream.batch_size, stream.window_seconds) == ("Items", 100, 0)
    assert stream.filters == [{"eventName": ["INSERT"]}]
    assert stream.function == "cirrusmq-first"
    (machine,) = sample.machines
    assert machine.arn == "arn:aws:states:local:000000000000:stateMachine:cirrusmq-again"
    assert (machine.logical_id, machine.definition) == ("Again", '{"Call": "cirrusmq-first"}')
    (table,) = sample.tables
    assert (table.name, table.partition_key, table.sort_key) == ("Items", "a", "b")
    assert (table.ttl_attribute, table.stream) == ("gone_at", True)


def test_functions_of_one_process_must_agree_on_their_variables(sample: Template) -> None:
    assert sample.environment()["LEVEL"] == "INFO"
    functions = list(sample.functions)
    other = type(functions[1])(**(vars(functions[1]) | {"environment": {"LEVEL": "DEBUG"}}))
    clashing = Template(**(vars(sample) | {"functions": [functions[0], other]}))
    with pytest.raises(TemplateError, match="LEVEL differs"):
        clashing.environment()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("!Ref Items", "!Ref Nothing", "refers to Nothing"),
        ("!GetAtt Items.Arn", "!GetAtt Nothing.Arn", "refers to Nothing"),
        ("!Ref Items", "!ImportValue x", "!ImportValue is not understood"),
        ("!If [IsLoud,", "!If [IsQuiet,", "no condition IsQuiet"),
        ("ForAllValues:StringLike", "StringEquals", "condition"),
        ("rate(5 minutes)", "'cron(0 * * * ? *)'", "use rate"),
        ("Resources:", "Others:", "no Resources"),
        ("Parameters:", "Parameters: [", "not YAML"),
    ],
)
def test_an_unreadable_template_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(TemplateError, match=message):
        load_text(tmp_path, SAMPLE.replace(old, new, 1))


def test_a_missing_template_is_named(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"nowhere\.yaml"):
        load(tmp_path / "nowhere.yaml")
