"""Bodies of messages that are too large for their parcel: objects in a bucket.

`object` has names and classes, `bucket` reads and writes, `write` is for what sends, `contents` for
what needs the messages of a parcel, wherever their bodies are.
"""
