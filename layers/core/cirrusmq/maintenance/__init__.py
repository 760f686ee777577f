"""Maintenance: what the sweep does once a minute, because nobody else comes by to do it.

Called by the sweep's handler alone. It may call everything but the wiring.
"""
