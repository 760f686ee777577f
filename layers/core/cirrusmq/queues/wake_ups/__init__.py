"""Wake-ups: a send tells the receivers that wait which partition to look at.

`announce` is the sender's end, `follow` the receiver's: neither loads the other.
"""
