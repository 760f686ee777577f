"""Dead letters: which message is one, its way into a dead-letter queue, and those that are by age.

`policy` and `letter_filter` are rules; `move` settles a used-up message; `age_limit` finds those
that nobody receives; `own_queue` makes the queue of a subscription.
"""
