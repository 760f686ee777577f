"""The plugin for pytest: a fixture `cirrusmq`, the service in memory on a clock for the test.

If the package is installed, every run of pytest loads the plugin, so it imports nothing until a
test uses the fixture.
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

    # At the end of the test the environment's variables are restored.
    with mock.patch.dict(os.environ), Service() as service:
        yield service
