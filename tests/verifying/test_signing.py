"""A result is signed, and any change of it is seen."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.verifying.signing import BadSignature, check, sign

RESULT: dict[str, Any] = {"format": 1, "messages": {"sent": 3, "lost": 0}, "text": "ü"}


def test_a_signed_result_is_good_also_when_it_was_written_and_read(tmp_path: Path) -> None:
    result = copy.deepcopy(RESULT)
    sign(result, tmp_path / "key.pem")

    again = json.loads(json.dumps(result, indent=2))

    assert check(again) == result["signature"]["public_key"]
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600


def test_an_existing_key_is_used_again(tmp_path: Path) -> None:
    first, second = copy.deepcopy(RESULT), copy.deepcopy(RESULT)
    sign(first, tmp_path / "key.pem")
    sign(second, tmp_path / "key.pem")
    assert first == second


@pytest.mark.parametrize("name", ["messages", "format", "added"])
def test_a_changed_result_is_not_good(tmp_path: Path, name: str) -> None:
    result = copy.deepcopy(RESULT)
    sign(result, tmp_path / "key.pem")
    result[name] = 2
    with pytest.raises(BadSignature, match="not of this content"):
        check(result)


@pytest.mark.parametrize(
    "signature", [None, {}, {"algorithm": "none"}, {"algorithm": "Ed25519", "value": "xx"}]
)
def test_a_result_without_signature_is_not_good(signature: Any) -> None:
    with pytest.raises(BadSignature):
        check({**RESULT, "signature": signature})


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(ValueError, match="no private key in PEM"):
        sign(copy.deepcopy(RESULT), tmp_path / "key.pem")
