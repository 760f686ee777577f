"""The document of EMQ's contract: all of it is read, and each method has its function."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from cirrusmq_dialects.calling import function_of
from cirrusmq_dialects.emq import contract
from cirrusmq_dialects.emq.contract import METHODS, Method, of

DOCUMENT = Path(contract.__file__).with_name("emq.thrift").read_text("utf-8")
ALL = sorted({method for each in METHODS.values() for method in each.values()})


def test_each_line_is_read() -> None:
    lines = Counter(
        "field" if re.match(r"  \d", line) else "method"
        for line in DOCUMENT.splitlines()
        if line.startswith("  ") and not line.startswith("    ")
    )
    fields = [each for made in vars(of).values() for each in made.thrift_spec if each]
    assert lines["field"] == len(fields)
    own = [name for methods in METHODS.values() for name in methods]
    others = len(METHODS) - 1  # which have the common one's methods as well
    assert lines["method"] == len(own) - others * len(METHODS["CommonService"])
    assert len(re.findall(r"^(?:struct|exception) ", DOCUMENT, re.MULTILINE)) == len(vars(of))


@pytest.mark.parametrize("method", ALL, ids=lambda each: each.function)
def test_each_method_has_its_function_and_its_structs(method: Method) -> None:
    assert callable(function_of("emq", method.function))
    assert hasattr(of, method.argument)
    assert contract.result_of(method.result)().e is None


def test_fields_have_the_types_of_the_document() -> None:
    number, wire, name, detail, _ = of.CreateTag.thrift_spec[6]
    assert (number, wire, name) == (6, 12, "attributeValue")
    assert detail == (of.MessageAttribute, of.MessageAttribute.thrift_spec)
    assert of.SentBatch.thrift_spec[2][3][0] == 12  # a list of structs
    assert of.Permissions.thrift_spec[1][3][:3] == (11, None, 8)  # a map from texts to numbers
    assert of.MessageAttribute.thrift_spec[3][3] == "BINARY"
