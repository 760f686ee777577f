"""Operations, in steps that may run twice: long work on a queue (purge, rewind, redrive, backfill)
or on a topic's group (replay).

Started by the HTTP routes, run by the `replay` handler, resumed by the sweep. An operation's
document and its storage are in `queues.operations`.
"""
