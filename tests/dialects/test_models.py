"""The model by which boto3 speaks SQS, in a process in which moto has read it too."""

from __future__ import annotations

from botocore.loaders import Loader
from moto.core.loaders import create_loader


def test_additions_of_moto_to_a_model_are_in_no_model_of_the_sdk() -> None:
    before = Loader().load_service_model("sqs", "service-2")
    changed = create_loader().load_service_model("sqs", "service-2")
    after = Loader().load_service_model("sqs", "service-2")
    assert after == before != changed
