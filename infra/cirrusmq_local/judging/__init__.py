"""Judging a queue service by its calls: a history of them, the promises that it can break.

`history.py` has the calls with beginning, end and answer; `tracks.py` sorts them by message; each
`check_*.py` looks for one kind of broken promise. Senders, consumers and operators make the calls:
they know of a service what `deployment.py` says. The simulation plays them on a clock of its own.
"""

from __future__ import annotations
