"""Invoking: calling a function with the messages of a queue or a pull group that names it.

Called by the handler of `call`, which `fan_out`, the sweep and the retry schedules wake.
"""
