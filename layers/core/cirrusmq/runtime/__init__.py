"""Runtime: the ports and memories of an execution environment: store, clock, caches, hints.

Passed to every call as a `Core`; made by the wiring.
"""
