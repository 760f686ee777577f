"""Wiring: one `Core` for each process, with its ports on AWS.

Called by the handlers of `functions/` and by the stack on one machine; nothing in the core
imports it.
"""
