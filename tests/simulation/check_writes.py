"""Every write of a parcel was lawful: a step of `model.steps`, and what left a parcel arrived."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from tests.lawful_writes import Judged, newest_purge_ms
from tests.simulation.deployment import Deployment

from cirrusmq_local.judging.history import Violation


def check_writes(
    deployment: Deployment, lawful: set[Hashable] | None = None
) -> Iterator[Violation]:
    """The first write that was unlawful. lawful: as of `Judged`."""
    faults = judge(deployment, lawful).faults
    if faults:
        yield Violation(f"unlawful write: {faults[0]}")


def judge(deployment: Deployment, lawful: set[Hashable] | None = None) -> Judged:
    """The writes of a run behind its set-up, which makes some by hand."""
    judged, tables = Judged(lawful), deployment.tables
    directory = deployment.engine.execute("Scan", {"TableName": tables.directory})["Items"]
    judged.judge(
        deployment.engine,
        tables.messages,
        after=deployment.opened_at,
        purged_ms=newest_purge_ms(directory),
    )
    return judged
