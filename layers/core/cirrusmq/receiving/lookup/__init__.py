"""Messages by their ids: `find` looks for them, `cancel` takes back or puts off.

`locations` has the present keys of messages whose due time was changed.
"""
