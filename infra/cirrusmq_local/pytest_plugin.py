"""The plugin for pytest: a fixture `cirrusmq`, the service in memory on a clock that a test sets.

It is loaded in every run of pytest where the package is installed, so it imports nothing until a
test asks for the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

import pytest

if TYPE_CHECKING:
    from cirrusmq_local.testing import Service


@pytest.fixture
def cirrusmq() -> Iterator[Service]:
    """The whole service in memory, empty, with a client; see `cirrusmq_local.testing.Service`."""
    from cirrusmq_local.testing import Service

    # The functions' variables are the test's own again at its end.
    with mock.patch.dict(os.environ), Service() as service:
        yield service
