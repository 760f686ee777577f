"""Typed decoding while several threads meet a type for the first time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cirrusmq.base import shapes
from cirrusmq.base.shapes import decode_json, decode_packed

ROOT = Path(__file__).resolve().parents[2]

# It ends with a segmentation fault where two threads are the first to decode one type. Without the
# lock it does so within the first few hundred types.
FIRST_DECODES = """
import sys, threading
import msgspec
from cirrusmq.base.shapes import decode_json, decode_packed

def decode_first(number):
    inner = msgspec.defstruct(f"Inner{number}", [("x", int)])
    outer = msgspec.defstruct(f"Outer{number}", [("a", inner), ("b", int)])
    value = outer(inner(1), 2)
    together = threading.Barrier(8)

    def run(format, decode):
        content = format.encode(value)
        together.wait()
        decoded.append(decode(content, outer))

    decoded = []
    ways = [(msgspec.json, decode_json), (msgspec.msgpack, decode_packed)] * 4
    threads = [threading.Thread(target=run, args=way) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decoded == [value] * 8

sys.setswitchinterval(1e-6)
for number in range(600):
    decode_first(number)
print("all decoded")
"""


@pytest.mark.long
def test_a_type_is_first_decoded_by_many_threads_at_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_DECODES], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "all decoded\n"), ran.stderr


class Pair(msgspec.Struct):
    left: int
    right: str = "none"


@pytest.mark.parametrize(
    ("decode", "encode"),
    [(decode_json, msgspec.json.encode), (decode_packed, msgspec.msgpack.encode)],
    ids=["json", "packed"],
)
def test_a_value_is_read_as_its_type_and_an_unfit_one_is_refused(
    decode: Callable[[bytes, type[Any]], Any], encode: Callable[[object], bytes]
) -> None:
    for _ in range(2):
        assert decode(encode({"left": 1}), Pair) == Pair(1)
        assert decode(encode({"left": 1}), dict[str, int]) == {"left": 1}
        with pytest.raises(msgspec.ValidationError, match=r"\$\.left"):
            decode(encode({"left": "1"}), Pair)
        with pytest.raises(msgspec.DecodeError):
            decode(b"\xc1", Pair)


def typed(call: ast.Call) -> bool:
    """Whether a call makes msgspec look at a type."""
    text = ast.unparse(call.func)
    if not text.startswith("msgspec."):
        return False
    named = {keyword.arg for keyword in call.keywords}
    return text.endswith((".convert", ".Decoder")) or "type" in named


def test_no_other_module_gives_a_type_to_msgspec() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in ("functions", "layers")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(shapes.__file__)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and typed(node)
    }
    assert found == set()


def test_typed_calls_are_told_apart() -> None:
    calls = {
        "msgspec.json.decode(body, type=Send)": True,
        "msgspec.convert(held, Send)": True,
        "msgspec.msgpack.Decoder(Send)": True,
        "msgspec.json.decode(body)": False,
        "decode_json(body, Send)": False,
    }
    for text, expected in calls.items():
        parsed = ast.parse(text, mode="eval").body
        assert isinstance(parsed, ast.Call)
        assert typed(parsed) is expected
