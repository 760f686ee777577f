"""The swap of a report's pointer by a condition, and the copies of documents after it.

A run proposes: it writes the pointer to be, and the run that it began from. The swap compares::

    run 2   began from run 1 ──────────────────> proposes ──> swap: current is run 3, refused
    run 3   began from run 1 ──> proposes ──> swap: current is run 1, now run 3

A refused run is made again from the new state. What is here knows no Spark and no files: it is the
same on one machine, under a lock, and in an account, where each write has a condition.
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
"""In a run's folder: all of them were copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a run wants to make current."""

    report: str
    run: str
    began_from: str
    """The run that was current when this one read its state; "" = none."""
    pointer: str
    """The pointer's text."""
    documents_run: str = ""
    """The newest run that issued documents; "" = none."""

    def as_text(self) -> str:
        """The proposal as its file has it."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str | bytes) -> Proposal:
        """The proposal in a file."""
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
        """A file and what tells this version of it from others, or None if it is missing."""

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        """Write a file if its version is still this one; None: if it is missing.

        Returns whether it was written.
        """


def proposed(place: Place, report: str, name: str) -> Proposal | None:
    """A proposal by its name; None = there is none."""
    found = place.read(f"{PROPOSALS}/{report}/{name}.json")
    return Proposal.of(found[0]) if found else None


def published(place: Place, report: str) -> Proposal | None:
    """What is current, as a proposal of which all but the copies is done; None = nothing."""
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
    """Make the proposal's run the current one. Returns PUBLISHED or OUTDATED.

    Called again after an answer that was lost, it finds its own run and is content.
    """
    found = place.read(proposal.pointer_name)
    current = run_of(found[0]) if found else ""
    if current == proposal.run:
        return PUBLISHED
    if current == proposal.began_from:
        version = found[1] if found else None
        if place.put(proposal.pointer_name, proposal.pointer.encode(), version):
            return PUBLISHED
        # The write may be our own one, of which the answer was lost.
        found = place.read(proposal.pointer_name)
        if found and run_of(found[0]) == proposal.run:
            return PUBLISHED
    return OUTDATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """How far copying came."""

    different: list[str]
    """Names that are there with another content, or whose original is gone: they stay."""
    next: int | None = None
    """The place in the index to go on from; None = done."""


def copy_documents(
    place: Place,
    proposal: Proposal,
    *,
    start: int = 0,
    in_time: Callable[[], bool] = lambda: True,
) -> Copied:
    """Copy documents to their names, as far as they are missing there.

    They are compared until all of them are there as they were issued; then a mark says so.
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
    """Copy one document if it is missing. Returns whether it is there as it was issued."""
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
    """The text of a run's INDEX: names below DOCUMENTS, and digests. It keeps no content."""
    entries = [{"name": name, "sha256": digest_of(content)} for name, content in documents]
    return json.dumps(entries)


def digest_of(content: bytes) -> str:
    """SHA-256, as text."""
    return hashlib.sha256(content).hexdigest()


def run_of(pointer: bytes) -> str:
    """The run that a pointer names."""
    state: dict[str, Any] = json.loads(pointer.partition(b"\n")[0])
    return str(state["run"])
