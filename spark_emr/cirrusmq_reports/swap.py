"""The swap of a report's pointer by a conditional write, and the copies of documents after it.

A run writes a proposal: the new pointer, and the run from which it began. The swap compares::

    run 2   began from run 1 ──────────────────> proposes ──> swap: current is run 3, refused
    run 3   began from run 1 ──> proposes ──> swap: current is run 1, now run 3

A refused run is repeated from the new state. This module uses neither Spark nor files: it works
the same on one machine, under a lock, and in an account, with conditional writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

PUBLISHED, OUTDATED = "published", "outdated"
DOCUMENTS = "documents"
PROPOSALS = "proposals"
INDEX = "documents.json"
"""In a run's folder: the documents that it issued, by name and digest."""
COPIED = "documents.copied"
"""In a run's folder: all of its documents were copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A run's proposal for a new pointer."""

    report: str
    run: str
    began_from: str
    """The run that was current when this run read its state; "" for none."""
    pointer: str
    """The pointer's text."""
    documents_run: str = ""
    """The newest run that issued documents; "" for none."""

    def as_text(self) -> str:
        """Returns the proposal as the text of its file."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str | bytes) -> Proposal:
        """Returns the proposal in a file."""
        return cls(**json.loads(text))

    @property
    def pointer_name(self) -> str:
        """The pointer's place in the output."""
        return f"current/{self.report}.json"

    @property
    def documents_home(self) -> str:
        """The place of the documents that the newest closing run wrote."""
        return f"runs/{self.report}/{self.documents_run}"


class Place(Protocol):
    """An output folder or bucket."""

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Returns a file and its version, or None if it is missing."""

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        """Writes a file if its version is still this one; None: if it is missing.

        Returns True if it was written.
        """


def proposed(place: Place, report: str, name: str) -> Proposal | None:
    """Returns a proposal by its name, or None."""
    found = place.read(f"{PROPOSALS}/{report}/{name}.json")
    return Proposal.of(found[0]) if found else None


def published(place: Place, report: str) -> Proposal | None:
    """Returns the current run as a proposal, with only copies left to do, or None."""
    found = place.read(f"current/{report}.json")
    if found is None:
        return None
    state = json.loads(found[0].partition(b"\n")[0])
    return Proposal(
        report=report,
        run=str(state["run"]),
        began_from="",
        pointer="",
        documents_run=str(state.get("documents_run", "")),
    )


def swap(place: Place, proposal: Proposal) -> str:
    """Makes the proposal's run the current one. Returns PUBLISHED or OUTDATED.

    Repeated after a lost answer, it finds its own run and returns PUBLISHED.
    """
    found = place.read(proposal.pointer_name)
    current = run_of(found[0]) if found else ""
    if current == proposal.run:
        return PUBLISHED
    if current == proposal.began_from:
        version = found[1] if found else None
        if place.put(proposal.pointer_name, proposal.pointer.encode(), version):
            return PUBLISHED
        # The write may be our own, whose answer was lost.
        found = place.read(proposal.pointer_name)
        if found and run_of(found[0]) == proposal.run:
            return PUBLISHED
    return OUTDATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The progress of copying."""

    different: list[str]
    """Names whose file has another content, or whose original is gone; they are not changed."""
    next: int | None = None
    """The index from which to continue, or None if all are copied."""


def copy_documents(
    place: Place,
    proposal: Proposal,
    *,
    start: int = 0,
    in_time: Callable[[], bool] = lambda: True,
) -> Copied:
    """Copies missing documents to their names.

    Compares all documents until each one is there as issued; then a mark is written.
    """
    mark = f"{proposal.documents_home}/{COPIED}"
    index = place.read(f"{proposal.documents_home}/{INDEX}") if proposal.documents_run else None
    if index is None or place.read(mark) is not None:
        return Copied(different=[])
    different: list[str] = []
    for number, entry in enumerate(json.loads(index[0])):
        if number < start:
            continue
        if not in_time():
            return Copied(different=different, next=number)
        if not _is_copied(place, proposal, entry["name"], entry["sha256"]):
            different.append(f"{DOCUMENTS}/{entry['name']}")
    if not different and not start:
        place.put(mark, b"", None)
    return Copied(different=different)


def _is_copied(place: Place, proposal: Proposal, name: str, digest: str) -> bool:
    """Copies one document if it is missing. Returns True if it is there as issued."""
    target = f"{DOCUMENTS}/{name}"
    found = place.read(target)
    if found is None:
        original = place.read(f"{proposal.documents_home}/{target}")
        if original is None or digest_of(original[0]) != digest:
            return False
        if place.put(target, original[0], None):
            return True
        found = place.read(target)
    return found is not None and digest_of(found[0]) == digest


def index_of(documents: Iterable[tuple[str, bytes]]) -> str:
    """Returns the text of a run's INDEX: names below DOCUMENTS, and digests."""
    entries = [{"name": name, "sha256": digest_of(content)} for name, content in documents]
    return json.dumps(entries)


def digest_of(content: bytes) -> str:
    """Returns the SHA-256 as text."""
    return hashlib.sha256(content).hexdigest()


def run_of(pointer: bytes) -> str:
    """Returns the run that a pointer names."""
    state: dict[str, Any] = json.loads(pointer.partition(b"\n")[0])
    return str(state["run"])
