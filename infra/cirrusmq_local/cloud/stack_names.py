"""Names that a stack can have: the names of its parts begin with it, and have limits.

CloudFormation takes 128 characters, but a rule of a template sees parameters alone, not the stack's
name: a longer one than this allows would be refused by Lambda in the midst of the deployment.
"""

from __future__ import annotations

import re
from pathlib import Path

from cirrusmq_local.cloud.cloudformation import StackTemplate

CHARACTERS = {
    ("AWS::Serverless::Function", "FunctionName"): 64,
    ("AWS::Serverless::StateMachine", "Name"): 80,
    ("AWS::Serverless::HttpApi", "Name"): 128,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::CloudWatch::Alarm", "AlarmName"): 255,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::EMRServerless::Application", "Name"): 64,
}
"""Of the names that the templates give, by type and property."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_SHORT, _LONG = "s", "ss"


class StackNameError(Exception):
    """A stack cannot have this name; the text says why."""


def most_characters(template: Path) -> tuple[int, str]:
    """How long the name of a stack may be, and the part of it that allows no more."""
    short, long = _names(template, _SHORT), _names(template, _LONG)
    limits = []
    for part, (limit, name) in short.items():
        grows = len(long[part][1]) - len(name)
        if grows:
            limits.append(((limit - len(name)) // grows + len(_SHORT), part))
    return min(limits)


def check_stack_name(template: Path, name: str) -> None:
    """Raises StackNameError where a stack of the template cannot have this name."""
    most, part = most_characters(template)
    if not _NAME.fullmatch(name):
        raise StackNameError(
            f"{name}: a stack's name begins with a letter and has letters, digits and hyphens"
        )
    if len(name) > most:
        raise StackNameError(
            f"{name}: a stack's name has at most {most} characters, this one has {len(name)}; the"
            f" name of {part} begins with it"
        )


def _names(template: Path, stack_name: str) -> dict[str, tuple[int, str]]:
    """The named parts of a deployment: the limit of each name, and the name."""
    found = {}
    for stack in StackTemplate(template, stack_name, "local").stacks():
        for part, resource in stack.document["Resources"].items():
            for (kind, name), limit in CHARACTERS.items():
                properties = resource.get("Properties") or {}
                if resource.get("Type") == kind and name in properties:
                    found[part] = limit, str(stack.resolve(properties[name]))
    return found
