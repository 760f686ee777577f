"""Queues, topics and what belongs to them as CloudFormation's custom resources.

    requests.py     CloudFormation's event, and the properties of each type
    identity.py     the id under which CloudFormation knows a resource
    resources.py    making, changing and deleting one, by the operations of the core
    responses.py    the answer, which is PUT to a signed URL
    serve.py        from the event to the answer, in time

Loaded by the first such event: a function that only answers HTTP calls has no use for it.
"""

from __future__ import annotations
