"""Schedules: a message to a queue or a topic at times of a cron expression, or every n seconds.

    rules.py       the times of a schedule: pure, with time zones
    schedule.py    the value, and what a caller gives
    items.py       due marks, by which the sweep finds due schedules
    schedule_management.py  creating, changing, showing, listing, deleting
    messages.py    the items of a schedule's message
    firing.py      the sweep's part: each time once

Only the sweep and the function of resources load it.
"""
