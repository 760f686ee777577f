"""Prints the logical ids of the functions' versions; run by the SAM command line's own Python.

version_ids.py <template>; on standard input a JSON list: [{"layer": URI, "parameters": {…}}, …].
Each is a deployment, of which CloudFormation tells the transform the values of the parameters.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from pathlib import Path
from typing import Any


class NoManagedPolicies:
    """The names of AWS's own policies take an account to look up; the template names none."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    validator = importlib.import_module("samcli.lib.translate.sam_template_validator")
    yaml = importlib.import_module("samcli.yamlhelper")
    document = yaml.yaml_parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # Routes make most of a template's size, and nothing of a version.
    for resource in document["Resources"].values():
        resource.get("Properties", {}).pop("Events", None)
    answers: list[list[str]] = []
    for deployment in json.load(sys.stdin):
        template: dict[str, Any] = copy.deepcopy(document)
        template["Resources"]["CoreLayer"]["Properties"]["ContentUri"] = deployment["layer"]
        sam = validator.SamTemplateValidator(
            template,
            NoManagedPolicies(),
            region="eu-central-1",
            parameter_overrides=deployment["parameters"],
        )
        resources = yaml.yaml_parse(sam.get_translated_template_if_valid())["Resources"]
        versions = [n for n, held in resources.items() if held["Type"] == "AWS::Lambda::Version"]
        answers.append(sorted(versions))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
