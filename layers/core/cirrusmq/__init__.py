"""CirrusMQ's core: queues and their messages on DynamoDB. No HTTP and no Lambda event in it.

The words that it is written in, and the file that defines each:

    log record      the messages of one send as they were sent       storage/parcels.py
    object          the messages of a large send, in the bucket      storage/bodies
    envelope        all of a message but its body                    model/envelope.py
    parcel          the delivery state of those messages             model/parcel.py
    transition      a step in a message's life, and all there are    model/transitions.py
    source          a queue, a receiver of one, or a subscription    model/source.py
    head            where the receiving of a partition begins        receiving/heads
    ring            the groups of a fair partition, in turns         receiving/fair.py
    walk            parcels group by group, whole or cut             storage/walk.py
    round           walks that go on until every group was seen      receiving/rounds.py
    level           the messages of one priority                     model/priority.py
    head mark       how far a head need not be read, for all         receiving/heads/watermark.py
    hint            the same, for one execution environment          receiving/heads/memory.py
    ended head      what no look at an ordered group need read again receiving/heads/ended.py
    wake-up         tells receivers which partition to look at       queues/wake_ups
    claim           the write that gives a receiver its lease        receiving/claim.py
    hold            a lease made longer or shorter by its receipt    settlement/visibility.py
    portion         messages of a parcel that are given back alike   settlement/requeue.py
    receipt         the text by which a consumer settles a message   model/receipt.py
    move            a message put under another key or elsewhere     lifecycle/moves.py
    tombstone       an empty parcel that keeps its key taken         lifecycle/tombstones.py
    dead letter     a message that is used up, or too old            lifecycle/dead_letters
    look-up         of a message by its id, to cancel it or put off  receiving/lookup
    chore           a parcel that a look met, for replay to deal with lifecycle/chores.py
    copy            a log record's messages for one reader           fanout/reader_parcels.py
    frontier        how far a log is replayed: no receiver is beyond queues/frontiers.py
    backlog         what was in a queue before its log was on        queues/reader_backlog.py
    parked          put aside while a reader's key takes no writes   fanout/parked.py
    replacement     a message takes the place of the one that waits  sending/replacing
    request         a message that asks for a reply by a deadline    model/reply_note.py
    request's end   its reply, or that its asker gave up             receiving/replies
    delivery state  delivering or retrying, and the poster's lease   subscriptions/delivery
    pace            a subscription's rate, as its poster keeps it    push/rate_limiter.py
    slow            a post took over a second: push_slow posts       subscriptions/delivery/rules.py
    share           what an account may have at work at once         access/shares.py
    history         the latest posts of a message to its URL         model/post_history.py
    half message    a publish that nobody sees before its commit     publishing/half_messages
    schedule        a message at times; its mark has the next one    schedules
    due mark        when a message is posted again                   subscriptions/delivery
    lease           who works on something, and until when           storage/lease.py
    slot            the right to call a source's function            invoking/slots.py
    filter policy   as SNS has it, on attributes or on the body      filters/policies
    SQL filter      a condition on a message's attributes            filters/sql
    audit           which key made which change, for its account     access/audit.py
    consumer        a key that received from a source, and when last access/consumers.py

The packages are in one order: each imports those below it (`[tool.importlinter]`, pyproject.toml).
"""

from __future__ import annotations

__version__ = "0.1.0"
