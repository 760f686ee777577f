"""The shapes of items between a client and the engine, and their encoding on disk."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

# {"S": "text"}, {"N": "12"}, {"B": b"raw"}, {"L": [...]}, ...: always exactly one member.
AttributeValue: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, AttributeValue]
# The values of a request's placeholders, by their name with the colon.
Values: TypeAlias = dict[str, AttributeValue]

# Sorted, so that equal items have equal bytes: "nothing changed" is a comparison of bytes.
_encoder = msgspec.msgpack.Encoder(order="sorted")
_decoder = msgspec.msgpack.Decoder(dict[str, dict[str, Any]])

encode_item = _encoder.encode
decode_item = _decoder.decode
