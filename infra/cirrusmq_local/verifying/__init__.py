"""Proving a running service: a bounded load with faults, judged by its calls, and a signed result.

`remote.py` makes the calls and notes them; `scenes.py` has the scenes, `run.py` plays one;
`proxy.py` and `machine.py` make faults, `journal.py` knows how to undo them; `promises.py` says
which promise each check is of; `result.py` writes the result, `signing.py` signs it.
"""

from __future__ import annotations
