"""Bodies of messages that are too large for their parcel: objects in a bucket.

`object` has names and classes, `bucket` reads and writes, `write` is for senders, `contents` for
readers of a parcel's messages, wherever their bodies are.
"""
