"""The work of each second while the stack runs: cleans the store and watches the data folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from cirrusmq_local.bucket import Bucket
from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.cloud.pump import Pump
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.engine import Engine
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.stack.trouble import Trouble

UPKEEP_SECONDS = 1.0
EXPIRED_AT_ONCE = 1_000

_log = logging.getLogger(__name__)


class Upkeep:
    """Two loops, each in a thread, until the clock stops. `pause_seconds`: on that clock."""

    def __init__(
        self,
        engine: Engine,
        bucket: Bucket,
        template: Template,
        data: DataFolder,
        trouble: Trouble,
        clock: ScaledClock,
        pause_seconds: float,
    ) -> None:
        self._engine = engine
        self._bucket = bucket
        self._template = template
        self._data = data
        self._trouble = trouble
        self._clock = clock
        self._pause_seconds = pause_seconds

    def keep_up(self, pumps: Sequence[Pump]) -> None:
        """Removes expired items and objects, and changes that all readers of a stream have read."""
        while True:
            try:
                while self._engine.remove_expired(EXPIRED_AT_ONCE) == EXPIRED_AT_ONCE:
                    self._clock.sleep(0)
                while self._bucket.remove_expired(EXPIRED_AT_ONCE) == EXPIRED_AT_ONCE:
                    self._clock.sleep(0)
                for table in self._template.tables:
                    saved = [p.saved for p in pumps if p.source.table == table.name]
                    if table.stream and saved:
                        self._engine.trim_stream(table.name, min(saved))
                self._clock.sleep(self._pause_seconds)
            except ClockStopped:
                return
            except Exception:
                _log.exception("upkeep failed")

    def watch_folder(self, give_up: Callable[[str], None]) -> None:
        """Checks if trouble is over. Calls `give_up` if the folder, and so its data, is lost."""
        while True:
            try:
                self._clock.sleep(self._pause_seconds)
            except ClockStopped:
                return
            self._trouble.look()
            gone = self._data.missing()
            if gone is not None:
                give_up(
                    f"{gone} is gone or was replaced while the service ran, which ends here: what"
                    " was stored since may be lost"
                )
                return
