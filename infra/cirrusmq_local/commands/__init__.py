"""The command line: `cirrusmq up`, and the commands of a running service.

It knows the service by HTTP; only `up` and `report` reach into the stack.
"""

from __future__ import annotations
