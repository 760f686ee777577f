"""Invoking: handing the messages of a queue or a pull group to a function that it names.

Called by the handler of `call`, which `fan_out`, the sweep and the retry schedules wake.
"""
