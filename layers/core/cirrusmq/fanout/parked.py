"""Parked shares: they cannot be handed out now, and are put aside so that their shard goes on.

    fan_out   m1 fails three times ── put aside ── m2: put aside untried       m9: behind them
    drainer                              └──────── m1 ── m2 ── m3 … as long as any share is parked

A reader that is promised an order gets its parked shares first: from fan_out, which looks for them
before it hands out a batch's first share, or from the reader's drainer. Only one of them does so at
a time, under a lease of the reader's lot; else m2 could overtake m1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cirrusmq.base.errors import Unavailable
from cirrusmq.fanout import parking_lot
from cirrusmq.fanout.parked_items import in_order_key, lot_keys, parked_item, parked_keys
from cirrusmq.fanout.push_triggers import Notices
from cirrusmq.fanout.reader_parcels import LogEntry, ReaderDelivery, levels
from cirrusmq.fanout.record_shares import handouts_of
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, prefix_request, put_if_absent
from cirrusmq.storage import lease
from cirrusmq.storage.lease import Lease

PATIENCE_MS = 60_000
"""After this time a drainer leaves the rest to the next one, which the sweep starts."""
WAIT_MS = (100, 10_000)
_PAGE = 25


def put_aside(core: Core, handout: ReaderDelivery) -> None:
    """Parks a share behind the parked shares. The caller has marked its reader's lot before."""
    entry = handout.entry
    item = parked_item(
        handout.reader_id, entry.item, entry.place, entry.came_ms, in_order=handout.in_order
    )
    # Refused if it is a repetition: it is parked already.
    core.store.try_write("PutItem", put_if_absent(core.tables.messages, item))


def clear_the_way(core: Core, reader_id: str, deadline_ms: int, notices: Notices) -> bool:
    """Hands out the parked shares of a reader with an order. Returns True if none is left."""
    if not parking_lot.exists(core, reader_id):
        return True
    drainer = _Drainer(core, reader_id, [in_order_key(reader_id)], deadline_ms, notices)
    return drainer.is_done() or drainer.run(drainer.deliver_records)


def drain(core: Core, reader_id: str, max_ms: int) -> None:
    """Hands out all parked shares of a reader, and retries failed ones for `PATIENCE_MS`.

    If the store fails, or that time is over, the sweep starts another drainer.
    """
    scale, notices = core.clock.scale, Notices(core)
    deadline_ms = core.now_ms() + int(max_ms * scale)
    patient_until_ms = min(deadline_ms, core.now_ms() + int(PATIENCE_MS * scale))
    drainer = _Drainer(core, reader_id, parked_keys(reader_id), deadline_ms, notices)

    def persist() -> bool:
        wait_ms = WAIT_MS[0]
        while True:
            done = drainer.deliver_records()
            notices.send()
            if done or core.now_ms() >= patient_until_ms:
                return done
            core.clock.sleep(core.random.uniform(0.5, 1) * wait_ms * scale / 1000)
            wait_ms = min(2 * wait_ms, WAIT_MS[1])

    try:
        if drainer.run(persist):
            parking_lot.remove(core, reader_id)
    except Unavailable:
        return
    finally:
        notices.send()


def start_draining(core: Core, reader_id: str) -> None:
    """Starts a drainer of the reader's parked shares in the function `replay`."""
    core.invoke("replay", {"parked": reader_id})


def resume(core: Core, deadline_ms: int) -> bool:
    """Starts missing drainers of readers with parked shares. Returns True if it saw all readers.

    In random order, so that a reader not reached by `deadline_ms` is reached another time.
    """
    keys = lot_keys()
    core.random.shuffle(keys)
    for pk in keys:
        for reader_id in parking_lot.idle(core, pk):
            if core.now_ms() >= deadline_ms:
                return False
            start_draining(core, reader_id)
        if core.now_ms() >= deadline_ms:
            return pk == keys[-1]
    return True


class _Drainer:
    """Hands out the parked shares of a reader, under some of its keys."""

    def __init__(
        self, core: Core, reader_id: str, keys: list[str], deadline_ms: int, notices: Notices
    ) -> None:
        self._core = core
        self._reader_id = reader_id
        self._keys = keys
        self._deadline_ms = deadline_ms
        self._notices = notices
        self._held: Lease | None = None

    def run(self, work: Callable[[], bool]) -> bool:
        """Does the work as the only drainer. Returns True once no share is left.

        fan_out    puts m5 aside ── starts a drainer B
        B                           refused: A holds, and looks again behind its release
        A          finds no more ─────────────────── releases ── looks: m5 ── holds
        """
        while (held := parking_lot.hold(self._core, self._reader_id)) is not None:
            self._held = held
            try:
                done = work()
            finally:
                lease.release(self._core, held)
            if not done:
                return False
            if self.is_done():
                return True
        return False

    def is_done(self) -> bool:
        """Returns True if no share is parked under the keys."""
        return not any(_page(self._core, pk, None, limit=1)[0] for pk in self._keys)

    def deliver_records(self) -> bool:
        """Hands out the shares parked now, as the holder. Returns True if all of them are done."""
        done = [self._hand_out_of(pk) for pk in self._keys]
        return all(done)

    def _hand_out_of(self, pk: str) -> bool:
        in_order = pk == in_order_key(self._reader_id)
        after: Item | None = None
        all_done = True
        while True:
            page, after = _page(self._core, pk, after)
            if page and not self._may_go_on():
                return False
            left = self._hand_out_page(page, in_order)
            done = [each for each in page if each["sk"]["S"] not in left]
            list(self._core.in_parallel(lambda each: _forget(self._core, each), done))
            all_done = all_done and not left
            if after is None or (left and in_order):
                return all_done

    def _may_go_on(self) -> bool:
        if self._held is None or self._core.now_ms() >= self._deadline_ms:
            return False
        return lease.renew(self._core, self._held, parking_lot.hold_ms(self._core))

    def _hand_out_page(self, page: Sequence[Item], in_order: bool) -> set[str]:
        """Hands out the shares of these parked items. Returns the sort keys of the shares left.

        If an order is promised, the shares after a failed one wait.
        """
        places = [(each["log"]["S"], each["of"]["S"]) for each in page]
        table = self._core.tables.messages
        records = self._core.store.get_many(table, sorted(set(places)), consistent=True)
        left: set[str] = set()
        handouts: list[ReaderDelivery] = []
        for parked, place in zip(page, places, strict=True):
            name = parked["sk"]["S"]
            if in_order and left:
                left.add(name)
            elif place in records:  # else it has expired
                entry = LogEntry(item=records[place], place=name, came_ms=int(parked["c"]["N"]))
                try:
                    handouts += self._shares(entry)
                except Exception:
                    left.add(name)
        for step in levels(handouts):
            if self._core.now_ms() >= self._deadline_ms or (in_order and left):
                left |= {each.entry.place for each in step}
                continue
            done = self._core.in_parallel(self._try, step)
            given = [each for each, is_done in zip(step, done, strict=True) if is_done]
            lost = {id(each) for each in self._notices.add(given)}
            given_for_good = {id(each) for each in given} - lost
            left |= {each.entry.place for each in step if id(each) not in given_for_good}
        return left

    def _try(self, handout: ReaderDelivery) -> bool:
        try:
            handout.give(self._core)
        except Exception:
            return False
        return True

    def _shares(self, entry: LogEntry) -> list[ReaderDelivery]:
        """Returns the reader's share of a record, or none if the reader is gone.

        Returns all readers' shares if it is the log's own id: the record was parked whole.
        """
        everybody = entry.log_id == self._reader_id
        handouts = handouts_of(self._core, entry)
        return [each for each in handouts if everybody or each.reader_id == self._reader_id]


def _forget(core: Core, parked: Item) -> None:
    place = {name: parked[name] for name in ("pk", "sk")}
    core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})


def _page(
    core: Core, pk: str, after: Item | None, limit: int = _PAGE
) -> tuple[list[Item], Item | None]:
    request = prefix_request(core.tables.messages, pk) | {"Limit": limit}
    if after is not None:
        request["ExclusiveStartKey"] = after
    items, last, _ = core.store.query(request)
    return items, last
