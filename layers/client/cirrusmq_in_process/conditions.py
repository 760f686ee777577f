"""Conditions for calls here: the formats fit, the clock is right, AWS lets this process in."""

from __future__ import annotations

import logging

from botocore.exceptions import BotoCoreError, ClientError

from cirrusmq.access.keys import Caller
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.formats import FORMAT
from cirrusmq.runtime.core import Core
from cirrusmq.storage.deployment_formats import formats_fit
from cirrusmq_in_process.allowances import Allowing
from cirrusmq_in_process.clock import WatchedClock

FORMATS_SECONDS = 60.0
AGAIN_SECONDS = 5.0
"""Between two readings while the clock is off, or the formats do not fit or cannot be read."""
_logger = logging.getLogger("cirrusmq_client")


class Conditions:
    """The conditions of one client, with what its calls work on. Safe for several threads."""

    def __init__(
        self,
        core: Core,
        caller: tuple[str, str],
        allowances: Allowing,
        written_format: int,
        clock: WatchedClock | None = None,
    ) -> None:
        """caller: the account and the id of the access key.

        written_format: the format that the service said it writes. clock: None if the core's clock
        is the deployment's own.
        """
        account, key_id = caller
        self.core, self.allowances = core, allowances
        self.caller = Caller(account=account, key_id=key_id)
        self._clock = clock
        self._knows = written_format <= FORMAT
        self._fits, self._read_at = False, 0.0
        self._told: set[str] = set()

    def works(self) -> bool:
        """Returns True if calls may be made here now: the formats fit, and the clock is right."""
        if not self._knows:
            return False
        now = self.allowances.now()
        if now >= self._read_at:
            self._read_at = now + AGAIN_SECONDS
            self._fits = self._read_formats()
            if self._fits:
                self._read_at = now + FORMATS_SECONDS
        if self._clock is None or self._clock.is_right():
            return self._fits
        # An answer is needed to see that the clock was set right.
        self._read_at = min(self._read_at, now + AGAIN_SECONDS)
        return False

    def refused(self, queue: str, error: Exception) -> None:
        """AWS refused a call of the queue: it is left to the URL for a while, and told once."""
        self.allowances.rest(queue)
        code = ""
        if isinstance(error, ClientError):
            code = f"{error.operation_name}: {error.response['Error']['Code']}"
        self._tell(code or repr(error))

    def close(self) -> None:
        """Ends waits."""
        if self._clock is not None:
            self._clock.close()

    def _read_formats(self) -> bool:
        try:
            return formats_fit(self.core)
        except (CirrusMQError, ClientError, BotoCoreError) as error:
            self._tell(f"the formats cannot be read: {error}")
            return False

    def _tell(self, reason: str) -> None:
        if reason not in self._told and len(self._told) < 16:
            self._told.add(reason)
            _logger.warning("calls go by the service's URL: %s", reason)
