"""Builds and deploys the service under a new release.

python -m infra.release <stack> [Name=Value …] [-- <options of sam deploy>]
python -m infra.release --show [Name=Value …]      prints the release, deploys nothing
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cirrusmq_local.cloud.stack_names import StackNameError, check_stack_name

from . import ROOT, ReleaseError, deploy, read_parameters, release


def main(arguments: Sequence[str]) -> int:
    """Runs the command line. Returns the exit status."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    given, options = given[:end], given[end + 1 :]
    if not given or (given[0].startswith("-") and given[0] != "--show") or "=" in given[0]:
        print(__doc__.partition("\n\n")[2], end="", file=sys.stderr)
        print("options:", *deploy.PASSED_ON, file=sys.stderr)
        return 2
    stack, *texts = given
    try:
        parameters = read_parameters(ROOT, texts)
        if stack == "--show":
            print(release(ROOT, parameters))
            return 0
        check_stack_name(ROOT / "template.yaml", stack)
        return deploy.run(stack, parameters, options)
    except (ReleaseError, StackNameError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
