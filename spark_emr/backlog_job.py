"""Reports the backlogs of queues, from exports of the Messages table. See `--help`."""

from __future__ import annotations

import sys

from cirrusmq_reports import backlog_command
from cirrusmq_reports.session import make_session


def main() -> int:
    """Runs on this machine if its helper module can be imported, else on the cluster."""
    try:
        import local_run
    except ModuleNotFoundError:
        return backlog_command.run(sys.argv[1:], lambda: make_session("backlog"))
    return local_run.run(backlog_command.run, "backlog", sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
