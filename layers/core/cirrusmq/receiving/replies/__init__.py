"""Replies to requests: the item of a reply, the replier's end, and the asker's.

The note in a request's parcel is `model/reply_note.py`; the send's part is `sending/asking.py`.
"""
