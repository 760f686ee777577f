"""Maintenance: the sweep's work once a minute, for resources that no caller uses at the time.

Called by the sweep's handler alone. It may call everything but the wiring.
"""
