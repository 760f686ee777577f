"""Messages by their ids: `find` looks for them, `cancel` takes back or puts off.

`storage.locations` has the present keys of messages whose due time was changed.
"""
