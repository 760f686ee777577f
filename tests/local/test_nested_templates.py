from __future__ import annotations

from pathlib import Path

import pytest

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.template import Template, load

ABOVE = """
Parameters:
  Level: {Type: String, Default: INFO}
Resources:
  First:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub "${AWS::StackName}-first"
      CodeUri: functions/first
      Handler: app.handler
      Policies:
        - Statement:
            - {Action: "a:Read", Resource: !GetAtt Store.Outputs.ItemsArn}
      Environment:
        Variables:
          ITEMS: !GetAtt Store.Outputs.Items
          DEEP: !Sub "${Store.Outputs.Deep}/x"
  Again:
    Type: AWS::Serverless::Application
    Properties:
      Location: nested/again.yaml
      Parameters:
        Service: !Ref AWS::StackName
        Function: !Ref First
        Items: !GetAtt Store.Outputs.ItemsArn
  Store:
    Type: AWS::Serverless::Application
    Properties:
      Location: nested/store.yaml
      Parameters: {Level: !Ref Level}
"""
AGAIN = """
Parameters:
  Service: {Type: String}
  Function: {Type: String}
  Items: {Type: String}
Resources:
  Machine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Sub "${Service}-again"
      DefinitionUri: ../machines/again.json
      DefinitionSubstitutions: {Function: !Ref Function, Items: !Ref Items}
"""
STORE = """
Parameters:
  Level: {Type: String, Default: DEBUG}
Conditions:
  IsQuiet: !Equals [!Ref Level, INFO]
Resources:
  Items:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema:
        - {AttributeName: a, KeyType: HASH}
        - {AttributeName: b, KeyType: RANGE}
      TimeToLiveSpecification: {AttributeName: gone_at, Enabled: true}
  Deeper:
    Type: AWS::Serverless::Application
    Properties: {Location: deeper/template.yaml}
Outputs:
  Items: {Value: !Ref Items}
  ItemsArn: {Value: !GetAtt Items.Arn}
  Deep: {Value: !If [IsQuiet, !GetAtt Deeper.Outputs.Name, loud]}
"""
DEEPER = """
Resources:
  Second:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: ../functions/second, Handler: app.handler}
Outputs:
  Name: {Value: !Ref AWS::StackName}
"""


def load_texts(folder: Path, above: str, again: str = AGAIN, store: str = STORE) -> Template:
    texts = {
        "template.yaml": above,
        "nested/again.yaml": again,
        "nested/store.yaml": store,
        "nested/deeper/template.yaml": DEEPER,
        "machines/again.json": '{"Call": "${Function}", "On": "${Items}"}',
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load(folder / "template.yaml")


@pytest.fixture
def sample(tmp_path: Path) -> Template:
    return load_texts(tmp_path, ABOVE)


def test_all_templates_are_one_deployment(sample: Template, tmp_path: Path) -> None:
    assert [each.name for each in sample.functions] == ["cirrusmq-first", "Second"]
    assert sample.functions[1].folder == tmp_path / "nested/deeper/../functions/second"
    assert [each.name for each in sample.tables] == ["Items"]


def test_parameters_are_passed_down_and_paths_are_relative_to_the_nested_template(
    sample: Template,
) -> None:
    (machine,) = sample.machines
    assert machine.arn == "arn:aws:states:local:000000000000:stateMachine:cirrusmq-again"
    assert machine.definition == '{"Call": "cirrusmq-first", "On": "Items.Arn"}'


def test_outputs_are_values_of_the_template_above(sample: Template) -> None:
    first = sample.functions[0]
    assert first.environment == {"ITEMS": "Items", "DEEP": "cirrusmq-Store-Deeper/x"}
    assert first.may("a:Read", "Items.Arn")
    assert not first.may("a:Read", "Others.Arn")


def test_a_passed_value_replaces_a_default(tmp_path: Path) -> None:
    loud = load_texts(tmp_path, ABOVE.replace("Default: INFO", "Default: ERROR"))
    assert loud.functions[0].environment["DEEP"] == "loud/x"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("        Function: !Ref First\n", "", "no value for its parameter Function"),
        ("{Level: !Ref Level}", "{Leve: !Ref Level}", r"store\.yaml has no parameter Leve"),
        ("Outputs.Items\n", "Outputs.Item\n", r"store\.yaml has no output for Outputs\.Item"),
        ("Outputs.Items\n", "Items\n", r"store\.yaml has no output for Items"),
        ("nested/store", "nested/shop", r"cannot read .*shop\.yaml"),
        ("nested/store.yaml", "{ApplicationId: x, SemanticVersion: y}", "cannot read"),
        ("{Level: !Ref Level}", "{Level: !GetAtt Store.Outputs.Items}", "Store depends on its own"),
        ("First", "Items", "Items is a resource of 2 templates"),
    ],
)
def test_a_mismatched_template_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        load_texts(tmp_path, ABOVE.replace(old, new))
