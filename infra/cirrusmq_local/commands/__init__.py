"""The command line: `cirrusmq up`, and what talks to a running service.

It knows the service by HTTP; only `up` and `report` reach into the stack.
"""

from __future__ import annotations
