"""Operations: long work on a queue (purge, rewind, redrive, backfill), in steps that may run twice.

Started by the HTTP routes, run by the `replay` handler, resumed by the sweep. What an operation
is, and where it is kept, says `queues.operations`.
"""
