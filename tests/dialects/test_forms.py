"""Forms of the query protocol: as the standard library reads them, in a tree."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from cirrusmq_dialects import forms
from cirrusmq_dialects.aws_signature import Signed, _SigningKeys, signing_key


@pytest.mark.parametrize(
    "form",
    [
        "Action=Publish&Message=a%20b+c%2B%3D%26",
        "a=&b&=c&&d==e=f",
        "%41ction=x&n+m=1",
        "t=%E5%BD%93&u=\u5f53",
        "a=1&a=2",
        "p=100%&q=%zz",
    ],
)
def test_fields_are_read_as_the_standard_library_does(form: str) -> None:
    expected = dict(parse_qsl(form, keep_blank_values=True))
    assert forms.read(form.encode()) == expected


def test_names_are_a_tree() -> None:
    form = b"T.member.1.Key=a&T.member.2.Key=b&T.member.1.Value=c&.x=d&x=e"

    assert forms.read(form) == {
        "T": {"member": {"1": {"Key": "a", "Value": "c"}, "2": {"Key": "b"}}},
        "": {"x": "d"},
        "x": "e",
    }


@pytest.mark.parametrize(
    "form",
    [
        b"a=%ff",
        b"a=\xff",
        b"%ff=1",
        b"a=1&a.b=2",
        b"a.b=1&a=2",
        b"a.b.c=1&a.b=2",
        b"1.2.3.4.5.6.7.8.9.10=x",
        b"a=1&" * 2_000,
    ],
)
def test_contradictory_or_too_large_forms_are_refused(form: bytes) -> None:
    with pytest.raises(forms.FormError):
        forms.read(form)


def test_a_signing_key_is_remembered_for_five_minutes_and_for_its_scope_alone() -> None:
    signed = Signed(
        key_id="k",
        date="20261127",
        region="r",
        service="sqs",
        time="20261127T000000Z",
        headers=("host",),
        signature="0" * 64,
        seconds=0,
    )
    keys, made = _SigningKeys(), signing_key("secret", signed)

    assert keys.key("secret", signed, 0) is keys.key("secret", signed, 299_999)
    assert keys.key("secret", signed, 0) == made
    assert keys.key("other", signed, 0) == signing_key("other", signed) != made
    first = keys.key("secret", signed, 0)
    assert keys.key("secret", signed, 300_000) is not first
