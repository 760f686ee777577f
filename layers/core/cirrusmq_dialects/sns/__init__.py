"""Amazon SNS, by the query protocol: its SDKs have no other.

serve.py                one call: its caller, its action, its answer
reading.py writing.py   forms to members; members to XML
errors.py               SNS's codes, and the contract's errors as one of them
names.py                ARNs of topics, subscriptions and queues, and the core's names
asking.py               the topics and subscriptions that a call names, as far as it may
calls.py                which function an action is
topic_calls.py tag_calls.py publish_calls.py subscription_calls.py
contents.py             a message, its subject and its attributes
subscription_attributes.py      a subscription's attributes, in and out
"""

from __future__ import annotations

from cirrusmq_dialects.sns.serve import serve

__all__ = ["serve"]
