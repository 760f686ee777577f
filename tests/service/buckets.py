"""A bucket whose calls can be refused, and whose objects end as early as they may."""

from __future__ import annotations

from botocore.exceptions import ClientError
from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.core import Bodies
from cirrusmq_local.testing import World

DAY_MS = 86_400_000


class Bucket:
    """The bucket of a world, through its client and the template's policies.

    With the calls that were made, objects that can be lost, and lives as short as S3's rules allow.
    """

    def __init__(self, world: World) -> None:
        held = world.core.bodies
        self._inner: Bodies = held._inner if isinstance(held, Bucket) else held
        self._bucket = world.bucket
        self.calls: list[str] = []
        """`put`, `get`, `range` or `copy`, one behind the other."""
        self.refused: set[str] = set()
        """Kinds of calls that are refused; `answer lost` has an effect first."""
        self.forbidden = False
        """Whether calls are refused for good."""
        self.written_ms: dict[str, int] = {}
        self._now_ms = world.clock.now_ms

    def put(self, key: str, data: bytes) -> None:
        self._begin("put")
        self._inner.put(key, data)
        self.written_ms[key] = self._now_ms()
        if "answer lost" in self.refused:
            raise Unavailable

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        self._begin("get" if end is None else "range")
        # Asked in any case, as S3 is: so what may not be read is found.
        found = self._inner.get(key, start, end)
        return found if self._lives(key) else None

    def copy(self, source: str, key: str) -> bool:
        self._begin("copy")
        if not self._lives(source):
            return False
        self.written_ms[key] = self._now_ms()
        return self._inner.copy(source, key)

    @property
    def keys(self) -> list[str]:
        """Keys of the objects that are there."""
        return [key for key in self._bucket.keys() if self._lives(key)]  # noqa: SIM118

    def lose(self) -> None:
        """Lose every object."""
        self.written_ms.clear()

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        if call in self.refused:
            raise Unavailable
        if self.forbidden:
            raise ClientError({"Error": {"Code": "KMS.DisabledException"}}, call)

    def _lives(self, key: str) -> bool:
        """At the earliest moment that the bucket's rules allow it is gone."""
        days = int(key[1:3])
        return self._now_ms() < self.written_ms.get(key, 0) + days * DAY_MS


def give_bucket(world: World, least: int) -> Bucket:
    """Have the world put sends of so many packed bytes or more into its bucket."""
    bucket = Bucket(world)
    settings = replace(world.core.settings, bodies_in_s3_from=least)
    world.core = replace(world.core, bodies=bucket, settings=settings)
    return bucket
