"""Bills usage, from exports of the Usage table. See `--help`."""

from __future__ import annotations

import sys

from cirrusmq_reports import billing_command
from cirrusmq_reports.session import make_session


def main() -> int:
    """Runs on this machine if its helper module can be imported, else on the cluster."""
    try:
        import local_run
    except ModuleNotFoundError:
        return billing_command.run(sys.argv[1:], lambda: make_session("billing"))
    return local_run.run(billing_command.run, "billing", sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
