"""Publishing: a topic's log records, their ids, and reading them in order.

Called by the HTTP routes; fan-out and the meter read the records by it.
"""
