"""Publishes a run on this machine by hand: a proposal, or what the current run has not copied.

In an account it is the function `publish_report` that does so.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from cirrusmq_reports.command import name_argument, place_argument
from cirrusmq_reports.local_place import LocalPlace
from cirrusmq_reports.swap import OUTDATED, copy_documents, proposed, published, swap


def main(arguments: Sequence[str] | None = None) -> int:
    """Swaps and copies. Returns the exit code: 3 if another run was published since."""
    options = _parser().parse_args(arguments)
    place = LocalPlace(options.output)
    name, report = options.proposal, options.report
    with place.locked(report):
        proposal = proposed(place, report, name) if name else published(place, report)
        if proposal is None:
            what = f"proposals/{report}/{name}.json" if name else f"current/{report}.json"
            print(f"error: {options.output}/{what}: missing", file=sys.stderr)
            return 2
        if name and swap(place, proposal) == OUTDATED:
            print("error: another run was published since it began: run the job", file=sys.stderr)
            return 3
        different = copy_documents(place, proposal).different
    print(f"{report}: {proposal.run}")
    for each in different:
        print(
            f"{options.output}/{each}: it is not the document that was issued; the right one is in "
            f"{options.output}/{proposal.documents_home}",
            file=sys.stderr,
        )
    return 1 if different else 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="publish.py", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--output", type=place_argument, required=True, metavar="FOLDER")
    parser.add_argument("--report", choices=("billing", "backlog"), default="billing")
    parser.add_argument(
        "--proposal",
        type=name_argument,
        metavar="NAME",
        help="that the job wrote by --propose; else missing documents are copied",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
