"""The grammar of DynamoDB's expressions, and the tree of one expression."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TypeAlias

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from cirrusmq_local.engine.errors import InvalidRequestError

Node: TypeAlias = Tree[Token] | Token

MAX_EXPRESSION_BYTES = 4096
MAX_OPERATORS = 300

# A condition's rules are in order from the loosest binding to the tightest. A bracket marks a
# function, so that an attribute may have a function's name.
_GRAMMAR = r"""
condition: _either
_either: either | _both
either: _either _OR _both
_both: both | _negation
both: _both _AND _negation
_negation: negated | _test
negated: _NOT _negation
_test: compared | between | among | call | group
group: "(" _either ")"
compared: _operand (COMPARATOR | EQUAL) _operand
between: _operand _BETWEEN _operand _AND _operand
among: _operand _IN "(" _operand ("," _operand)* ")"
_operand: path | VALUE | call
call: FUNCTION "(" _operand ("," _operand)* ")"

update: (set | remove | add | delete)+
set: _SET assignment ("," assignment)*
assignment: path EQUAL _result
_result: _operand | plus | minus
plus: _operand "+" _operand
minus: _operand "-" _operand
remove: _REMOVE path ("," path)*
add: _ADD change ("," change)*
delete: _DELETE change ("," change)*
change: path VALUE

projection: path ("," path)*

path: _name (("." _name) | "[" INDEX "]")*
_name: NAME | PLACEHOLDER

_OR.3: /or(?!\w)/i
_AND.3: /and(?!\w)/i
_NOT.3: /not(?!\w)/i
_BETWEEN.3: /between(?!\w)/i
_IN.3: /in(?!\w)/i
_SET.3: /set(?!\w)/i
_REMOVE.3: /remove(?!\w)/i
_ADD.3: /add(?!\w)/i
_DELETE.3: /delete(?!\w)/i
FUNCTION.2: /[a-zA-Z_]+(?=\s*\()/
NAME: /[a-zA-Z][a-zA-Z0-9_]*/
PLACEHOLDER: /#[a-zA-Z0-9_]+/
VALUE: /:[a-zA-Z0-9_]+/
INDEX: /[0-9]+/
COMPARATOR: "<>" | "<=" | ">=" | "<" | ">"
EQUAL: "="
%ignore /[ \t\r\n]+/
"""

_OPERATOR_RULES = frozenset(
    {"either", "both", "negated", "compared", "between", "among", "call", "plus", "minus"}
)


_making = threading.Lock()


def _parser() -> Lark:
    # Otherwise each thread of a start would spend a tenth of a second on its own parser.
    with _making:
        return _make_parser()


@lru_cache(maxsize=1)
def _make_parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", start=["condition", "update", "projection"])


def parse(text: str, start: str, parameter: str) -> Tree[Token]:
    """Returns the tree of an expression. `start`: condition, update or projection.

    `parameter` is the request's member that holds the text; an InvalidRequestError names it.
    """
    if not text.strip():
        raise InvalidRequestError(f"Invalid {parameter}: The expression can not be empty;")
    if len(text.encode()) > MAX_EXPRESSION_BYTES:
        raise InvalidRequestError(
            f"Invalid {parameter}: Expression size has exceeded the maximum allowed size; "
            f"expression size: {len(text.encode())}"
        )
    try:
        tree = _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise InvalidRequestError(
            f"Invalid {parameter}: Syntax error; {_blame(text, error)}"
        ) from error
    operators = sum(1 for node in tree.iter_subtrees() if node.data in _OPERATOR_RULES)
    if operators > MAX_OPERATORS:
        raise InvalidRequestError(
            f"Invalid {parameter}: The expression contains too many operators; operator count: "
            f"{operators}"
        )
    return tree


def _blame(text: str, error: UnexpectedInput) -> str:
    position = error.pos_in_stream
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return f'token: "<EOF>", near: "{text[-12:]}"'
    if isinstance(error, UnexpectedToken):
        token = str(error.token)
    elif isinstance(error, UnexpectedCharacters) and position is not None:
        token = text[position]
    else:
        token = ""
    at = position or 0
    return f'token: "{token}", near: "{text[max(0, at - 8) : at + 8]}"'
