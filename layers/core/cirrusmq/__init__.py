"""CirrusMQ's core: queues and their messages on DynamoDB. No HTTP and no Lambda event in it.

The words that it is written in, and where each is defined:

    log record       the messages of one send as they were sent; written once   storage/parcels.py
    parcel           the delivery state of those messages in one source         model/parcel.py
    source           a queue, a receiver of it, or a subscription               model/source.py
    head             the end of a partition from which messages are received    receiving/unordered.py
    head mark, hint  how far a head need not be read: shared, private           model/head_mark.py,
                                                                                runtime/head_hints.py
    claim            the write that gives a receiver its lease                  receiving/claim.py
    hold             a lease made longer or shorter by its receipt              settlement/visibility.py
    receipt          the opaque text by which a consumer settles a message      model/receipt.py
    move             a message put under another key or into another queue      lifecycle/moves.py
    tombstone        an empty parcel that keeps its key from being used again   lifecycle/tombstones.py
    copy             a log record's messages for one reader                     fanout/copies.py
    parked           put aside, because a reader's key takes no writes now      fanout/parking.py
    delivery state   delivering or retrying, and who posts, for one URL         subscriptions/
                                                                                delivery_state.py
    due mark         when a message is posted again                             subscriptions/due_marks.py

The packages are in one order: each imports those below it (`[tool.importlinter]` in pyproject.toml).
"""

from __future__ import annotations

__version__ = "0.1.0"
