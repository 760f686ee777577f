"""Judging a queue service by its calls: a history of them, the promises that it can break.

`history.py` has the calls with beginning, end and answer; `tracks.py` sorts them by message; each
`check_*.py` looks for one kind of broken promise. Senders, consumers and operators make the calls:
`deployment.py` says what they know of a service. The simulation plays them on its clock.
"""

from __future__ import annotations
