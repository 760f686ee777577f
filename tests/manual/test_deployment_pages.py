"""The pages of a deployment name what there is: parameters, outputs, and their commands."""

from __future__ import annotations

import re

import yaml
from tests.manual.pages import MANUAL, ROOT

from cirrusmq_local.cloud.cloudformation import read
from manual.made import WHEN, with_tables

TEMPLATE = read(ROOT / "template.yaml")
PAGES = sorted(MANUAL.glob("*.md"))


def test_each_parameter_is_in_a_group_and_says_when_it_is_changed() -> None:
    groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    assert sorted(grouped) == sorted(TEMPLATE["Parameters"])
    when = yaml.safe_load(WHEN.read_text("utf-8"))
    assert when.keys() == TEMPLATE["Parameters"].keys()
    page = with_tables((MANUAL / "parameters.md").read_text("utf-8"))
    for name, held in TEMPLATE["Parameters"].items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", page, re.M)
        assert held["Description"] in row
        assert when[name] in row


def test_parameters_on_pages_are_the_templates() -> None:
    named = {
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"`([A-Z][a-z][A-Za-z0-9]+)=", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert not [each for each in named if each[1] not in TEMPLATE["Parameters"]]


def test_outputs_named_by_later_steps_are_there() -> None:
    """By the name that pages and the command line use."""
    sources = [*PAGES, *(ROOT / "infra/cirrusmq_local/commands").glob("*.py")]
    named = {
        (path.name, name)
        for path in sources
        for name in re.findall(
            r"(?:outputs? `?|[(]outputs |<)([A-Z][a-z]+[A-Z][A-Za-z]+)[>)`]",
            path.read_text("utf-8"),
        )
    }
    assert len(named) >= 8
    assert not [each for each in named if each[1] not in TEMPLATE["Outputs"]]


def test_every_part_outliving_the_stack_has_an_output() -> None:
    wanted = {
        *("DirectoryTable", "MessagesTable", "UsageTable", "UnprocessedQueue", "KeyArn"),
        *("SecretArn", "BodiesBucket", "PipelineBucket", "ReportsBucket"),
    }
    assert wanted <= TEMPLATE["Outputs"].keys()


def test_the_page_of_a_deployment_is_short() -> None:
    assert len((MANUAL / "deploying.md").read_text("utf-8").split()) <= 400
