"""Runtime: what an execution environment has: the store's port, time, caches, memories.

Passed to every call as a `Core`; made by the wiring.
"""
