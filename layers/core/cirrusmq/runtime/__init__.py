"""Runtime: the ports and memories of an execution environment: store, clock, caches.

Passed to every call as a `Core`; made by the wiring.
"""
