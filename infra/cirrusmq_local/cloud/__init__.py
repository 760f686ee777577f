"""AWS's part of the service, on one machine: Lambda, streams, schedules, executions, routes.

Read from `template.yaml`; used by the stack and by `testing.World`.
"""

from __future__ import annotations
