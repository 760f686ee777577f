"""Metering: usage records for the bill, what each resource keeps and its last hour, by the stream.

Called by the handlers of the meter, of the rates and of the reports, and by the sweep.
"""
