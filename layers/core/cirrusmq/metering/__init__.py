"""Metering: usage records for the bill, and how much each resource keeps, from the stream.

Called by the handlers of the meter and of the reports, and by the sweep.
"""
