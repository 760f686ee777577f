"""Ids of messages as SNS's callers know them."""

from __future__ import annotations

import hashlib
import uuid

from hypothesis import given
from hypothesis import strategies as st

from cirrusmq.model.notification import uuid_of


@given(st.text())
def test_an_id_is_a_uuid_of_version_4_made_of_the_text(text: str) -> None:
    digest = hashlib.sha256(text.encode()).digest()
    assert uuid_of(text) == str(uuid.UUID(bytes=digest[:16], version=4))
