"""The reason of a dead letter, read from the note in its parcel: MessagePack in base64.

The note is a map whose members the service writes in one order: …, `dead_at` (eight bytes),
`reason` (a text of up to 256 characters), …
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from cirrusmq_reports.figures import DEAD_REASONS

_DEAD_AT, _REASON = "A7" + b"dead_at".hex().upper(), "A6" + b"reason".hex().upper()
_BEFORE = f"{_DEAD_AT}CF[0-9A-F]{{16}}{_REASON}"
"""Both names, so that a queue with such a name does not match."""


def reason_of_note() -> Column:
    """Returns the index of a note's reason (column `d`) in DEAD_REASONS; null without a note.

    For any other text, and for a note in another form, it is one behind the last index.
    """
    # As a number: with a text among the columns Spark sorts every message.
    note = sf.hex(sf.unbase64("d.B"))
    place = sf.lit(len(DEAD_REASONS))
    for number, reason in enumerate(DEAD_REASONS):
        text = f"{0xA0 + len(reason):02X}{reason.encode().hex().upper()}"
        place = sf.when(note.rlike(_BEFORE + text), sf.lit(number)).otherwise(place)
    return sf.when(sf.col("d.B").isNotNull(), place)
