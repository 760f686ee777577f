"""Names that a stack can have: the names of its resources begin with it, and have limits.

CloudFormation takes 128 characters, and a template's rules cannot check the stack's name. Without
this check Lambda would refuse a name that is too long in the middle of a deployment.
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
"""Maximum length of names in the templates, by resource type and property."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_SHORT, _LONG = "s", "ss"


class StackNameError(Exception):
    """A stack cannot have this name; the text has the reason."""


def max_characters(template: Path) -> tuple[int, str]:
    """Returns the maximum length of a stack's name, and the resource that sets it."""
    short, long = _names(template, _SHORT), _names(template, _LONG)
    limits = []
    for part, (limit, name) in short.items():
        grows = len(long[part][1]) - len(name)
        if grows:
            limits.append(((limit - len(name)) // grows + len(_SHORT), part))
    return min(limits)


def check_stack_name(template: Path, name: str) -> None:
    """Raises StackNameError if a stack of the template cannot have this name."""
    limit, part = max_characters(template)
    if not _NAME.fullmatch(name):
        raise StackNameError(
            f"{name}: a stack's name begins with a letter and has letters, digits and hyphens"
        )
    if len(name) > limit:
        raise StackNameError(
            f"{name}: a stack's name has at most {limit} characters, this one has {len(name)}; the"
            f" name of {part} begins with it"
        )


def _names(template: Path, stack_name: str) -> dict[str, tuple[int, str]]:
    """Returns the named resources of a deployment: each name's limit, and the name."""
    found = {}
    for stack in StackTemplate(template, stack_name, "local").stacks():
        for part, resource in stack.document["Resources"].items():
            for (kind, name), limit in CHARACTERS.items():
                properties = resource.get("Properties") or {}
                if resource.get("Type") == kind and name in properties:
                    found[part] = limit, str(stack.resolve(properties[name]))
    return found
