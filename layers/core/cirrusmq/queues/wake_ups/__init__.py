"""Wake-ups: a send names a partition to the receivers that wait.

`announce` is the sender's end, `follow` the receiver's: neither loads the other.
"""
