"""The example of queues in a template of others names what the deployment exports.

That the linter has no finding in it is shown by `test_scans.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.infra.tools import EXAMPLE, ROOT

from cirrusmq_local.cloud.cloudformation import read


def test_the_import_of_the_example_is_exported_and_is_the_deployed_version(
    transformed: list[Path],
) -> None:
    documents: list[dict[str, Any]] = [read(path) for path in transformed]
    [document] = [each for each in documents if "ManageFunction" in each.get("Outputs", {})]
    output = document["Outputs"]["ManageFunction"]
    assert output["Export"] == {"Name": {"Fn::Sub": "${AWS::StackName}-ManageFunction"}}
    alias = document["Resources"][output["Value"]["Ref"]]
    assert alias["Type"] == "AWS::Lambda::Alias"
    assert alias["Properties"]["FunctionName"] == {"Ref": "Manage"}
    assert "${Service}-ManageFunction" in (ROOT / EXAMPLE).read_text()
