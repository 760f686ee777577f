"""Dead letters: which messages are, their way into a dead-letter queue, and dead letters by age.

`policy` and `letter_filter` are rules; `move` settles a used-up message; `age_limit` finds messages
that nobody receives; `own_queue` makes the queue of a subscription.
"""
