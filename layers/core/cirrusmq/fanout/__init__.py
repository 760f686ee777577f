"""Fan-out: from a log record to the parcels of each reader, by the stream.

Called by the handler of the stream and by `replay`. A share that cannot be handed out is parked.
"""
