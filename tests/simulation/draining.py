"""The end of a run: counting what is left, then receiving and deleting all of it, in peace."""

from __future__ import annotations

from tests.simulation.deployment import Deployment

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_named
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import scan_pages
from cirrusmq.subscriptions.sources import subscription_source
from cirrusmq.subscriptions.subscriptions import get_subscription
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_local.judging.clients import ACCOUNT, Client
from cirrusmq_local.judging.consumers import act, take
from cirrusmq_local.judging.deployment import Left
from cirrusmq_local.judging.history import MAX_SKEW_MS
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import Scenario

MAX_ROUNDS = 40
HINT_MS = 65_000
"""No hint hides a message longer."""


class Drain:
    """Receives until nothing is left that could ever be received."""

    def __init__(self, deployment: Deployment, scenario: Scenario) -> None:
        self._deployment = deployment
        self._places = scenario.places
        self._rated = "rate" in scenario.queues["orders"]
        """True if a group that has messages may give none until the next second."""
        self.left: dict[str, Left] = {}
        self.begun = self.begun_ms = 0
        self.blocked: list[str] = []
        """Work that could continue by the store's state, and does not."""
        self._auditor = deployment.auditor()

    def run(self) -> None:
        """Drain every place."""
        self.begun = self._deployment.history.tick()
        self.begun_ms = self._deployment.stage.now_ms()
        client = Client("drain")
        for place in self._places:
            source = source_of(place, self._auditor)
            kept = sum(count(self._auditor, each).kept for each in source.all)
            self.left[place.name] = Left(kept)
        fruitless = 0
        before: set[str] = set()
        while fruitless < 4:
            drained = sum(self._drain(client, place) for place in self._places)
            waiting = [parcel for place in self._places for parcel in self._live(place)]
            if not waiting:
                return
            now_ms = self._deployment.stage.now_ms()
            due_ms = min(
                parcel.ready_ms(n)
                for parcel in waiting
                for n in range(parcel.count)
                if parcel.live(n)
            )
            # A receive may only clean up, a few messages each: then the next one has less to do.
            keys = {f"{parcel.source_id} {parcel.sort_key}" for parcel in waiting}
            fruitless = 0 if drained or keys != before else fruitless + 1
            before = keys
            wait_ms = due_ms - now_ms + MAX_SKEW_MS
            least_ms = 1_000 if self._rated else 1
            self._deployment.stage.pause(max(wait_ms, HINT_MS if fruitless > 1 else least_ms))
        self.blocked += sorted(before)

    def _drain(self, client: Client, place: Place) -> int:
        drained = 0
        for _ in range(MAX_ROUNDS):
            asked = {"max": 16, "timeout": 3_600, "wait": 0.1}
            call = take(self._deployment, client, place, asked)
            if call.outcome == "refused":  # by the rate
                self._deployment.stage.pause(1_000)
                continue
            if not call.answer:
                break
            act(self._deployment, client, place, "delete", call.answer, {})
            drained += len(call.answer)
            self.left[place.name].received += len(call.answer)
        return drained

    def _live(self, place: Place) -> list[Parcel]:
        return live_parcels(self._auditor, source_of(place, self._auditor))


def source_of(place: Place, core: Core) -> Source:
    """The source of a place, found as the functions find it."""
    if place.topic:
        topic = get_topic(core, ACCOUNT, place.holder)
        subscription = place.name.partition("/")[2]
        return subscription_source(get_subscription(core, topic, subscription))
    return source_named(core, get_queue(core, ACCOUNT, place.holder), place.receiver or None)


def live_parcels(core: Core, source: Source) -> list[Parcel]:
    """Parcels that hold something unexpired, by the store itself."""
    now_ms = core.now_ms()
    return [
        parcel
        for each in source.all
        for partition in range(each.partitions)
        for page in scan_pages(core, partition_key(PARCELS, each.id, partition))
        for parcel in page.parcels
        if not parcel.spent() and now_ms < parcel.expires_ms and each.keeps(parcel)
    ]
