"""Every order of the steps of a few clients, with up to two faults: no promise is broken in any.

A number of complete orders is part of its test: a call of the store made less, or a scenario that
shrank, changes it. A failing test names the order, which `Setting.play` plays again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet
from tests.exploring.event_plots import PLOTS
from tests.exploring.exploring import Setting
from tests.simulation.deployment import listening
from tests.simulation.plants import every_plant

PLANTS = every_plant()
COMPLETE: dict[str, dict[int, int]] = {
    "two receivers": {0: 20, 1: 314, 2: 2264},
    "two receivers, a parcel of two": {0: 80, 1: 2216, 2: 19192},
    "two receivers and a sender": {0: 66, 1: 1584, 2: 15878},
    "a late delete, another receives": {0: 10, 1: 171, 2: 1314},
    "given back and deleted late": {0: 29, 1: 635, 2: 5056},
    "a receive is repeated, another receives": {0: 60, 1: 1363, 2: 12952},
    "two movers of a dead letter": {0: 6, 1: 90, 2: 774},
    "a mover and a late delete": {0: 60, 1: 1523},
    "a lease ends while it is extended": {0: 66, 1: 761, 2: 3144},
    "a send is repeated while it is consumed": {0: 12, 1: 254, 2: 1931},
    "a send is repeated while it waits for a retry": {0: 34, 1: 619, 2: 5383},
    "a held message has no try left": {0: 95, 1: 1203, 2: 5665},
    "a purge and a receiver": {0: 544, 1: 11692},
    "a purge's steps and a receiver": {0: 4, 1: 149, 2: 1427},
    "a purge's steps, the send is repeated": {0: 82, 1: 3076},
    "a rewind's steps, a late delete": {0: 127, 1: 5297},
    "two replacers": {0: 8, 1: 200, 2: 1504},
    "two replacers, and nothing waits": {0: 6, 1: 146, 2: 1044},
    "a replacer and a receiver": {0: 15, 1: 344, 2: 3110},
    "a replaced send is repeated while it is consumed": {0: 271, 1: 7211},
    "two repliers": {0: 6, 1: 88, 2: 578},
    "a late reply, another receives and replies": {0: 20, 1: 304, 2: 2250},
    "a reply, its asker gives up": {0: 33, 1: 656, 2: 5158},
    "a batch is fanned out twice, a member receives": {0: 50, 1: 1186, 2: 13836},
    "two posters of a URL": {0: 16, 1: 1206},
    "a poster, and a resume": {0: 90, 1: 3127},
    "a poster, a pause and its end": {0: 1199},
    "a poster and a publisher": {0: 357},
    "a sweep finds an old message, a late delete": {0: 55, 1: 2294},
    "a sweep finds an old message, another receives": {0: 5, 1: 228, 2: 3811},
    "a sweep ends a half message that is committed": {0: 7, 1: 252, 2: 3881},
    "a half message is committed and rolled back": {0: 6, 1: 120, 2: 1154},
    "two producers are asked for a half message": {0: 34, 1: 880, 2: 10224},
    "a producer is asked for what is committed": {0: 22, 1: 483, 2: 5730},
    "a sweep moves what a group received, it is received": {0: 5, 1: 300, 2: 5837},
}
"""Scenario -> its complete orders with no fault, and with up to so many. With the first number of
faults that is not there it was played for 20,000 runs, which broke no promise and were not all."""
AT_ONCE = {"two receivers", "a late delete, another receives", "two movers of a dead letter"}
"""Scenarios that `make test` plays with a fault: of a claim, a settlement and a move."""
LONG = {"a poster, a pause and its end", "a poster and a publisher"}
"""Scenarios that take seconds without a fault, too: `make check-long` plays them."""
FOUND: dict[str, tuple[str, int]] = {
    "a_claim_does_not_compare_what_it_read": ("two receivers", 1),
    "a_delete_does_not_compare_the_nonce": ("a late delete, another receives", 3),
    "a_hold_does_not_compare_the_nonce": ("a lease ends while it is extended", 51),
    "given_back_messages_keep_their_receipts": ("given back and deleted late", 8),
    "a_move_does_not_look_at_its_source": ("a mover and a late delete", 1),
    "a_move_writes_the_arrival_first": ("a mover and a late delete", 1),
    "a_move_deletes_first": ("two movers of a dead letter", 1),
    "held_messages_become_dead_letters": ("a held message has no try left", 56),
    "moved_parcels_leave_no_tombstone": ("a send is repeated while it waits for a retry", 1),
    "sends_put_over_what_is_there": ("a send is repeated while it is consumed", 3),
    "a_purge_has_no_floor": ("a purge and a receiver", 109),
    "a_purge_removes_whatever_has_the_key": ("a purge's steps, the send is repeated", 15),
    "a_rewind_takes_what_was_deleted_since": ("a rewind's steps, a late delete", 1),
    "a_send_that_is_repeated_gets_another_id": ("a send is repeated while it is consumed", 1),
    "a_replacement_does_not_ask_who_received": ("a replacer and a receiver", 4),
    "a_key_is_written_without_a_condition": ("two replacers, and nothing waits", 1),
    "a_replacement_leaves_the_old_message": ("two replacers", 1),
    "a_key_forgets_received_sends": ("a replaced send is repeated while it is consumed", 114),
    "anybody_holds_the_lease_of_a_poster": ("two posters of a URL", 1),
    "posters_are_not_told_of_a_pause": ("a poster, and a resume", 85),
    "checks_are_not_compared": ("two producers are asked for a half message", 1),
    "a_commit_does_not_look_at_the_state": ("a half message is committed and rolled back", 1),
    "a_rollback_does_not_look_at_the_state": ("a half message is committed and rolled back", 2),
    "a_reply_leaves_its_message": ("two repliers", 1),
    "a_reply_takes_any_receipt": ("a late reply, another receives and replies", 13),
    "an_asker_gives_up_without_a_write": ("a reply, its asker gives up", 9),
    "fan_out_leaves_the_last_parcel_out": ("a batch is fanned out twice, a member receives", 1),
}
"""Planted fault -> the scenario that finds it without another fault, and at which run at most."""


@pytest.fixture(autouse=True)
def _listen() -> Iterator[None]:
    with listening():
        yield


@pytest.fixture
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    made = Setting(PLOTS[request.param])
    yield made
    made.close()


def _cases() -> Iterator[ParameterSet]:
    for name, counts in COMPLETE.items():
        for faults, complete in counts.items():
            at_once = name not in LONG if not faults else faults == 1 and name in AT_ONCE
            marks = () if at_once else pytest.mark.long
            yield pytest.param(name, faults, complete, marks=marks, id=f"{name}, {faults} faults")


def test_every_scenario_is_played_without_a_fault() -> None:
    assert all(0 in counts for counts in COMPLETE.values())
    assert COMPLETE.keys() == PLOTS.keys()


@pytest.mark.few(18)
@pytest.mark.parametrize(("setting", "faults", "complete"), [*_cases()], indirect=["setting"])
def test_no_order_breaks_a_promise(setting: Setting, faults: int, complete: int) -> None:
    explored = setting.explore(faults)

    assert explored.violation is None, f"{explored.violation}: {explored.order}"
    assert explored.complete == complete


@pytest.mark.few(9)
@pytest.mark.parametrize("fault", FOUND)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, run = FOUND[fault]
    PLANTS[fault].patch(monkeypatch)
    with contextlib.closing(Setting(PLOTS[scenario])) as setting:
        explored = setting.explore()
        again = setting.play(explored.order)

    assert explored.violation is not None
    assert explored.runs <= run
    assert str(again) == str(explored.violation)


def test_calls_show_a_crash_fault_only_with_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its writes show it without one: the delete is a commit of its own."""
    PLANTS["a_move_deletes_first"].patch(monkeypatch)
    plot = PLOTS["two movers of a dead letter"]

    with contextlib.closing(Setting(plot, writes=False)) as by_calls:
        without, crashed = by_calls.explore(0), by_calls.explore(1)
    with contextlib.closing(Setting(plot)) as by_writes:
        written = by_writes.explore(0)

    assert without.violation is None
    assert crashed.violation is not None
    assert written.violation is not None


@pytest.mark.long
@pytest.mark.parametrize(
    "setting",
    ["two movers of a dead letter", "a send is repeated while it is consumed"],
    indirect=True,
)
def test_commuting_steps_lead_to_the_same_ends(setting: Setting) -> None:
    """All orders have the outcomes of those that are played, and no other."""
    reduced, all_of_them = set[str](), set[str]()

    few = setting.explore(ends=reduced)
    many = setting.explore(reduced=False, ends=all_of_them)

    assert few.complete < many.complete
    assert reduced == all_of_them
