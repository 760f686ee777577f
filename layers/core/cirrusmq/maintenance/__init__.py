"""Maintenance: the sweep's work once a minute, for resources that no caller uses meanwhile.

Called by the sweep's handler alone. It may call everything but the wiring.
"""
