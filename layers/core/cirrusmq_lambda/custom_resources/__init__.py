"""Queues, topics and their parts as CloudFormation's custom resources.

    requests.py     CloudFormation's event, and the properties of each type
    identity.py     a resource's physical id in CloudFormation
    resources.py    makes, changes and deletes a resource, by the core's operations
    responses.py    sends the answer by PUT to a signed URL
    serve.py        handles an event, and answers in time

Imported at the first such event: a function that only answers HTTP calls does not need it.
"""

from __future__ import annotations
