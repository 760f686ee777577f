"""CloudFormation's event, and the properties of each type of resource.

CloudFormation turns every number and boolean in the properties into a text.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import field

from cirrusmq.access.grants import Permission, TopicPermission
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import ACCOUNT_NAME, check_name
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import QueueInput, ReceiverInput
from cirrusmq.model.topic import SubscriptionInput, TopicInput
from cirrusmq.schedules.schedule import ScheduleInput
from cirrusmq_lambda.custom_resources.identity import Place
from cirrusmq_lambda.routes.access import GrantRequest, TopicGrantRequest


class CustomRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An event of CloudFormation; members that are not needed are ignored.

    Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html
    """

    type: Literal["Create", "Update", "Delete"] = field(name="RequestType")
    response_url: str = field(name="ResponseURL")
    stack_id: str = field(name="StackId")
    request_id: str = field(name="RequestId")
    logical_id: str = field(name="LogicalResourceId")
    resource_type: str = field(name="ResourceType")
    physical_id: str = field(name="PhysicalResourceId", default="")
    properties: dict[str, Any] = field(name="ResourceProperties", default_factory=dict)


class _Properties(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="pascal"
):
    """Properties of every type. The first two are CloudFormation's own."""

    service_token: str = ""
    service_timeout: int = 0
    account: str
    delete_with_contents: bool = False

    @property
    def place(self) -> Place:
        """The key of the resource."""
        raise NotImplementedError


class QueueProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQQueue`."""

    name: str
    attributes: QueueInput = QueueInput()

    @property
    def place(self) -> Place:
        return Place(self.account, "queue", self.name)


class TopicProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQTopic`."""

    name: str
    attributes: TopicInput = TopicInput()

    @property
    def place(self) -> Place:
        return Place(self.account, "topic", self.name)


class ReceiverProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQReceiver`."""

    queue: str
    name: str
    attributes: ReceiverInput = ReceiverInput()

    @property
    def place(self) -> Place:
        return Place(self.account, "receiver", self.name, self.queue)


class SubscriptionProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQSubscription`."""

    topic: str
    name: str
    attributes: SubscriptionInput

    @property
    def place(self) -> Place:
        return Place(self.account, "subscription", self.name, self.topic)


class GrantProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQGrant`; `To` is the account that may use the queue."""

    queue: str
    to: str
    permission: Permission

    @property
    def attributes(self) -> GrantRequest:
        """The grant's body in a call over HTTP."""
        return GrantRequest(permission=self.permission)

    @property
    def place(self) -> Place:
        return Place(self.account, "grant", self.to, self.queue)


class TopicGrantProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQTopicGrant`; `To` may use the topic."""

    topic: str
    to: str
    permission: TopicPermission

    @property
    def attributes(self) -> TopicGrantRequest:
        """The grant's body in a call over HTTP."""
        return TopicGrantRequest(permission=self.permission)

    @property
    def place(self) -> Place:
        return Place(self.account, "topic_grant", self.to, self.topic)


class ScheduleProperties(_Properties, frozen=True, kw_only=True):
    """The properties of a `Custom::CirrusMQSchedule`."""

    name: str
    attributes: ScheduleInput

    @property
    def place(self) -> Place:
        return Place(self.account, "schedule", self.name)


Properties: TypeAlias = (
    QueueProperties
    | TopicProperties
    | ReceiverProperties
    | SubscriptionProperties
    | GrantProperties
    | TopicGrantProperties
    | ScheduleProperties
)
TYPES: dict[str, type[Properties]] = {
    "Custom::CirrusMQQueue": QueueProperties,
    "Custom::CirrusMQTopic": TopicProperties,
    "Custom::CirrusMQReceiver": ReceiverProperties,
    "Custom::CirrusMQSubscription": SubscriptionProperties,
    "Custom::CirrusMQGrant": GrantProperties,
    "Custom::CirrusMQTopicGrant": TopicGrantProperties,
    "Custom::CirrusMQSchedule": ScheduleProperties,
}


def read_properties(request: CustomRequest) -> Properties:
    """Returns a request's properties. Raises InvalidParameter if one is unknown or out of range."""
    shape = TYPES.get(request.resource_type)
    if shape is None:
        raise InvalidParameter("Type", f"must be one of {', '.join(TYPES)}")
    given = dict(request.properties)
    attributes = given.get("Attributes")
    if isinstance(attributes, dict) and isinstance(attributes.get("retry"), dict):
        retry = {name: _number(name, held) for name, held in attributes["retry"].items()}
        given["Attributes"] = attributes | {"retry": retry}
    properties = read_values(given, shape, strict=False)
    check_name("Account", properties.account, ACCOUNT_NAME)
    if isinstance(properties, SubscriptionProperties):
        _check_protocol(properties.attributes)
    return properties


def _check_protocol(attributes: SubscriptionInput) -> None:
    # A person confirms a URL, and its secret is shown once: neither fits into a template.
    if attributes.protocol == "http":
        raise InvalidParameter(
            "Attributes.protocol", "must be queue or pull: URLs are subscribed over HTTP"
        )


def _number(name: str, held: Any) -> Any:
    """Returns a retry policy's member as a number; `policy`, and a text that is none, unchanged."""
    if isinstance(held, list):
        return [_number(name, each) for each in held]
    if name == "policy" or not isinstance(held, str):
        return held
    for kind in (int, float):
        try:
            return kind(held)
        except ValueError:
            continue
    return held
