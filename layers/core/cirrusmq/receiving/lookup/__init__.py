"""Messages by their ids: `find` looks for them, `cancel` takes back or puts off.

`locations` keeps where a message went that left the key of its id.
"""
